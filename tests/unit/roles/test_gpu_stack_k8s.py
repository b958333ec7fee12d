"""The gpu_stack_k8s role: options, labels, objects, values of charts, and its checks, each with its fault."""

from __future__ import annotations

import json
import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from rackwright.kubernetes.commands import KUBECTL, compare
from rackwright.kubernetes.gpu_names import OWNED, product
from rackwright.roles.gpu_stack_k8s import node_labels, values
from rackwright.roles.gpu_stack_k8s.objects import PLUGIN, objects, plugin_config
from rackwright.roles.gpu_stack_k8s.options import GpuStackK8sOptions, NetworkOperator
from rackwright.roles.gpu_stack_k8s.verify import CHECKS
from tests.unit.roles.container_site import never_passes, sentences
from tests.unit.roles.fake_host import Answer, FakeHost, errors_in, judged, planned
from tests.unit.roles.kubernetes_gpu_sites import STACK, gpu_cluster

OPTIONS = GpuStackK8sOptions()
SITE = gpu_cluster(gpu_stack_k8s=OPTIONS)
HEAD, GPU = SITE.by_name["head1"], SITE.by_name["gpu1"]
MIG = {"1g.10gb": 2, "3g.40gb": 1}
KEYS = yaml.safe_load((Path(__file__).parent / "recorded" / "chart_value_keys.yaml").read_text())


def test_options_that_are_refused():
    assert errors_in(GpuStackK8sOptions, {"mode": "dra", "time_slices": 2}) == [
        "`time_slices` is a setting of the device plugin: use `mode: device-plugin`."
    ]
    assert errors_in(GpuStackK8sOptions, {"plugin_image": "a b"})[0].startswith("String should match pattern")


def test_it_runs_on_heads_and_gpu_nodes():
    assert [node.name for node in SITE.running("gpu_stack_k8s")] == ["head1", "gpu1", "gpu2"]
    assert [node.name for node in OPTIONS.gpu_nodes(SITE)] == ["gpu1", "gpu2"]


@pytest.mark.parametrize(
    ("options", "changes", "path", "sentence"),
    [
        (
            {"mode": "dra"},
            {"version": "1.33.4"},
            "mode",
            "Kubernetes 1.33.4 does not have the DRA driver's API.",
        ),
        (
            {"mode": "gpu-operator"},
            {},
            "mode",
            "Nothing applies the add-on gpu_operator, which this needs.",
        ),
        (
            {"network_operator": {"version": "network-operator-v26.4.0"}},
            {},
            "network_operator",
            "Nothing applies the add-on network_operator, which this needs.",
        ),
        (
            {"mig_strategy": "none"},
            {"mig": MIG},
            "mig_strategy",
            "gpu1 has MIG instances, which the strategy `none` gives to no pod.",
        ),
        (
            {"mig_strategy": "single"},
            {"mig": MIG},
            "mig_strategy",
            "gpu1 has 2 MIG profiles; the strategy `single` takes one.",
        ),
        (
            {"products": {"hgx-h200": "NVIDIA H200"}},
            {},
            "products.hgx-h200",
            "No GPU node of Kubernetes has the SKU hgx-h200.",
        ),
        (
            {},
            {"stack": {"containerd": STACK["containerd"]}},
            "",
            "gpu1 has GPUs in Kubernetes, and no role installs its driver.",
        ),
        (
            {},
            {"stack": {name: given for name, given in STACK.items() if name != "containerd"}},
            "",
            "containerd on gpu1 has no runtime nvidia, with which the device plugin reaches the driver.",
        ),
    ],
)
def test_mistakes_that_the_cluster_shows(options, changes, path, sentence):
    cluster = gpu_cluster(gpu_stack_k8s=GpuStackK8sOptions(**options), **changes)
    assert (path, sentence) in [(where, text) for where, text, _ in sentences(cluster, "gpu_stack_k8s")]


def test_a_site_without_mistakes():
    assert sentences(SITE, "gpu_stack_k8s") == []
    assert sentences(gpu_cluster(gpu_stack_k8s=OPTIONS, simulated=True, stack={}), "gpu_stack_k8s") == []


def test_labels_of_whole_gpus_have_gfds_names():
    assert node_labels.declared(OPTIONS, SITE, GPU) == {
        "nvidia.com/gpu.compute.major": "9",
        "nvidia.com/gpu.compute.minor": "0",
        "nvidia.com/gpu.count": "8",
        "nvidia.com/gpu.family": "hopper",
        "nvidia.com/gpu.memory": "81559",
        "nvidia.com/gpu.present": "true",
        "nvidia.com/gpu.product": "H100-SXM5-80GB",
        "nvidia.com/gpu.replicas": "1",
        "nvidia.com/gpu.sharing-strategy": "none",
        "nvidia.com/mig.capable": "true",
    }


def test_labels_of_mig_instances():
    mixed = gpu_cluster(gpu_stack_k8s=OPTIONS, mig=MIG)
    found = node_labels.declared(OPTIONS, mixed, mixed.by_name["gpu1"])
    assert found["nvidia.com/mig.strategy"] == "mixed"
    assert found["nvidia.com/mig-1g.10gb.count"] == "16"
    assert found["nvidia.com/mig-3g.40gb.product"] == "H100-SXM5-80GB-MIG-3g.40gb"
    assert (found["nvidia.com/gpu.count"], found["nvidia.com/gpu.replicas"]) == ("8", "0")
    single = GpuStackK8sOptions(mig_strategy="single", products={"hgx-h100": "NVIDIA H100 80GB HBM3"})
    cluster = gpu_cluster(gpu_stack_k8s=single, mig={"1g.10gb": 7})
    found = node_labels.declared(single, cluster, cluster.by_name["gpu1"])
    assert found["nvidia.com/gpu.product"] == "NVIDIA-H100-80GB-HBM3-MIG-1g.10gb"
    assert found["nvidia.com/gpu.count"] == "56"
    assert "nvidia.com/gpu.memory" not in found
    assert all(OWNED.fullmatch(key) for key in found)


def test_a_product_as_gfd_writes_it():
    assert product("NVIDIA A100-SXM4-40GB (rev 2)") == "NVIDIA-A100-SXM4-40GB-rev-2"


@pytest.mark.parametrize(
    ("options", "mig", "resources"),
    [
        ({}, {}, {"nvidia.com/gpu": 8}),
        ({"time_slices": 4}, {}, {"nvidia.com/gpu": 32}),
        ({}, {"1g.10gb+me": 1}, {"nvidia.com/mig-1g.10gb.me": 8}),
        ({"mig_strategy": "single"}, {"1g.10gb": 7}, {"nvidia.com/gpu": 56}),
        ({"mode": "dra"}, {}, {}),
    ],
)
def test_what_a_node_offers(options, mig, resources):
    given = GpuStackK8sOptions(**options)
    cluster = gpu_cluster(gpu_stack_k8s=given, mig=mig)
    assert given.gpu_resources(cluster.by_name["gpu1"]) == resources
    assert given.gpu_resources(cluster.by_name["head1"]) == {}


@pytest.mark.parametrize(
    ("version", "given", "how"),
    [("1.34.2", None, "cdi-cri"), ("1.20.2", None, "cdi-annotations"), ("1.34.2", "envvar", "envvar")],
)
def test_how_devices_are_named(version, given, how):
    options = GpuStackK8sOptions(device_list=given)
    cluster = gpu_cluster(gpu_stack_k8s=options, version=version)
    config = yaml.safe_load(plugin_config(options, cluster))
    assert config["flags"]["plugin"]["deviceListStrategy"] == [how]
    assert config["flags"]["plugin"]["passDeviceSpecs"] is (how == "envvar")


def test_the_device_plugin():
    runtime, config, plugin = objects(OPTIONS, SITE)
    assert runtime["handler"] == "nvidia"
    assert config["data"]["config.yaml"] == plugin_config(OPTIONS, SITE)
    pod = plugin["spec"]["template"]["spec"]
    assert pod["runtimeClassName"] == "nvidia"
    assert pod["nodeSelector"] == {"nvidia.com/gpu.present": "true"}
    container = pod["containers"][0]
    assert container["image"] == "nvcr.io/nvidia/k8s-device-plugin:v0.20.0"
    assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    mounts = {one["name"] for one in container["volumeMounts"]}
    assert mounts == {one["name"] for one in pod["volumes"]}


def test_another_configuration_makes_new_pods():
    key = "rackwright.dev/config-sha256"
    first = objects(OPTIONS, SITE)[-1]["spec"]["template"]["metadata"]["annotations"][key]
    other = objects(GpuStackK8sOptions(time_slices=2), SITE)[-1]["spec"]["template"]["metadata"][
        "annotations"
    ][key]
    assert first != other


def test_the_labs_plugin_needs_no_runtime():
    options = GpuStackK8sOptions(plugin_image="rack.lab/gpu-plugin:1")
    cluster = gpu_cluster(gpu_stack_k8s=options, simulated=True, stack={}, version="1.20.2")
    _, plugin = objects(options, cluster)
    pod = plugin["spec"]["template"]["spec"]
    assert "runtimeClassName" not in pod
    seen = {one["name"]: one["mountPath"] for one in pod["containers"][0]["volumeMounts"]}
    assert seen == {
        "kubelet-device-plugins-dir": "/var/lib/kubelet/device-plugins",
        "lab-gpus": "/usr/local/share/rackwright-lab-gpus",
        "config": "/config",
    }


def test_the_operators_have_objects_of_their_own():
    operator = GpuStackK8sOptions(
        mode="gpu-operator", network_operator=NetworkOperator(version="network-operator-v26.4.0")
    )
    (policy,) = objects(operator, gpu_cluster(gpu_stack_k8s=operator))
    assert "ofedDriver" not in policy["spec"]
    config = json.loads(policy["spec"]["rdmaSharedDevicePlugin"]["config"])
    assert config["configList"][0]["selectors"] == {"vendors": ["15b3"]}


def _unknown_keys(values: dict[str, Any], known: dict[str, Any] | None, path: str = "") -> list[str]:
    if known is None:
        return []
    found = [f"{path}{key}" for key in values if key not in known]
    for key, value in values.items():
        if isinstance(value, dict) and key in known:
            found += _unknown_keys(value, known[key], f"{path}{key}.")
    return found


@pytest.mark.parametrize("mode", ["gpu-operator", "dra"])
def test_the_values_are_keys_of_the_charts(mode):
    options = GpuStackK8sOptions(
        mode=mode, network_operator=NetworkOperator(version="network-operator-v26.4.0")
    )
    for chart, given in options.chart_values(gpu_cluster(gpu_stack_k8s=options)).items():
        assert _unknown_keys(dict(given), KEYS[chart]) == []
    assert _unknown_keys({"driver": {"on": False}}, KEYS["gpu_operator"]) == ["driver.on"]


def test_no_chart_installs_what_the_host_has():
    options = GpuStackK8sOptions(mode="gpu-operator")
    given = options.chart_values(SITE)["gpu_operator"]
    assert list(values.taken_over("gpu_operator", given)) == []
    assert given["driver"] == {"enabled": False, "nvidiaDriverCRD": {"enabled": False}}
    assert "toolkit.enabled" in list(
        values.taken_over("gpu_operator", {**given, "toolkit": {"enabled": True}})
    )
    assert "driver.enabled" in list(values.taken_over("gpu_operator", {}))


def test_the_plan_of_each_node():
    site = gpu_cluster(gpu_stack_k8s=OPTIONS, simulated=True, stack={})
    names = {
        node.name: [one.name for one in planned(site, node).operations if one.role == "gpu_stack_k8s"]
        for node in site.nodes
    }
    assert names["gpu1"] == ["Label the node's GPUs as declared"]
    assert names["head1"] == [
        "Create the folder for declared objects",
        "Write the objects of gpu_stack_k8s",
        "Apply the objects of gpu_stack_k8s",
    ]


KUBECTL_STAND_IN = """#!/bin/sh
# prints or changes the labels of one node, kept in a file
case "$*" in
*" get node "*) cat "$LABELS" ;;
*" label node "*)
    while [ "$1" != --overwrite ]; do shift; done; shift
    for one; do
        case $one in
        *=*) key=${one%%=*} ;;
        *-) key=${one%-} ;;
        esac
        grep -v "^$key=" "$LABELS" >"$LABELS.new" || :
        case $one in *=*) echo "$one" >>"$LABELS.new" ;; esac
        mv "$LABELS.new" "$LABELS"
    done ;;
esac
"""


def test_the_shell_sets_what_is_declared_and_removes_the_rest(tmp_path):
    stand_in = tmp_path / "kubectl"
    stand_in.write_text(KUBECTL_STAND_IN)
    stand_in.chmod(0o755)
    there = tmp_path / "labels"
    there.write_text(
        "kubernetes.io/os=linux\nnvidia.com/mig-1g.10gb.count=56\nnvidia.com/gpu.count=7\nnvidia.com/gpu.deploy.dcgm=true\n"
    )
    env = {"PATH": f"{tmp_path}:/usr/bin:/bin", "LABELS": str(there)}
    wanted = node_labels.declared(OPTIONS, SITE, GPU)

    def run(script: str) -> str:
        done = subprocess.run(
            ["sh", "-c", script], env=env, capture_output=True, text=True, timeout=20, check=True
        )
        return done.stdout.strip()

    assert run(node_labels.read(GPU)) == "nvidia.com/gpu.count=7\nnvidia.com/mig-1g.10gb.count=56"
    run(node_labels.write(GPU, wanted))
    assert run(node_labels.read(GPU)) == node_labels.lines(wanted)
    assert "nvidia.com/gpu.deploy.dcgm=true" in there.read_text()


OBJECTS = "the objects for GPUs are as declared"
LABELS = "GPU labels of nodes are those of their SKUs"
COUNTS = "nodes offer the GPUs of their SKUs"
RUNS = "the device plugin runs on every GPU node"
ONE = "Kubernetes installs no second driver"
_GET = f"{KUBECTL} --request-timeout=30s get"


def _nodes(count: str = "8", **labels: str) -> dict[str, Answer]:
    items = []
    for name in ("gpu1", "gpu2"):
        there = node_labels.declared(OPTIONS, SITE, SITE.by_name[name])
        if name == "gpu2":
            there |= labels
        items.append(
            {
                "metadata": {"name": name, "labels": there},
                "status": {"allocatable": {"cpu": "224", "nvidia.com/gpu": count if name == "gpu2" else "8"}},
            }
        )
    return {f"{_GET} nodes -o json": json.dumps({"items": items})}


def _sets(*names: str, ready: int = 2, wanted: int = 2) -> dict[str, Answer]:
    status = {"numberReady": ready, "desiredNumberScheduled": wanted}
    items = [{"metadata": {"name": name}, "status": status} for name in names]
    return {f"{_GET} daemonsets --all-namespaces -o json": json.dumps({"items": items})}


def _compared(answer: str) -> dict[str, Answer]:
    return {f"sh -c {shlex.quote(compare('gpu_stack_k8s', objects(OPTIONS, SITE)))}": answer}


ONLY_ONE = {
    f"{_GET} nodes -o json": json.dumps(
        {"items": json.loads(str(_nodes()[f"{_GET} nodes -o json"]))["items"][:1]}
    )
}


def test_no_check_passes_without_knowing():
    never_passes("gpu_stack_k8s", CHECKS, SITE, HEAD)


@pytest.mark.parametrize(
    ("name", "answers", "status", "evidence"),
    [
        (OBJECTS, _compared("as declared\n"), "PASS", "3 objects are as declared"),
        (OBJECTS, _compared("apps.v1.DaemonSet differs\n"), "FAIL", "apps.v1.DaemonSet differs"),
        (OBJECTS, _compared(""), "UNKNOWN", "the API server did not compare the objects"),
        (LABELS, _nodes(), "PASS", "2 nodes"),
        (
            LABELS,
            _nodes(**{"nvidia.com/gpu.count": "7"}),
            "FAIL",
            "gpu2: nvidia.com/gpu.count is 7, not 8",
        ),
        (LABELS, ONLY_ONE, "FAIL", "gpu2 is not in the cluster"),
        (COUNTS, _nodes(), "PASS", "16 nvidia.com/gpu"),
        (COUNTS, _nodes("7"), "FAIL", "gpu2 offers 7 nvidia.com/gpu, not 8"),
        (RUNS, _sets(PLUGIN), "PASS", "ready on 2 nodes"),
        (RUNS, _sets("other"), "FAIL", f"the DaemonSet {PLUGIN} does not exist"),
        (RUNS, _sets(PLUGIN, ready=1), "FAIL", "the device plugin is ready on 1 of 2 nodes"),
        (
            RUNS,
            _sets(PLUGIN, ready=1, wanted=1),
            "FAIL",
            "the device plugin is scheduled on 1 nodes; 2 have GPUs",
        ),
        (ONE, _sets(PLUGIN), "PASS", "none of 1 DaemonSets installs a driver"),
        (
            ONE,
            _sets(PLUGIN, "nvidia-driver-daemonset"),
            "FAIL",
            "nvidia-driver-daemonset installs what the host has already; its chart's values are not those of this role",
        ),
    ],
)
def test_check(name, answers, status, evidence):
    found = judged("gpu_stack_k8s", CHECKS, name, SITE, HEAD, FakeHost(answers))
    assert (found.status, found.evidence) == (status, evidence)


def test_gfds_product_counts_where_it_is_declared():
    for products, status in (({}, "PASS"), ({"hgx-h100": "NVIDIA H100 80GB HBM3"}, "FAIL")):
        options = GpuStackK8sOptions(mode="gpu-operator", products=products)
        cluster = gpu_cluster(gpu_stack_k8s=options)
        found = judged("gpu_stack_k8s", CHECKS, LABELS, cluster, cluster.by_name["head1"], FakeHost(_nodes()))
        assert found.status == status, found

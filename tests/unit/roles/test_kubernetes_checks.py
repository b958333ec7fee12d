"""The kubernetes role's checks: each is seen to find its fault, and none passes on a node that does not answer."""

from __future__ import annotations

import json
import shlex
from typing import Any

import pytest

from rackwright.kubernetes.commands import compare
from rackwright.model.types import Platform
from rackwright.roles.kubernetes import cluster_objects, commands, etcd, kubelet, network, readings, texts
from rackwright.roles.kubernetes.options import KubernetesOptions
from rackwright.roles.kubernetes.verify import CHECKS
from tests.unit.roles.container_site import never_passes
from tests.unit.roles.fake_facts import file, unit
from tests.unit.roles.fake_host import Answer, FakeHost, judged
from tests.unit.roles.kubernetes_sites import kubernetes

SITE = kubernetes()
GPU, HEAD = SITE.by_name["gpu1"], SITE.by_name["cp1"]
OPTIONS = HEAD.options["kubernetes"]
assert isinstance(OPTIONS, KubernetesOptions)
ADMIN = "kubectl --kubeconfig /etc/kubernetes/admin.conf"


def _node(name: str = "gpu1", **changes: Any) -> dict[str, Any]:
    node = SITE.by_name[name]
    conditions = {"Ready": "True", "MemoryPressure": "False", "DiskPressure": "False", "PIDPressure": "False"}
    found = {
        "metadata": {"name": name, "labels": {**texts.labels(OPTIONS, node), "kubernetes.io/os": "linux"}},
        "spec": {},
        "status": {
            "conditions": [{"type": kind, "status": status} for kind, status in conditions.items()],
            "capacity": {"cpu": str(node.sku.cpus), "memory": f"{node.sku.memory_mib - 9000}Mi"},
            "nodeInfo": {"kubeletVersion": "v1.34.2", "containerRuntimeVersion": "containerd://2.1.5"},
        },
    }
    found["status"].update(changes.pop("status", {}))
    found["metadata"]["labels"].update(changes.pop("labels", {}))
    return {**found, **changes}


def _own(node: dict[str, Any]) -> dict[str, Answer]:
    question = "kubectl --kubeconfig /etc/kubernetes/kubelet.conf --request-timeout=20s get node gpu1 -o json"
    return {question: json.dumps(node)}


def _said(command: str, answer: Answer) -> dict[str, Answer]:
    return {f"sh -c {shlex.quote(command)}": answer}


def _judge(name: str, answers: dict[str, Answer], node=GPU, cluster=SITE):
    return judged("kubernetes", CHECKS, name, cluster, node, FakeHost(answers))


def _conditions(**statuses: str) -> dict[str, Any]:
    found = {"Ready": "True", "MemoryPressure": "False", "DiskPressure": "False", "PIDPressure": "False"}
    found.update(statuses)
    return {"conditions": [{"type": kind, "status": one} for kind, one in found.items() if one != "gone"]}


READY = "the node is Ready"
VERSION = "the kubelet has the declared version"
LABELS = "the node's labels are as declared"
TAINTS = "the node's taints are as declared"
CAPACITY = "the node has the SKU's CPUs and memory"


@pytest.mark.parametrize("name", [READY, VERSION, LABELS, TAINTS, CAPACITY])
def test_a_node_as_declared(name):
    assert _judge(name, _own(_node())).status == "PASS"


@pytest.mark.parametrize(
    ("name", "node", "evidence"),
    [
        (READY, _node(status=_conditions(Ready="False")), "Ready is False"),
        (READY, _node(status=_conditions(Ready="Unknown")), "Ready is Unknown"),
        (READY, _node(status=_conditions(Ready="gone")), "no condition Ready"),
        (READY, _node(status=_conditions(DiskPressure="True")), "DiskPressure is True"),
        (READY, _node(status=_conditions(PIDPressure="gone")), "PIDPressure is missing"),
        (VERSION, _node(status={"nodeInfo": {"kubeletVersion": "v1.33.1"}}), "the kubelet is v1.33.1"),
        (LABELS, _node(labels={"rackwright.dev/sku": "other"}), "rackwright.dev/sku=other instead of"),
        (LABELS, _node(labels={"rackwright.dev/old": "x"}), "rackwright.dev/old is not declared"),
        (
            TAINTS,
            _node(spec={"taints": [{"key": "a", "value": "b", "effect": "NoSchedule"}]}),
            "a=b:NoSchedule",
        ),
        (CAPACITY, _node(status={"capacity": {"cpu": "8", "memory": "9Ti"}}), "8 CPUs; SKU gpu-node has"),
        (CAPACITY, _node(status={"capacity": {"cpu": "224", "memory": "1000Gi"}}), "MiB of memory"),
    ],
)
def test_a_node_that_differs(name, node, evidence):
    result = _judge(name, _own(node))
    assert (result.status, evidence in result.evidence) == ("FAIL", True), result


@pytest.mark.parametrize(
    ("name", "node"),
    [
        (VERSION, _node(status={"nodeInfo": {}})),
        (CAPACITY, _node(status={"capacity": {}})),
        (CAPACITY, _node(status={"capacity": {"cpu": "many", "memory": "1Gi"}})),
        (READY, {"metadata": {}}),
    ],
)
def test_what_the_api_leaves_out_is_unknown(name, node):
    assert _judge(name, _own(node)).status == "UNKNOWN"


def test_a_cordon_is_no_undeclared_taint():
    taint = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}
    assert _judge(TAINTS, _own(_node(spec={"taints": [taint]}))).status == "PASS"


def test_a_container_has_the_hosts_capacity():
    lab = kubernetes(platform=Platform.CONTAINER)
    assert _judge(CAPACITY, {}, lab.by_name["gpu1"], lab).status == "OUT OF SCOPE"


@pytest.mark.parametrize(
    ("printed", "status"),
    [
        ("member\n", "PASS"),
        ("not a member\n", "FAIL"),
        ("its node object was deleted\n", "FAIL"),
        ("", "FAIL"),
    ],
)
def test_membership(printed, status):
    answers = _said(commands.membership(GPU), printed)
    assert _judge("the node is a member of the cluster", answers).status == status


def _written(wanted: dict[str, str]) -> dict[str, Answer]:
    answers: dict[str, Answer] = {}
    for path, text in wanted.items():
        answers |= file(path, text, mode=texts.mode(path))
    return answers


def test_files_that_were_changed():
    wanted = texts.node_files(OPTIONS, SITE, GPU)
    name = "Kubernetes' files are as declared"
    assert _judge(name, _written(wanted)).status == "PASS"
    tampered = {**wanted, kubelet.CONFIG: wanted[kubelet.CONFIG].replace("maxPods: 110", "maxPods: 500")}
    result = _judge(name, _written(tampered))
    assert (result.status, kubelet.CONFIG in result.evidence) == ("FAIL", True)
    joining = _judge(name, _written({**wanted, texts.JOIN: "other"}))
    assert (joining.status, texts.JOIN in joining.evidence) == ("FAIL", True)


def test_a_kubelet_that_stands_still():
    answers = unit(texts.KUBELET, active="failed")
    assert _judge("kubelet is running", answers).status == "FAIL"


def test_a_kubelet_that_runs_with_other_settings():
    document = kubelet.document(OPTIONS, GPU)
    question = f"{ADMIN} --request-timeout=20s get --raw /api/v1/nodes/gpu1/proxy/configz"
    name = "the running kubelet has the declared configuration"
    good = {question: json.dumps({"kubeletconfig": {**document, "syncFrequency": "1m0s"}})}
    assert _judge(name, good).status == "PASS"
    bad = {question: json.dumps({"kubeletconfig": {**document, "maxPods": 500}})}
    result = _judge(name, bad)
    assert (result.status, "maxPods 500 instead of 110" in result.evidence) == ("FAIL", True)
    assert _judge(name, {question: "{}"}).status == "UNKNOWN"


def test_routes():
    name, question = "routes lead to the pods of every node", f"ip -o route show proto {network.PROTOCOL}"
    good = "10.244.10.0/24 via 10.9.0.10 dev eth0 \n10.244.22.0/24 via 10.9.0.22 dev eth0 \n"
    assert _judge(name, {question: good}).status == "PASS"
    lost = _judge(name, {question: good.splitlines()[0]})
    assert (lost.status, "10.244.22.0/24" in lost.evidence) == ("FAIL", True)
    strange = _judge(name, {question: good + "10.244.99.0/24 via 10.9.0.99 dev eth0 \n"})
    assert (strange.status, "10.244.99.0/24" in strange.evidence) == ("FAIL", True)


def test_manifests_of_static_pods():
    name, command = (
        "the control plane's manifests are unchanged",
        commands.manifests(OPTIONS, SITE, HEAD),
    )
    for printed, status in (
        ("as declared\n", "PASS"),
        ("kube-apiserver.yaml was changed\n", "FAIL"),
        ("", "UNKNOWN"),
    ):
        assert _judge(name, _said(command, printed), HEAD).status == status


@pytest.mark.parametrize(
    ("until", "status"), [("Nov 28 04:45:00 2027", "PASS"), ("Dec  1 04:45:00 2026", "FAIL"), ("", "UNKNOWN")]
)
def test_certificates(until, status):
    printed = f"pki/apiserver.crt notAfter={until} GMT\n" if until else "unable to load certificate\n"
    answers = {**_said(readings.CERTIFICATES, printed), "date +%s": "1795840000\n"}  # 2026-11-28
    assert _judge("no certificate is about to expire", answers, HEAD).status == status


def test_etcd_health():
    command = f"{etcd.ETCDCTL} endpoint health --write-out=json"
    for answer, status in (
        ('[{"endpoint":"https://127.0.0.1:2379","health":true,"took":"9.3ms"}]', "PASS"),
        (
            '[{"endpoint":"https://127.0.0.1:2379","health":false,"error":"context deadline exceeded"}]',
            "FAIL",
        ),
        ("[]", "UNKNOWN"),
        ((1, "", "unhealthy"), "UNKNOWN"),
    ):
        assert _judge("etcd is healthy", _said(command, answer), HEAD).status == status


@pytest.mark.parametrize(
    ("number", "active", "status"),
    [("3", "active", "PASS"), ("0", "active", "FAIL"), ("3", "inactive", "FAIL")],
)
def test_snapshots_of_etcd(number, active, status):
    folder = OPTIONS.snapshots.folder
    command = f"find {folder} -name '*.db' -newermt '-12 hours' 2>/dev/null | wc -l"
    answers = {**_said(command, f"{number}\n"), **unit(etcd.TIMER, active=active)}
    assert _judge("etcd's snapshots are recent", answers, HEAD).status == status


def _items(*items: dict[str, Any]) -> str:
    return json.dumps({"items": list(items)})


def _pod(name: str, node: str = "gpu1", space: str = "kube-system", **status: Any) -> dict[str, Any]:
    there = {"phase": "Running", "containerStatuses": [{"ready": True, "restartCount": 0}], **status}
    return {"metadata": {"name": name, "namespace": space}, "spec": {"nodeName": node}, "status": there}


@pytest.mark.parametrize(
    ("names", "status"),
    [(("cp1", "gpu1", "gpu2"), "PASS"), (("cp1", "gpu1"), "FAIL"), (("cp1", "gpu1", "gpu2", "gpu9"), "FAIL")],
)
def test_nodes_of_the_cluster(names, status):
    answers = {f"{ADMIN} --request-timeout=30s get nodes -o json": _items(*map(_node_named, names))}
    assert _judge("every declared node is in the cluster", answers, HEAD).status == status


def _node_named(name: str) -> dict[str, Any]:
    return {"metadata": {"name": name}}


@pytest.mark.parametrize(
    ("pods", "status"),
    [
        ([_pod("etcd-cp1")], "PASS"),
        ([], "FAIL"),
        ([_pod("coredns", phase="Pending", containerStatuses=[])], "FAIL"),
        ([_pod("coredns", containerStatuses=[{"ready": False, "restartCount": 0}])], "FAIL"),
        ([_pod("kube-proxy", containerStatuses=[{"ready": True, "restartCount": 80}])], "FAIL"),
    ],
)
def test_pods_of_the_system(pods, status):
    question = f"{ADMIN} --request-timeout=30s get pods --namespace kube-system -o json"
    assert _judge("kube-system's pods are ready", {question: _items(*pods)}, HEAD).status == status


def test_pods_on_the_control_plane():
    question = f"{ADMIN} --request-timeout=30s get pods --all-namespaces -o json"
    name = "no pod of a user runs on the control plane"
    good = [_pod("etcd-cp1", "cp1"), _pod("web", "gpu1", "default")]
    assert _judge(name, {question: _items(*good)}, HEAD).status == "PASS"
    bad = _judge(name, {question: _items(*good, _pod("web", "cp1", "default"))}, HEAD)
    assert (bad.status, "default/web on cp1" in bad.evidence) == ("FAIL", True)


def test_the_api_at_its_address():
    question = "curl --silent --show-error --max-time 10 --cacert /etc/kubernetes/pki/ca.crt https://10.9.0.10:6443/readyz"
    name = "the API answers every node at its address"
    for answer, status in (
        ("ok", "PASS"),
        ((7, "", "connection refused"), "FAIL"),
        ((60, "", "certificate problem"), "FAIL"),
        ((127, "", ""), "UNKNOWN"),
    ):
        assert _judge(name, {question: answer}, HEAD).status == status


def test_objects():
    command = compare("kubernetes", cluster_objects.objects(OPTIONS, SITE))
    name = "Kubernetes' own objects are as declared"
    for printed, status in (("as declared\n", "PASS"), ("rbac differs\n", "FAIL"), ("", "UNKNOWN")):
        assert _judge(name, _said(command, printed), HEAD).status == status


def test_nothing_passes_without_answers():
    for node in (GPU, HEAD):
        never_passes("kubernetes", CHECKS, SITE, node)

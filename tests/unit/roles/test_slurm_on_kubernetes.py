"""Slurm's daemons in pods: options, files, objects, plan, image, the operators' custom resources."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import jsonschema
import pytest

from rackwright.data import Site
from rackwright.kubernetes.objects import document_objects
from rackwright.model.interfaces import RunsWorkloadManager
from rackwright.model.types import Platform, WorkloadManager
from rackwright.pyinfra_driver.driver import Driver
from rackwright.pyinfra_driver.offline import EmptyNode
from rackwright.roles.slurm.options import SlurmOptions
from rackwright.roles.slurm.verify import CHECKS as SLURM_CHECKS
from rackwright.roles.slurm_on_kubernetes import declared, image, texts
from rackwright.roles.slurm_on_kubernetes.kinds import kinds
from rackwright.roles.slurm_on_kubernetes.places import places, slurmd_nodes
from rackwright.shipped import SITE_DEPLOY
from rackwright.workload.lookup import manager_role
from tests.factories import make_node, make_sku
from tests.unit.roles.fake_host import claimed
from tests.unit.roles.slurm_pods import KEY, cluster, dgx_nodes, lab_nodes

SCHEMAS = Path(__file__).parent / "recorded" / "slurm_operators"
MODERN = {
    "packages": {"source": "schedmd", "release": "25.11"},
    "accounting": {"storage_host": "db.example.com"},
}


def options(made):
    return made.primary.options["slurm_on_kubernetes"]


def objects(made):
    return declared.objects(options(made), made)


def one(made, kind, name):
    return next(item for item in objects(made) if (item["kind"], item["metadata"]["name"]) == (kind, name))


def found(made, role="slurm_on_kubernetes"):
    return [(path, sentence) for path, sentence, _ in made.primary.options[role].problems(made)]


class Kept:
    """A Reporter that keeps plans."""

    def __init__(self):
        self.plans = []

    def planned(self, plan):
        self.plans.append(plan)


def planned(made, node):
    """What the two roles would do to a node on which nothing is."""
    kept = Kept()
    site = Site(made, node, offline=True, only_roles=frozenset({"slurm", "slurm_on_kubernetes"}))
    Driver([site], SITE_DEPLOY, kept, connector=EmptyNode).plan()
    return kept.plans[0]


# The slurm role with daemons in pods


def test_with_pods_the_slurm_role_is_on_the_primary_head_alone():
    made = cluster()
    assert [node.name for node in made.running("slurm")] == ["cp1"]
    assert claimed("slurm", SLURM_CHECKS, made.primary) == ()
    given = made.primary.options["slurm"]
    assert given.listeners(made.primary) == ()
    assert given.backup_parts(made, made.primary) == ()
    assert not given.uses_database_on(made.primary)
    assert given.reserved_mib(made.primary) == 0


def test_kubernetes_drains_the_nodes():
    made = cluster()
    assert {manager_role(node).workload_manager for node in made.nodes} == {WorkloadManager.KUBERNETES}
    slurm = made.primary.offers(SlurmOptions)
    assert isinstance(slurm, RunsWorkloadManager)
    assert not slurm.manages_nodes


def test_files_name_pods():
    made = cluster({"network": "pod"})
    files = texts.config(options(made), made)
    assert set(files) == {
        "cgroup.conf", "epilog.sh", "mpi.conf", "plugstack.conf", "prolog.sh", "slurm-restart.conf", "slurm.conf",
        "slurmdbd.conf",
    }  # fmt: skip
    assert "SlurmctldHost=slurmctld-0(slurmctld.slurm.svc.cluster.local)\n" in files["slurm-restart.conf"]
    assert "AccountingStorageHost=slurmdbd.slurm.svc.cluster.local\n" in files["slurm-restart.conf"]
    assert (
        "NodeName=worker[1-2] NodeAddr=worker[1-2].slurmd.slurm.svc.cluster.local CPUs=2 "
        in files["slurm.conf"]
    )
    assert "CommunicationParameters=NoAddrCache\n" in files["slurm.conf"]
    assert "LogFile=" not in files["slurm.conf"]
    assert "DbdHost=slurmdbd-0\n" in files["slurmdbd.conf"]
    assert "StorageHost=mariadb.slurm.svc.cluster.local\n" in files["slurmdbd.conf"]
    assert "StoragePass" not in files["slurmdbd.conf"]


def test_files_on_the_hosts_network_name_the_nodes_addresses():
    made = cluster(nodes=dgx_nodes())
    files = texts.config(options(made), made)
    assert "NodeName=gpu[001-004] NodeAddr=10.1.0.[11-14] CPUs=224 " in files["slurm.conf"]
    assert "Gres=gpu:h100:8" in files["slurm.conf"]
    assert "ray1" not in files["slurm.conf"]
    assert "NoAddrCache" not in files["slurm.conf"]
    assert "IgnoreSystemd=yes\n" in files["cgroup.conf"]
    assert "SystemdTimeout" not in files["cgroup.conf"]
    assert "RebootProgram" not in files["slurm.conf"]


@pytest.mark.parametrize(
    ("slurm", "sentences"),
    [
        ({"backups": ["cp1"]}, ["A pod of slurmctld that fails is started again elsewhere; it has no backups."]),
        ({"health_check": {"program": "/usr/sbin/nhc"}}, ["A pod has no programs of the node."]),
        ({"accounting": {"dbd_host": "cp1"}}, ["slurmdbd runs in a pod too."]),
        ({"partitions": {"main": {"default": True, "nodes": "worker9"}}},
         ["worker9 is not declared under nodes."]),
    ],
)  # fmt: skip
def test_what_pods_do_not_have_is_refused(slurm, sentences):
    assert [sentence for _, sentence in found(cluster(slurm=slurm), "slurm")] == sentences


def test_daemons_in_pods_need_the_role_that_runs_them():
    made = cluster()
    bare = made.model_copy(
        update={
            "nodes": tuple(
                node.model_copy(
                    update={"options": {k: v for k, v in node.options.items() if k != "slurm_on_kubernetes"}}
                )
                for node in made.nodes
            )
        }
    )
    assert ("daemons", "No role runs Slurm's daemons in pods.") in found(bare, "slurm")


# Options


def test_the_examples_have_no_problems():
    for made in (
        cluster({"network": "pod"}),
        cluster(nodes=dgx_nodes()),
        cluster(nodes=dgx_nodes(workload=None)[:-1]),
    ):
        assert found(made) == []
        assert found(made, "slurm") == []


@pytest.mark.parametrize(
    ("given", "slurm", "sentence"),
    [
        ({}, {"daemons": "nodes"}, "The slurm section does not declare daemons in pods."),
        ({}, {"slurmd_port": 7000}, "On the host's network slurmd listens on 6818, not on 7000."),
        ({"login": {"port": 22}}, {}, "cp1's own sshd has port 22."),
        ({"flavour": "slinky"}, {}, "Slinky needs Slurm 25.11 or later, not 24.11."),
        ({"flavour": "slinky"}, MODERN, "Slinky needs Kubernetes 1.29 or later, not 1.20.2."),
        ({"flavour": "soperator"}, {}, "Soperator uses an accounting database that the site runs."),
        (
            {"flavour": "soperator"},
            {**MODERN, "partitions": {"main": {"default": True, "nodes": "worker1"}}},
            "Partition main has some nodes of lab-node and not others; an operator knows them as one set.",
        ),
    ],
)  # fmt: skip
def test_problems(given, slurm, sentence):
    assert sentence in [text for _, text in found(cluster(given, slurm))]


def test_without_workers_there_is_nothing_to_run():
    made = cluster(nodes=(dgx_nodes()[0], dgx_nodes()[-1]))
    assert ("", "No worker has a slurmd pod.") in found(made)


def test_the_firewall_knows_what_listens_on_the_hosts_network():
    made = cluster(nodes=dgx_nodes())
    by_node = {node.name: node.options["slurm_on_kubernetes"].listeners(node) for node in made.nodes[:2]}
    assert [(one.program, one.ports) for one in by_node["head1"]][:1] == [("sshd", (2222, 2222))]
    slurmd = by_node["gpu001"][0]
    assert (slurmd.program, slurmd.ports, [str(net) for net in slurmd.sources]) == (
        "slurmd", (6818, 6818), ["10.244.0.0/16"],
    )  # fmt: skip
    in_pods = cluster({"network": "pod"})
    assert all(node.options["slurm_on_kubernetes"].listeners(node) == () for node in in_pods.nodes)


# Objects


def test_objects_in_order():
    made = cluster({"network": "pod"})
    assert [f"{item['kind']}/{item['metadata']['name']}" for item in objects(made)] == [
        "Namespace/slurm", "PriorityClass/slurm", "ConfigMap/slurm-config", "ConfigMap/slurm-scripts",
        "ConfigMap/slurm-users", "PodDisruptionBudget/slurmd", "NetworkPolicy/daemons", "NetworkPolicy/mariadb",
        "NetworkPolicy/login", "Service/mariadb", "StatefulSet/mariadb", "Service/slurmdbd", "StatefulSet/slurmdbd",
        "Service/slurmctld", "StatefulSet/slurmctld", "Service/login", "Deployment/login", "Service/slurmd",
        "DaemonSet/slurmd-worker1", "DaemonSet/slurmd-worker2",
    ]  # fmt: skip


def test_no_secret_is_among_the_objects():
    for made in (cluster(), cluster({"flavour": "slinky"}, MODERN, "1.34.0")):
        text = json.dumps(document_objects(objects(made)))
        assert '"kind": "Secret"' not in text
        assert "BEGIN" not in text


def test_a_pod_of_slurmd_takes_all_gpus_of_its_node():
    made = cluster(nodes=dgx_nodes())
    spec = one(made, "DaemonSet", "slurmd-dgx-h100")["spec"]["template"]["spec"]
    slurmd = spec["containers"][0]
    assert slurmd["resources"]["limits"] == {"nvidia.com/gpu": "8"}
    assert slurmd["resources"]["requests"]["memory"] == f"{int(2097152 * 0.95) + 256}Mi"
    assert spec["nodeSelector"] == {
        "rackwright.dev/workload": "slurm-on-kubernetes", "rackwright.dev/sku": "dgx-h100",
    }  # fmt: skip
    assert spec["hostNetwork"]
    assert spec["dnsPolicy"] == "ClusterFirstWithHostNet"
    assert slurmd["securityContext"] == {"privileged": True}
    assert "SIMULATED_GPUS" not in [entry["name"] for entry in slurmd["env"]]


def test_nodes_without_a_declared_workload_are_named():
    made = cluster(nodes=dgx_nodes(2, workload=None)[:-1])
    spec = one(made, "DaemonSet", "slurmd-dgx-h100")["spec"]["template"]["spec"]
    terms = spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"][
        "nodeSelectorTerms"
    ]
    assert terms[0]["matchExpressions"][0]["values"] == ["gpu001", "gpu002"]


def test_kinds_of_the_same_sku_have_names_that_differ():
    nodes = dgx_nodes(2)
    other = nodes[2].model_copy(update={"sku": make_sku("DGX_H100", memory_mib=4096)})
    made = cluster(nodes=(*nodes[:2], other))
    assert [kind.name for kind in kinds(options(made), made)] == ["dgx-h100", "dgx-h100-x2"]


def test_on_the_pod_network_each_node_has_its_name_in_dns():
    made = cluster({"network": "pod"})
    spec = one(made, "DaemonSet", "slurmd-worker1")["spec"]
    assert spec["updateStrategy"] == {"type": "OnDelete"}
    inner = spec["template"]["spec"]
    assert (inner["hostname"], inner["subdomain"], inner["hostNetwork"]) == ("worker1", "slurmd", False)
    assert inner["nodeSelector"] == {"kubernetes.io/hostname": "worker1"}


def test_state_is_in_a_folder_of_the_primary_head_or_in_claims():
    made = cluster()
    inner = one(made, "StatefulSet", "slurmctld")["spec"]["template"]["spec"]
    assert inner["nodeSelector"] == {"kubernetes.io/hostname": "cp1"}
    state = next(volume for volume in inner["volumes"] if volume["name"] == "state")
    assert state["hostPath"]["path"] == "/var/lib/rackwright-slurm/state"
    claimed = one(cluster({"volumes": {"storage_class": "fast"}}), "StatefulSet", "slurmctld")["spec"]
    assert claimed["volumeClaimTemplates"][0]["spec"]["storageClassName"] == "fast"
    assert "nodeSelector" not in claimed["template"]["spec"]


def test_every_mounted_volume_is_there():
    for given in ({}, {"network": "pod"}, {"volumes": {"storage_class": "fast"}}):
        for nodes in (lab_nodes(), dgx_nodes()):
            for item in objects(cluster(given, nodes=nodes)):
                if item["kind"] not in ("StatefulSet", "DaemonSet", "Deployment"):
                    continue
                inner = item["spec"]["template"]["spec"]
                claims = item["spec"].get("volumeClaimTemplates", [])
                there = {v["name"] for v in inner["volumes"]} | {v["metadata"]["name"] for v in claims}
                used = {m["name"] for c in inner["containers"] for m in c["volumeMounts"]}
                assert used == there, item["metadata"]["name"]


def test_users_of_the_cluster_file_are_in_every_pod():
    made = cluster()
    assert texts.users(made) == {
        "passwd": "ada:x:3000:3000::/home/ada:/bin/bash\n",
        "group": "ada:x:3000:\n",
        "shadow": "ada:*:19000:0:99999:7:::\n",
        "keys.ada": f"{KEY}\n",
    }


def test_the_disruption_budget_follows_the_server():
    assert one(cluster(), "PodDisruptionBudget", "slurmd")["apiVersion"] == "policy/v1beta1"
    newer = one(cluster(version="1.34.2"), "PodDisruptionBudget", "slurmd")
    assert (newer["apiVersion"], newer["spec"]["minAvailable"]) == ("policy/v1", 2)


def test_the_database_is_open_to_slurmdbd_alone():
    (rule,) = one(cluster(), "NetworkPolicy", "mariadb")["spec"]["ingress"]
    assert rule["from"][0]["podSelector"]["matchLabels"]["rackwright.dev/slurm"] == "slurmdbd"


def test_a_database_of_the_site_is_no_pod():
    made = cluster(slurm={"accounting": {"storage_host": "db.example.com"}})
    assert not [item for item in objects(made) if item["metadata"]["name"] == "mariadb"]
    assert "StorageHost=db.example.com\n" in texts.config(options(made), made)["slurmdbd.conf"]


# What a change costs


def test_a_partition_reloads_and_a_port_makes_new_pods():
    before, partition, port = (
        cluster(slurm=slurm) for slurm in ({}, {"max_job_count": 5000}, {"slurmctld_port": 7817})
    )
    same = [texts.template(options(made), made, "slurmd") for made in (before, partition, port)]
    assert same[0] == same[1] != same[2]
    loaded = [texts.digest(options(made), made) for made in (before, partition, port)]
    assert loaded[0] != loaded[1]
    assert loaded[0] == loaded[2]


def test_the_digest_is_what_the_start_script_computes(tmp_path):
    made = cluster()
    files = texts.config(options(made), made) | {"passwd": texts.users(made)["passwd"]}
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    paths = [str(tmp_path / path.rpartition("/")[2]) for path in texts.reloaded(options(made), made)]
    printed = subprocess.run(
        ["sh", "-c", 'cat "$@" | sha256sum | cut -c1-64', "sh", *paths],
        capture_output=True, text=True, check=True, timeout=20,
    ).stdout.strip()  # fmt: skip
    assert printed == texts.digest(options(made), made)
    assert texts.reloaded(options(made), made)[-1] == "/var/lib/extrausers/passwd", "a new user is loaded too"


@pytest.mark.parametrize("given", [{}, {"network": "pod"}, {"login": {"enabled": False}}])
def test_scripts_are_shell(given):
    made = cluster(given)
    scripts = [texts.scripts(options(made), made)["start.sh"]]
    scripts += [texts.settle(options(made), made, mode) for mode in ("read", "write")]
    for script in scripts:
        subprocess.run(["dash", "-n"], input=script, text=True, check=True, timeout=20)


_KUBECTL = """\
#!/bin/sh
# answers as the API of a small cluster would; what it was asked to change is in $CALLS
case "$*" in
*"rollout status"*) echo "successfully rolled out" ;;
*"get secret munge"*) printf key | base64 ;;
*"sha256sum /etc/munge/munge.key"*) printf %s "${USED_KEY:-key}" | sha256sum ;;
*"get pods --selector rackwright.dev/slurm=slurmd -o go-template"*)
    if [ -e "$CALLS.replaced" ]; then t=$TEMPLATE; else t=${POD_TEMPLATE:-$TEMPLATE}; fi
    echo "slurmd-a worker1 $t True"; echo "slurmd-b worker2 $t ${READY:-True}" ;;
*"get nodes"*) echo "cp1 True"; echo "worker1 True"; echo "worker2 ${NODE:-True}" ;;
*"cat /run/rackwright/loaded"*) echo "${LOADED:-$FILES}" ;;
*"sha256sum"*) echo "$FILES  -" ;;
*"squeue"*"worker2"*) echo "${JOBS:-}" ;;
*squeue*) ;;
*"sinfo -h -N -o %N|%T|%E"*)
    echo "worker3|drained|ticket 4711"
    [ -z "${DRAINED:-}" ] || echo "$DRAINED|drained|rackwright: new pod"
    sed -n 's/.*nodename=\\([a-z0-9]*\\) state=drain .*/\\1|draining|rackwright: new pod/p' "$CALLS" ;;
*sinfo*) echo idle ;;
*) echo "$*" | sed 's/.*--namespace slurm //' >>"$CALLS"; case "$*" in *"delete pods"*) touch "$CALLS.replaced" ;; esac ;;
esac
"""


def _settled(tmp_path, mode, **environment):
    """(exit status, output, what was changed) of the script beside a kubectl that is made up."""
    made = cluster({"network": "pod"})
    script = texts.settle(options(made), made, mode)
    program = tmp_path / "kubectl"
    program.write_text(_KUBECTL)
    program.chmod(0o755)
    calls = tmp_path / "calls"
    calls.write_text("")
    known = {
        "FILES": texts.digest(options(made), made),
        "TEMPLATE": texts.template(options(made), made, "slurmd"),
        "CALLS": str(calls),
        "PATH": f"{tmp_path}:{os.environ['PATH']}",
    }
    done = subprocess.run(
        ["sh", "-c", script], capture_output=True, text=True, check=False, timeout=60, env={**known, **environment}
    )  # fmt: skip
    return (
        done.returncode,
        (done.stdout + done.stderr).strip().splitlines()[-1:],
        calls.read_text().splitlines(),
    )


@pytest.mark.parametrize(
    ("environment", "answer"),
    [
        ({}, "as declared"),
        ({"USED_KEY": "other"}, "pods have another munge key"),
        ({"POD_TEMPLATE": "earlier"}, "0 of 2 pods of slurmd are ready with the declared template"),
        ({"READY": "False"}, "1 of 2 pods of slurmd are ready with the declared template"),
        ({"READY": "False", "NODE": "False"}, "as declared"),
        ({"LOADED": "earlier"}, "slurmctld has loaded other files"),
        ({"DRAINED": "worker2"}, "still drained for new pods: worker2"),
    ],
)
def test_what_differs_is_said(tmp_path, environment, answer):
    assert _settled(tmp_path, "read", **environment) == (0, [answer], [])


def test_changed_files_are_reconfigured(tmp_path):
    status, _, changed = _settled(tmp_path, "write", LOADED="earlier")
    assert status == 0
    assert [line.partition(" -- ")[2][:20] for line in changed] == [
        "scontrol reconfigure",
        "sh -c echo " + changed[1].partition("echo ")[2][:9],
    ]


def test_idle_nodes_get_new_pods_and_busy_ones_keep_theirs(tmp_path):
    status, said, changed = _settled(tmp_path, "write", POD_TEMPLATE="earlier", JOBS="17")
    assert status == 1
    assert said == [
        "jobs run on worker2: their pods keep the earlier template; apply again once they are idle"
    ]
    words = [line.rpartition(" -- ")[2] for line in changed]
    assert words == [
        "scontrol update nodename=worker1 state=drain reason=rackwright: new pod",
        "scontrol update nodename=worker2 state=drain reason=rackwright: new pod",
        "delete pods slurmd-a",
        "scontrol update nodename=worker1 state=resume",
        "scontrol update nodename=worker2 state=resume",
    ]


def test_a_node_that_an_interrupted_run_drained_comes_back(tmp_path):
    status, _, changed = _settled(tmp_path, "write", DRAINED="worker2")
    assert status == 0
    assert [line.rpartition(" -- ")[2] for line in changed] == [
        "scontrol update nodename=worker2 state=resume"
    ]


# Plan, secrets, image


def test_the_plan_is_the_primary_heads_alone():
    made = cluster()
    plan = planned(made, made.primary)
    assert plan.error is None
    assert [operation.name for operation in plan.operations if operation.role == "slurm_on_kubernetes"] == [
        "Write the secret munge", "Write the secret slurm-database", "Write the secret slurm-login",
        "Create the folder for declared objects", "Write the objects of slurm_on_kubernetes",
        "Apply the objects of slurm_on_kubernetes", "Wait for slurmdbd's pod",
        "Update accounts, users and QOS in slurmdbd's pod",
        "Bring the pods to their declared template, key and files",
    ]  # fmt: skip
    assert planned(made, made.nodes[1]).operations == ()


def test_a_plan_shows_no_value_of_a_secret():
    made = cluster()
    plan = planned(made, made.primary)
    shown = json.dumps(
        [[op.commands, [[c.target, c.before, c.after] for c in op.changes]] for op in plan.operations]
    )
    assert "(secret " not in shown  # the placeholder that stands for each value offline


def test_munge_key_and_jwt_key_are_bytes():
    secret = declared.DeclaredSecret("munge", (("munge.key", "munge_key"),))
    assert declared.contents(secret, lambda _: "AAEC") == {"munge.key": b"\x00\x01\x02"}


def test_the_image_has_all_daemons():
    made = cluster()
    built = image.pod_image(options(made), made)
    assert built.reference == "rack.lab/slurm:24.11"
    assert {"slurmctld", "slurmd", "slurmdbd", "munge", "mariadb-server", "openssh-server"} <= set(
        built.packages
    )
    assert (
        options(cluster({"image": "r.example.com/hpc/slurm:1"}))
        .pod_images(made)[0]
        .reference.endswith("slurm:1")
    )


# The operators


def _strict(schema):
    """A schema of a CRD under which an unknown field is a mistake, and not left out silently."""
    if isinstance(schema, list):
        return [_strict(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    strict = {
        key: {name: _strict(one) for name, one in value.items()}
        if key in ("properties", "$defs")
        else _strict(value)
        for key, value in schema.items()
    }
    open_ = schema.get("x-kubernetes-preserve-unknown-fields") or "additionalProperties" in schema
    if "properties" in schema and not open_:
        strict["additionalProperties"] = False
    return strict


def _validated(made, prefix):
    """Kinds of the custom resources, each valid under its published definition."""
    known = {}
    for path in SCHEMAS.glob(f"{prefix}-*.json"):
        definition = json.loads(path.read_text())
        known[f"{definition['group']}/{definition['version']}", definition["kind"]] = _strict(
            definition["schema"]
        )
    kinds_found = []
    for item in document_objects(objects(made)):
        if (item["apiVersion"], item["kind"]) in known:
            metadata = {"metadata": {}}  # the API server checks it by itself
            jsonschema.validate({**item, **metadata}, known[item["apiVersion"], item["kind"]])
            kinds_found.append(item["kind"])
        else:
            assert item["kind"] in ("Namespace", "ConfigMap"), f"{item['kind']} has no definition here"
    return kinds_found


@pytest.mark.parametrize(
    "given", [{}, {"network": "pod"}, {"volumes": {"storage_class": "fast"}, "rest_api": True}]
)
def test_slinky_takes_its_resources(given):
    made = cluster({"flavour": "slinky", **given}, MODERN, "1.34.2", dgx_nodes())
    assert found(made) == []
    wanted = [
        "Accounting",
        "Controller",
        "NodeSet",
        "LoginSet",
        *(["RestApi"] if "rest_api" in given else []),
    ]
    assert _validated(made, "slinky") == wanted


def test_what_slinky_writes_itself_is_not_in_its_extra_lines():
    made = cluster({"flavour": "slinky"}, MODERN, "1.34.2", dgx_nodes())
    controller = one(made, "Controller", "lab")["spec"]
    lines = controller["extraConf"].splitlines()
    assert not [
        line for line in lines if line.startswith(("SlurmctldHost", "ClusterName", "NodeName", "AuthType"))
    ]
    assert "GresTypes=gpu" in lines
    assert lines[-1].startswith("PartitionName=main Nodes=dgx-h100 Default=YES State=UP")
    node_set = one(made, "NodeSet", "dgx-h100")["spec"]
    assert node_set["slurmd"]["resources"]["limits"] == {"nvidia.com/gpu": "8"}


@pytest.mark.parametrize("given", [{}, {"rest_api": True, "operator_tag": "5.0.0"}])
def test_soperator_takes_its_resources(given):
    made = cluster({"flavour": "soperator", **given}, MODERN, "1.34.2", dgx_nodes())
    assert found(made) == []
    assert _validated(made, "soperator") == ["SlurmCluster", "NodeSet"]
    assert one(made, "NodeSet", "dgx-h100")["spec"]["replicas"] == 4


def test_a_field_that_an_operator_does_not_know_is_found(monkeypatch):
    made = cluster({"flavour": "slinky"}, MODERN, "1.34.2", dgx_nodes())
    item = one(made, "NodeSet", "dgx-h100")
    wrong = {**item, "spec": {**item["spec"], "replicaz": 1}}
    monkeypatch.setattr(declared.slinky, "objects", lambda *_: [wrong])
    with pytest.raises(jsonschema.ValidationError, match="replicaz"):
        _validated(made, "slinky")


def test_places_are_those_of_the_namespace():
    made = cluster({"namespace": "hpc", "network": "pod"})
    assert places(options(made), made).controller_address == "slurmctld.hpc.svc.cluster.local"
    assert [node.name for node in slurmd_nodes(made)] == ["worker1", "worker2"]


def test_simulated_gpus_are_counted():
    made = cluster(
        nodes=(
            lab_nodes()[0],
            make_node("w1", "10.79.0.21", sku=dgx_nodes()[1].sku, platform=Platform.CONTAINER),
        )
    )
    (item,) = [item for item in objects(made) if item["kind"] == "DaemonSet"]
    assert {"name": "SIMULATED_GPUS", "value": "8"} in item["spec"]["template"]["spec"]["containers"][0][
        "env"
    ]

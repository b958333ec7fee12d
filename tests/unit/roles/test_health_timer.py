"""The health check on nodes of Kubernetes: a timer runs it, and its declaration names the manager."""

from __future__ import annotations

import json

import pytest

from rackwright.health.declare import expected_of
from rackwright.health.expected import Expected
from rackwright.health.guard import places
from rackwright.health.guard.main import Guard
from rackwright.model.types import NodeRole
from rackwright.roles.health import texts
from rackwright.roles.health.options import HealthRoleOptions
from rackwright.workload.health_timer import schedule
from rackwright.workload.kubernetes.control import Kubernetes
from rackwright.workload.kubernetes.on_node import KubernetesOnNode
from rackwright.workload.slurm.on_node import SlurmOnNode
from rackwright.workload.states import NoAnswer
from tests.factories import RunsKube, RunsSlurm, make_cluster, make_node

SERVICE, TIMER = texts.TIMER_FILES


def site(role):
    roles = {"health": HealthRoleOptions(timer_seconds=120), **role}
    head = make_node("head1", 10, NodeRole.HEAD, options=roles)
    return make_cluster(head, make_node("w1", 20, options=roles))


KUBE, SLURM = site({"kubernetes": RunsKube()}), site({"slurm": RunsSlurm()})


def files(cluster, node):
    return texts.files_of(cluster, cluster.by_name[node], cluster.by_name[node].options["health"])


def test_the_units_are_where_kubernetes_runs_jobs_alone():
    found = files(KUBE, "w1")
    assert f"ExecStart={places.PROGRAM}\n" in found[SERVICE][0]
    assert "OnUnitActiveSec=120\nRandomizedDelaySec=12\n" in found[TIMER][0]
    for cluster, node in ((KUBE, "head1"), (SLURM, "w1"), (SLURM, "head1")):
        assert TIMER not in files(cluster, node)
    assert not any("prolog" in path for path in found)


def test_verify_reads_the_schedule_from_the_units():
    found = files(KUBE, "w1")
    text = "".join(f"# {path}\n{found[path][0]}\n" for path in (SERVICE, TIMER))
    asked = []
    read = Kubernetes.health_schedule(lambda command: asked.append(command) or text)
    assert (read.program, read.interval_seconds) == (places.PROGRAM, 120)
    assert asked == ["systemctl cat rackwright-health.service rackwright-health.timer"]


@pytest.mark.parametrize(
    "text", ["", "ExecStart=/x\n", "OnUnitActiveSec=60\n", "OnUnitActiveSec=often\nExecStart=/x\n"]
)
def test_units_without_a_program_or_an_interval_are_no_schedule(text):
    with pytest.raises(NoAnswer):
        schedule(lambda command: text)


def test_what_a_node_should_be_names_its_manager_and_its_units():
    kube, slurm = expected_of(KUBE, KUBE.by_name["w1"]), expected_of(SLURM, SLURM.by_name["w1"])
    assert (kube.manager, kube.slurmd, kube.services) == (
        "kubernetes",
        False,
        ("containerd.service", "kubelet.service"),
    )
    assert (slurm.manager, slurm.slurmd, slurm.services) == ("slurm", True, ("munge.service",))
    assert "kubelet.service" not in expected_of(KUBE, KUBE.by_name["head1"]).services
    data = json.loads(json.dumps(kube.to_json()))
    assert Expected.from_json(data) == kube
    del data["manager"]  # of an earlier version
    assert Expected.from_json(data).manager is None


@pytest.mark.parametrize(("cluster", "manager"), [(KUBE, KubernetesOnNode), (SLURM, SlurmOnNode)])
def test_the_program_on_the_node_asks_the_declared_manager(cluster, manager, tmp_path):
    for path, (text, _) in files(cluster, "w1").items():
        (tmp_path / path.strip("/")).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path.strip("/")).write_text(text)
    guard = Guard(str(tmp_path))
    assert isinstance(guard.manager, manager)
    assert guard.node == "w1"

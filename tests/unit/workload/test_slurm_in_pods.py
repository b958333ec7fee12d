"""Slurm in pods: a drain is one in Slurm and in Kubernetes; on the node, commands run in the slurmd container."""

from __future__ import annotations

import pytest

from rackwright.model.types import WorkloadManager
from rackwright.workload.lookup import declared_on, kind_on
from rackwright.workload.on_node import manager_on
from rackwright.workload.slurm_in_pods.control import SlurmInPods
from rackwright.workload.slurm_in_pods.on_node import SlurmInPodsOnNode
from rackwright.workload.states import NoAnswer
from tests.unit.workload.test_contract import SlurmInPodsWorld, slurm_in_pods

TASKS = """\
TASK    PID     STATUS
aa11    100     RUNNING
bb22    200     STOPPED
cc33    300     RUNNING
"""


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> SlurmInPodsWorld:
    monkeypatch.setattr("rackwright.workload.slurm.control._POLL_SECONDS", 0.001)
    monkeypatch.setattr("rackwright.workload.kubernetes.draining.POLL_SECONDS", 0.001)
    return SlurmInPodsWorld()


def test_it_is_the_manager_of_workers_with_slurms_pods():
    cluster = slurm_in_pods()
    assert kind_on(cluster.by_name["w1"]) is WorkloadManager.SLURM_IN_PODS
    assert declared_on(cluster.by_name["w1"]) is SlurmInPods
    assert kind_on(cluster.by_name["head1"]) is WorkloadManager.KUBERNETES
    assert isinstance(manager_on("w1", str(WorkloadManager.SLURM_IN_PODS)), SlurmInPodsOnNode)


def test_a_drain_is_one_in_both(world: SlurmInPodsWorld):
    assert world.manager.drain(["w1"], "R1", 1) == {}
    assert (world.backend.nodes["w1"].drained, world.kube.nodes["w1"].unschedulable) == (True, True)
    assert world.manager.resume(["w1"], "R1") == ["w1"]
    assert (world.backend.nodes["w1"].drained, world.kube.nodes["w1"].unschedulable) == (False, False)


def test_a_node_with_jobs_of_slurm_is_not_cordoned(world: SlurmInPodsWorld):
    world.backend.nodes["w1"].jobs.append("train")
    assert list(world.manager.drain(["w1", "w2"], "R1", 0.01)) == ["w1"]
    assert [world.backend.nodes[name].drained for name in ("w1", "w2")] == [False, True]
    assert [world.kube.nodes[name].unschedulable for name in ("w1", "w2")] == [False, True]


def test_what_kubernetes_refuses_goes_back_into_slurms_service(world: SlurmInPodsWorld):
    world.kube.nodes["w1"].jobs.append("train")
    assert list(world.manager.drain(["w1", "w2"], "R1", 0.01)) == ["w1"]
    assert [world.backend.nodes[name].drained for name in ("w1", "w2")] == [False, True]
    assert [world.kube.nodes[name].unschedulable for name in ("w1", "w2")] == [False, True]


def test_without_slurmctlds_pod_kubernetes_drains(world: SlurmInPodsWorld):
    world.backend.silent = True
    assert world.manager.drain(["w1"], "R1", 1) == {}
    assert world.kube.nodes["w1"].unschedulable


@pytest.mark.parametrize(
    ("answer", "shown"),
    [
        ("slurmstepd: [614.batch]\n", True),
        ("slurmstepd: [614.batch]\npods unknown\n", True),
        ("slurmstepd: infinity\n", False),
        ("pods unknown\n", True),
        ("", False),
    ],
)
def test_jobs_of_a_node_that_is_to_be_rebooted(answer: str, shown: bool):
    assert SlurmInPods.shows_job(answer) is shown


class Node:
    """ctr and systemctl of a node."""

    def __init__(self, made: str = "aa11 bb22") -> None:
        self.made = made
        self.ran: list[list[str]] = []

    def __call__(self, arguments: list[str]) -> str:
        if arguments[:5] == ["ctr", "--namespace", "k8s.io", "containers", "list"]:
            assert arguments[5:] == ["--quiet", 'labels."io.kubernetes.container.name"==slurmd']
            return self.made.replace(" ", "\n")
        if arguments[3:] == ["tasks", "list"]:
            return TASKS
        self.ran.append(arguments)
        return ""


def test_commands_run_in_the_slurmd_that_runs():
    node = Node()
    SlurmInPodsOnNode("w1", node).drain("rackwright-health: gpu-count")
    (ran,) = node.ran
    assert ran[:6] == ["ctr", "--namespace", "k8s.io", "tasks", "exec", "--exec-id"]
    assert ran[7:] == [
        "aa11",
        "scontrol",
        "update",
        "NodeName=w1",
        "State=DRAIN",
        "Reason=rackwright-health: gpu-count",
    ]


def test_a_node_without_slurmd_gives_no_answer():
    node = Node(made="bb22")
    with pytest.raises(NoAnswer, match="no slurmd container runs"):
        SlurmInPodsOnNode("w1", node).drain("rackwright-health: gpu-count")
    assert node.ran == []


def test_a_reboot_is_systemds():
    node = Node()
    SlurmInPodsOnNode("w1", node).reboot("rackwright-health: reboot")
    assert node.ran[-1] == ["systemctl", "reboot"]
    assert "Reason=rackwright-health: reboot" in node.ran[0]

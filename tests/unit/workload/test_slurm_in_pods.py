"""Slurm in pods: a drain is one in Slurm and in Kubernetes; on the node, commands run in the slurmd container."""

from __future__ import annotations

import pytest

from rackwright.model.types import WorkloadManager
from rackwright.workload.lookup import declared_on, kind_on, manager_of
from rackwright.workload.on_node import manager_on
from rackwright.workload.protocol import Manager
from rackwright.workload.several import Several, forget_moved
from rackwright.workload.slurm_in_pods.control import SlurmInPods
from rackwright.workload.slurm_in_pods.on_node import SlurmInPodsOnNode
from rackwright.workload.states import NoAnswer
from tests.unit.workload.fake_slurm_in_pods import INSIDE, SlurmAndKubernetes, slurm_in_pods

TASKS = """\
TASK    PID     STATUS
aa11    100     RUNNING
bb22    200     STOPPED
cc33    300     RUNNING
"""


WORKERS = ("w1", "w2")


@pytest.fixture
def shell(monkeypatch: pytest.MonkeyPatch) -> SlurmAndKubernetes:
    monkeypatch.setattr("rackwright.workload.slurm.control._POLL_SECONDS", 0.001)
    monkeypatch.setattr("rackwright.workload.kubernetes.draining.POLL_SECONDS", 0.001)
    return SlurmAndKubernetes(*WORKERS)


@pytest.fixture(params=["alone", "among several"])
def manager(request: pytest.FixtureRequest, shell: SlurmAndKubernetes) -> Manager:
    """By itself, and as clusters have it, whose heads are Kubernetes'."""
    cluster = slurm_in_pods(*WORKERS)
    found = SlurmInPods(cluster, shell) if request.param == "alone" else manager_of(cluster, shell)
    assert isinstance(found, SlurmInPods | Several)
    return found


def drained(shell: SlurmAndKubernetes) -> dict[str, tuple[bool, bool]]:
    """In Slurm and in Kubernetes."""
    return {name: (shell.nodes[name].drained, shell.kube.nodes[name].unschedulable) for name in WORKERS}


def test_it_is_the_manager_of_workers_with_slurms_pods():
    cluster = slurm_in_pods(*WORKERS)
    assert kind_on(cluster.by_name["w1"]) is WorkloadManager.SLURM_IN_PODS
    assert declared_on(cluster.by_name["w1"]) is SlurmInPods
    assert kind_on(cluster.by_name["head1"]) is WorkloadManager.KUBERNETES
    assert isinstance(manager_on("w1", str(WorkloadManager.SLURM_IN_PODS)), SlurmInPodsOnNode)


def test_a_drain_is_one_in_both_slurm_first(shell: SlurmAndKubernetes, manager: Manager):
    changed: list[str] = []
    shell.on_look = lambda: changed.append(f"kubernetes: {shell.kube.nodes['w1'].unschedulable}")
    assert manager.drain(["w1"], "R1", 1) == {}
    assert set(changed) == {"kubernetes: False"}, (
        "Slurm's jobs had ended before Kubernetes was asked to drain"
    )
    assert drained(shell) == {"w1": (True, True), "w2": (False, False)}
    assert manager.resume(["w1"], "R1") == ["w1"]
    assert drained(shell) == dict.fromkeys(WORKERS, (False, False))


def test_a_node_with_jobs_of_slurm_is_not_touched_in_kubernetes(shell: SlurmAndKubernetes, manager: Manager):
    shell.nodes["w1"].jobs.append("train")
    assert list(manager.drain(WORKERS, "R1", 0.01)) == ["w1"]
    assert drained(shell) == {"w1": (False, False), "w2": (True, True)}
    assert not any("w1" in command for command in shell.kube.commands if "patch" in command)


def test_what_kubernetes_refuses_goes_back_into_slurms_service(shell: SlurmAndKubernetes, manager: Manager):
    shell.kube.nodes["w1"].jobs.append("train")
    assert list(manager.drain(WORKERS, "R1", 0.01)) == ["w1"]
    assert drained(shell) == {"w1": (False, False), "w2": (True, True)}


def test_without_slurmctlds_pod_kubernetes_drains(shell: SlurmAndKubernetes, manager: Manager):
    shell.silent = True
    assert manager.drain(["w1"], "R1", 1) == {}
    assert drained(shell)["w1"] == (False, True)


def test_a_node_as_declared_is_not_forgotten(shell: SlurmAndKubernetes):
    manager = manager_of(slurm_in_pods(*WORKERS), shell)
    assert manager is not None
    forget_moved(manager, WORKERS)
    assert shell.order == []


def test_what_puts_a_node_back_can_be_typed(shell: SlurmAndKubernetes, manager: Manager):
    command = manager.resume_command("w1")
    assert command.startswith(f"kubectl {' '.join(INSIDE)} scontrol update NodeName=w1 State=RESUME && ")
    assert "kubectl uncordon w1" in command


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

"""Clusters whose nodes have different workload managers: each node's own is asked, and one that has moved is drained in both."""

from __future__ import annotations

import pytest

from rackwright.errors import WorkloadError
from rackwright.live.facts import Unknown
from rackwright.live.findings import Source
from rackwright.live.look import look
from rackwright.model.types import NodeRole
from rackwright.workload.kubernetes.control import Kubernetes
from rackwright.workload.lookup import declared_on, kind_on, manager_of, runs_jobs
from rackwright.workload.protocol import JobStep
from rackwright.workload.several import Several, forget_moved, part_for, parts_of
from rackwright.workload.slurm.control import Slurm
from tests.factories import RunsKube, RunsSlurm, make_cluster, make_node
from tests.unit.workload.fake_kubernetes import FakeKubernetes
from tests.unit.workload.fake_slurm import FakeSlurm

SLURM, KUBE = {"slurm": RunsSlurm()}, {"kubernetes": RunsKube()}
CLUSTER = make_cluster(
    make_node("head1", 10, NodeRole.HEAD, options=SLURM),
    make_node("cp1", 11, NodeRole.HEAD, options=KUBE, primary=False),
    make_node("s1", 20, options=SLURM),
    make_node("s2", 21, options=SLURM),
    make_node("k1", 30, options=KUBE),
    make_node("k2", 31, options=KUBE),
    make_node("plain", 40),
)


class Both:
    """A shell that reaches Slurm's head and Kubernetes' control plane."""

    def __init__(self, slurm=("s1", "s2"), kube=("k1", "k2")):
        self.slurm, self.kube = FakeSlurm(*slurm), FakeKubernetes(*kube, planes=("cp1",))

    def run(self, node, command, **more):
        return (self.kube if node == "cp1" else self.slurm).run(node, command, **more)


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr("rackwright.workload.slurm.control._POLL_SECONDS", 0.001)
    monkeypatch.setattr("rackwright.workload.kubernetes.draining.POLL_SECONDS", 0.001)


def test_which_manager_a_cluster_has():
    assert isinstance(manager_of(CLUSTER, Both()), Several)
    only = make_cluster(
        make_node("head1", 10, NodeRole.HEAD, options=KUBE), make_node("w1", 20, options=KUBE)
    )
    assert isinstance(manager_of(only, Both()), Kubernetes)
    assert manager_of(make_cluster(), Both()) is None
    assert [declared_on(CLUSTER.by_name[name]) for name in ("s1", "k1", "plain")] == [Slurm, Kubernetes, None]
    assert (kind_on(CLUSTER.by_name["k1"]), runs_jobs(CLUSTER.by_name["cp1"])) == ("kubernetes", False)


def test_each_nodes_own_manager_is_asked():
    both = Both()
    manager = manager_of(CLUSTER, both)
    both.slurm.nodes["s1"].jobs.append("sim")
    both.kube.nodes["k2"].jobs.append("train")
    assert {name: state.busy for name, state in manager.states().items()} == {
        "s1": True, "s2": False, "k1": False, "k2": True,
    }  # fmt: skip
    assert [str(job) for job in manager.jobs("k2")] == ["ada/train (ada, train)"]
    assert sorted(manager.running()) == ["k2", "s1"]
    assert "scontrol" in manager.resume_command("s1")
    assert "kubectl uncordon k1" in manager.resume_command("k1")
    assert part_for(manager, "k1").name == "Kubernetes"
    assert [(one.name, names) for one, names in parts_of(manager, ["k1", "s1", "k2"])] == [
        ("Kubernetes", ["k1", "k2"]),
        ("Slurm", ["s1"]),
    ]
    for question in (manager.state, manager.jobs, manager.resume_command):
        with pytest.raises(WorkloadError, match="No workload manager is declared on plain"):
            question("plain")


def test_a_wave_across_managers_is_drained_and_put_back_in_each():
    both = Both()
    manager = manager_of(CLUSTER, both)
    assert manager.drain(["s1", "k1"], "R1", 1) == {}
    assert [name for name, state in manager.states().items() if state.run == "R1"] == ["s1", "k1"]
    assert sorted(manager.resume(["s1", "s2", "k1", "plain"], "R1")) == ["k1", "s1"]
    manager.drain_by_hand("k2", "ada: bad DIMM")
    assert both.kube.nodes["k2"].unschedulable
    manager.resume_by_hand("k2", "ada: bad DIMM")
    assert not both.kube.nodes["k2"].unschedulable


def test_what_one_manager_refuses_stays_in_service_in_the_other():
    both = Both()
    manager = manager_of(CLUSTER, both)
    both.kube.nodes["k1"].jobs.append("train")
    assert manager.drain(["s1", "k1"], "R1", 0.05) == {"k1": "its jobs did not end within 0.05 s"}
    assert (both.slurm.nodes["s1"].drained, both.kube.nodes["k1"].unschedulable) == (True, False)


def test_a_node_that_has_moved_is_drained_in_its_earlier_manager_and_not_put_back_there():
    both = Both(slurm=("s1", "s2", "k1"), kube=("k2",))  # k1 has not joined yet
    manager = manager_of(CLUSTER, both)
    both.slurm.nodes["k1"].jobs.append("sim")
    assert list(manager.drain(["k1"], "R1", 0.05)) == ["k1"]
    assert not both.slurm.nodes["k1"].drained
    both.slurm.nodes["k1"].jobs.clear()
    assert manager.drain(["k1"], "R1", 1) == {}
    assert both.slurm.nodes["k1"].reason == "rackwright: R1"
    assert manager.resume(["k1"], "R1") == []
    assert both.slurm.nodes["k1"].drained
    assert "k1" not in manager.states()


def test_a_node_that_left_kubernetes_is_forgotten_there_once_a_run_has_drained_it():
    both = Both(slurm=("s1", "s2", "k1"), kube=("k1", "k2"))
    kept = [node for node in CLUSTER.nodes if node.name != "k1"]
    manager = manager_of(make_cluster(*kept, make_node("k1", 30, options=SLURM)), both)
    forget_moved(manager, ["k1", "s1"])
    assert set(both.kube.nodes) == {"k1", "k2"}, "in service there: not left yet"
    assert manager.drain(["k1", "k2"], "R1", 1) == {}
    forget_moved(manager, ["k1", "k2"])
    assert set(both.kube.nodes) == {"k2"}
    assert sorted(manager.resume(["k1", "k2"], "R1")) == ["k1", "k2"]


def test_a_node_on_which_kubernetes_still_runs_is_never_forgotten_there():
    """A head that is Slurm's worker too: drained in both for its reboot."""
    both = Both(slurm=("s1", "s2", "k1"), kube=("k1", "k2"))
    kept = [node for node in CLUSTER.nodes if node.name != "k1"]
    manager = manager_of(make_cluster(*kept, make_node("k1", 30, options=SLURM | KUBE)), both)
    assert manager.drain(["k1"], "R1", 1) == {}
    forget_moved(manager, ["k1"])
    assert set(both.kube.nodes) == {"k1", "k2"}


def test_kubernetes_that_is_down_holds_up_no_node_of_slurm():
    both = Both()
    both.kube.silent = True
    manager = manager_of(CLUSTER, both)
    assert manager.drain(["s1"], "R1", 1) == {}
    forget_moved(manager, ["s1"])
    assert manager.resume(["s1"], "R1") == ["s1"]


def test_a_manager_that_refuses_undoes_the_drain_in_the_other():
    both = Both()
    both.kube.error = "error: You must be logged in to the server (Unauthorized)"
    with pytest.raises(WorkloadError):
        manager_of(CLUSTER, both).drain(["s1", "k1"], "R1", 1)
    assert not both.slurm.nodes["s1"].drained


def test_a_job_across_managers_is_an_error():
    both = Both()
    manager = manager_of(CLUSTER, both)
    assert manager.run(JobStep(("k1", "k2"), 1, ("true",), 60)).exit_status == 0
    with pytest.raises(
        WorkloadError, match="cannot run across workload managers: s1 in Slurm, k1 in Kubernetes"
    ):
        manager.run(JobStep(("s1", "k1"), 1, ("true",), 60))


def test_a_job_is_looked_up_in_each():
    with pytest.raises(WorkloadError, match=r"does not know job 4711.*Kubernetes does not know job 4711"):
        manager_of(CLUSTER, Both()).trace("4711")


def test_a_manager_that_does_not_answer_costs_its_own_nodes_alone():
    both = Both()
    both.kube.silent = True
    found = look(CLUSTER, shell=both, sources=(Source.SCHEDULER,), seconds=10).nodes
    assert found["s1"].scheduler.ready
    assert isinstance(found["k1"].scheduler, Unknown)
    assert "Kubernetes does not answer" in found["k1"].scheduler.reason
    assert found["plain"].scheduler.reason == "it runs no jobs"

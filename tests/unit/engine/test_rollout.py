"""Waves with a workload manager: who is drained, applied, resumed, and what its silence costs."""

from __future__ import annotations

from pathlib import Path

import pytest

from rackwright.engine.journal import Journal, read_run
from rackwright.engine.rollout import Rollout
from rackwright.errors import WorkloadError
from rackwright.model.settings import Waves
from rackwright.plan.changes import Change
from rackwright.plan.node_plan import NodeOutcome, NodePlan, PlannedOperation, PlanResult
from tests.factories import make_cluster
from tests.unit.workload.fake_manager import MemoryManager

CLUSTER = make_cluster()
CALM = Change("file", "/etc/motd", "a", "b")
DISRUPTIVE = Change("unit", "slurmd.service", "running", "restarted", disruptive=True)


class Session:
    """Applies everything it is given."""

    interrupted = False
    stopped = None

    def __init__(self):
        self.applied = []

    def apply(self, nodes):
        self.applied += nodes
        return {name: NodeOutcome(name, True) for name in nodes}


@pytest.fixture
def rollout(tmp_path, monkeypatch):
    """(manager, session, events, result) of a rollout of these changes by node."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))

    def make(changes, manager):
        monkeypatch.setattr("rackwright.engine.rollout.manager_of", lambda cluster, shell: manager)
        plan = PlanResult(
            "test", "c.yaml", "0" * 64,
            {name: NodePlan(name, (PlannedOperation("base", "x", (change,), ()),)) for name, change in changes.items()},
        )  # fmt: skip
        session = Session()
        with Journal("test", Path("c.yaml"), limit=None, roles=None) as journal:
            policy = Waves(drain_deadline_seconds=1, pause_seconds=0)
            result = Rollout(session, CLUSTER, plan, policy, journal).run()
        events = [(one["event"], one.get("nodes")) for one in read_run(journal.run).events]
        return session, events, result

    return make


def test_only_a_worker_with_something_disruptive_is_drained_and_resumed(rollout):
    manager = MemoryManager(CLUSTER)
    session, events, result = rollout({"head1": DISRUPTIVE, "worker1": DISRUPTIVE, "worker2": CALM}, manager)
    assert sorted(session.applied) == ["head1", "worker1", "worker2"]
    drains = [event for event in events if event[0] in ("drain", "drained", "resume")]
    assert drains == [("drain", ["worker1"]), ("drained", ["worker1"]), ("resume", ["worker1"])]
    assert all(outcome.ok for outcome in result.nodes.values())
    assert manager.nodes["worker1"].reason is None


def test_a_worker_that_a_person_drained_is_not_called_resumed(rollout):
    manager = MemoryManager(CLUSTER)
    manager.nodes["worker1"].reason = "bad DIMM"
    session, events, _ = rollout({"worker1": DISRUPTIVE, "worker2": DISRUPTIVE}, manager)
    assert sorted(session.applied) == ["worker1", "worker2"]
    assert manager.nodes["worker1"].reason == "bad DIMM"
    ends = {event[0]: event[1] for event in events if event[0] in ("resume", "released")}
    assert ends == {"resume": ["worker2"], "released": ["worker1"]}


def test_a_manager_that_does_not_run_holds_up_no_worker(rollout):
    manager = MemoryManager(CLUSTER)
    manager.silent = True
    session, _, result = rollout({"head1": DISRUPTIVE, "worker1": DISRUPTIVE}, manager)
    assert sorted(session.applied) == ["head1", "worker1"]
    assert all(outcome.ok for outcome in result.nodes.values())


def test_a_manager_that_stops_answering_leaves_the_worker_as_it_is(rollout):
    manager = MemoryManager(CLUSTER)
    manager.silent_after = 0
    session, _, result = rollout({"head1": DISRUPTIVE, "worker1": DISRUPTIVE}, manager)
    assert session.applied == ["head1"]
    assert result.nodes["worker1"].error == (
        "it could not be drained: Memory does not answer; it was not changed"
    )


def test_a_worker_that_cannot_be_resumed_is_not_called_done(rollout):
    class Stuck(MemoryManager):
        def resume(self, nodes, run):
            raise WorkloadError("Memory does not answer.")

    session, events, result = rollout({"worker1": DISRUPTIVE}, Stuck(CLUSTER))
    assert session.applied == ["worker1"]
    assert "could not be resumed: Memory does not answer." in result.nodes["worker1"].error
    assert "resume" not in [name for name, _ in events]


def test_without_a_manager_nothing_is_drained(rollout):
    session, events, result = rollout({"worker1": DISRUPTIVE}, None)
    assert session.applied == ["worker1"]
    assert result.nodes["worker1"].ok
    assert "drain" not in [name for name, _ in events]

"""When an apply takes the lock on a head, and when it plans again; the nodes are played."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from rackwright.engine import head_lock
from rackwright.engine import run as run_module
from rackwright.engine.head_lock import HeadLock
from rackwright.engine.journal import runs
from rackwright.engine.run import apply
from rackwright.errors import RunLocked
from rackwright.model.settings import Waves
from rackwright.plan.changes import Change
from rackwright.plan.node_plan import NodeOutcome, NodePlan, PlannedOperation, PlanResult
from tests.factories import make_cluster
from tests.unit.engine.local_head import LocalHeads
from tests.unit.workload.fake_manager import MemoryManager

CLUSTER = make_cluster()
B = {
    "run": "20261123T080001Z-bbbbbb",
    "user": "bob",
    "host": "tower",
    "since": "08:01",
    "command": "rackwright apply",
}
CHANGE = PlannedOperation("base", "x", (Change("file", "/etc/motd", "a", "b"),), ())


@pytest.fixture
def played(tmp_path, monkeypatch):
    """Sessions whose plans are taken from `plans` in turn: whether worker1 has something to change."""
    heads = LocalHeads()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setattr(head_lock, "_dial", heads.dial)
    monkeypatch.setattr(head_lock, "LOCKS", str(tmp_path / "run"))
    monkeypatch.setattr(head_lock, "JOURNALS", str(tmp_path / "lib" / "runs"))
    manager = MemoryManager(CLUSTER)
    for module in ("rollout", "left_drained"):
        monkeypatch.setattr(f"rackwright.engine.{module}.manager_of", lambda cluster, shell: manager)
    found = SimpleNamespace(plans=[True], planned=0, applied=[], while_planning=lambda: None)
    found.heads, found.manager, found.journals = heads, manager, tmp_path / "lib/runs/test"

    class Session:
        interrupted, stopped = False, None

        def __init__(self, cluster, **_):
            pass

        def __enter__(self):
            return self

        def __exit__(self, *_):
            found.locked_at_end = heads.lines[0].process.poll() is None if heads.lines else None

        def plan(self):
            found.while_planning()
            changes = found.plans[min(found.planned, len(found.plans) - 1)]
            found.planned += 1
            operations = (CHANGE,) if changes else ()
            return PlanResult("test", "c.yaml", "0" * 64, {"worker1": NodePlan("worker1", operations)})

        def add_watcher(self, watcher):
            pass

        def apply(self, nodes):
            found.applied += nodes
            return {name: NodeOutcome(name, True) for name in nodes}

    monkeypatch.setattr(run_module, "Session", Session)
    yield found
    heads.end()


def test_nothing_to_change_asks_no_head(played):
    played.plans = [False]
    assert apply(CLUSTER).result is None
    assert played.heads.lines == [], "one execution for each node, and no other"


def test_a_change_takes_the_lock_and_keeps_it_until_the_workers_are_gone(played):
    assert apply(CLUSTER, waves=Waves(pause_seconds=0)).result is not None
    assert played.applied == ["worker1"]
    assert len(played.heads.lines) == 1
    assert played.locked_at_end, "workers may still finish an operation"
    (run,) = runs("test")
    kept = (played.journals / f"{run.run}.jsonl").read_text().splitlines()
    assert len(kept) == len(run.events), "the head has every line"


def test_another_operators_run_refuses_before_anything_is_asked_or_changed(played):
    asked = []
    with HeadLock(CLUSTER, B, lost=pytest.fail), pytest.raises(RunLocked, match="bob@tower"):
        apply(CLUSTER, agree=lambda plan: asked.append(plan) or True)
    assert (asked, played.applied, runs("test")) == ([], [], [])


def _another_run():
    with HeadLock(CLUSTER, B, lost=pytest.fail):
        pass


@pytest.mark.parametrize("still", [True, False])
def test_a_plan_during_which_another_run_ended_is_made_again(played, still):
    played.plans = [True, still]
    played.while_planning = lambda: _another_run() if played.planned == 0 else None
    agreed, notices = [], []
    apply(CLUSTER, agree=lambda plan: agreed.append(plan) or True, notice=notices.append)
    assert played.planned == 2
    assert notices == ["Another run finished while this one was planning: planning again."]
    assert played.applied == (["worker1"] if still else []), "what the other run did is not done again"
    assert len(agreed) == still


def test_a_declined_plan_frees_the_lock_and_writes_no_journal(played):
    apply(CLUSTER, agree=lambda plan: False)
    _another_run()
    assert runs("test") == []
    assert not list(played.journals.glob("*"))


def test_another_operators_run_is_put_back_under_the_lock_even_with_nothing_to_change(played):
    played.plans = [False]
    played.manager.nodes["worker1"].reason = f"rackwright: {B['run']}"
    applied = apply(CLUSTER, resumed=B["run"])
    assert applied.notes == (f"worker1: back in service, drained by run {B['run']}",)
    assert played.manager.nodes["worker1"].reason is None
    assert '"resume"' in (played.journals / f"{B['run']}.jsonl").read_text()

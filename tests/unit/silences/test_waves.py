"""The waves of a rollout are silenced one by one, and ended whatever becomes of their nodes."""

from __future__ import annotations

from pathlib import Path

import pytest

from rackwright.engine.journal import Journal
from rackwright.engine.rollout import Rollout
from rackwright.model.settings import Waves
from rackwright.plan.changes import Change
from rackwright.plan.node_plan import NodeOutcome, NodePlan, PlannedOperation, PlanResult
from tests.unit.silences.fake_alertmanager import FakeAlertmanager, rack

CHANGE = Change("file", "/etc/motd", "a", "b")


class Session:
    """Notes what is silenced while it applies; `worker1` fails."""

    interrupted = False
    stopped = None

    def __init__(self, shell, broken=None):
        self.shell, self.broken = shell, broken
        self.silenced = []

    def apply(self, nodes):
        self.silenced.append((tuple(nodes), tuple(self.shell.active.values())))
        if self.broken is not None:
            raise self.broken
        return {name: NodeOutcome(name, name != "worker1") for name in nodes}


@pytest.fixture
def rollout(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))

    def make(shell, changing, broken=None):
        monkeypatch.setattr("rackwright.engine.rollout.manager_of", lambda cluster, pool: None)
        monkeypatch.setattr("rackwright.engine.rollout.Pool", lambda cluster: Opened(shell))
        plans = {
            name: NodePlan(name, (PlannedOperation("base", "x", (CHANGE,), ()),) if name in changing else ())
            for name in ("head1", "worker1", "worker2")
        }
        plan = PlanResult("test", "c.yaml", "0" * 64, plans)
        session, notices = Session(shell, broken), []
        with Journal("test", Path("c.yaml"), limit=None, roles=None) as journal:
            policy = Waves(order="heads-first", size=1, pause_seconds=0)
            Rollout(session, rack(), plan, policy, journal, notice=notices.append).run()
        return session, notices

    return make


class Opened:
    def __init__(self, shell):
        self.shell = shell

    def __enter__(self):
        return self.shell

    def __exit__(self, *_):
        pass


def test_each_wave_is_silenced_while_it_lasts(rollout):
    shell = FakeAlertmanager()
    session, notices = rollout(shell, ("worker1", "worker2"))
    assert session.silenced == [
        (("worker1",), ('node=~"worker1"',)),
        (("worker2",), ('node=~"worker2"',)),
    ]
    assert shell.active == {}
    assert notices == []
    assert "rackwright run 2" in shell.log[0][1]


def test_a_node_that_failed_alerts_again(rollout):
    shell = FakeAlertmanager()
    session, _ = rollout(shell, ("worker1",))
    assert session.silenced == [(("worker1",), ('node=~"worker1"',))]
    assert shell.active == {}


def test_a_run_that_breaks_leaves_no_silence(rollout):
    shell = FakeAlertmanager()
    with pytest.raises(KeyboardInterrupt):
        rollout(shell, ("worker1",), KeyboardInterrupt())
    assert shell.active == {}


def test_a_plan_without_changes_asks_nobody(rollout):
    shell = FakeAlertmanager()
    rollout(shell, ())
    assert shell.log == []


def test_a_run_goes_on_without_alertmanager(rollout):
    session, notices = rollout(FakeAlertmanager(unreachable=("head1",)), ("worker1", "worker2"))
    assert len(session.silenced) == 2
    assert notices == ["Alerts of the nodes of this run are not silenced: head1 does not answer."]

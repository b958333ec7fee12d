"""Silences around what a run does: made, renewed, ended whatever happens, and never in its way."""

from __future__ import annotations

import time

import pytest

from rackwright.alerts.catalogue import ALERTS
from rackwright.alerts.nodes import REBOOTED
from rackwright.silences import matchers, silencer
from rackwright.silences.silencer import MINUTES, Silencer
from tests.unit.silences.fake_alertmanager import FakeAlertmanager, rack

NODES = ("worker1", "worker2")
OF_NODES = 'node=~"worker1|worker2"'


def make(shell, cluster=None, **changes):
    notices = []
    made = Silencer(cluster or rack(), shell, "run 7 of ada", notices.append, pause_seconds=0.01, **changes)
    return made, notices


def test_its_nodes_are_silenced_within_the_block_and_not_after_it():
    shell = FakeAlertmanager()
    one, notices = make(shell)
    with one.around(NODES):
        assert list(shell.active.values()) == [OF_NODES]
    assert shell.active == {}
    assert shell.log == [("head1", f"add {MINUTES} {OF_NODES} run 7 of ada"), ("head1", "end")]
    assert notices == []


@pytest.mark.parametrize("broken", [RuntimeError, KeyboardInterrupt])
def test_they_end_when_the_run_breaks(broken):
    shell = FakeAlertmanager()
    one, _ = make(shell)
    with pytest.raises(broken), one.around(NODES):
        raise broken
    assert shell.active == {}


def test_without_an_alertmanager_nobody_is_asked():
    shell = FakeAlertmanager()
    one, notices = make(shell, rack(routes=False))
    with one.around(NODES):
        pass
    one, _ = make(shell)
    with one.around(()):
        pass
    assert shell.log == []
    assert notices == []


def test_it_is_renewed_before_it_ends_and_never_missing():
    shell = FakeAlertmanager()
    one, notices = make(shell, renew_seconds=0.05)
    with one.around(NODES):
        until = time.monotonic() + 5
        while sum(what == "end" for _, what in shell.log) < 3 and time.monotonic() < until:
            assert shell.active
            time.sleep(0.005)
    assert sum(what.startswith("add") for _, what in shell.log) >= 4
    assert shell.most == 2
    assert shell.active == {}
    assert notices == []


def test_a_renewal_that_fails_keeps_what_is_there():
    shell = FakeAlertmanager()
    one, notices = make(shell, renew_seconds=0.05)
    with one.around(NODES):
        (first,) = shell.active
        shell.refusals = 1
        until = time.monotonic() + 5
        while len(shell.log) < 2 and time.monotonic() < until:
            time.sleep(0.005)
        assert first in shell.active
    assert shell.active == {}
    assert notices == []


@pytest.mark.parametrize(
    ("shell", "said"),
    [
        (FakeAlertmanager(absent=("head1",)), []),  # a first installation: there is nothing to silence
        (
            FakeAlertmanager(unreachable=("head1",)),
            ["Alerts of the nodes of this run are not silenced: head1 does not answer."],
        ),
    ],
)
def test_a_run_goes_on_without_silences_and_says_so_once(shell, said):
    one, notices = make(shell)
    done = []
    for wave in (NODES, ("head1",)):
        with one.around(wave):
            done.append(wave)
    assert done == [NODES, ("head1",)]
    assert notices == said


def test_half_of_a_pair_is_said_although_the_other_half_is_not_installed():
    one, notices = make(FakeAlertmanager(absent=("head2",), unreachable=("head1",)), rack(heads=2))
    with one.around(NODES):
        pass
    assert notices == [
        "Alerts of the nodes of this run are not silenced: head2 has no Alertmanager yet; head1 does not answer."
    ]


def test_an_alertmanager_that_comes_up_later_silences_the_next_wave():
    shell = FakeAlertmanager()
    shell.refusals = 1
    one, notices = make(shell)
    with one.around(("head1",)):
        assert shell.active == {}
    with one.around(NODES):
        assert list(shell.active.values()) == [OF_NODES]
    assert notices == [
        "Alerts of the nodes of this run are not silenced: head1: amtool: error: connection refused."
    ]


def test_a_boot_on_purpose_stays_silenced_after_the_run():
    shell = FakeAlertmanager()
    one, notices = make(shell)
    with one.around(NODES):
        one.expect_boots(["worker1"])
    assert list(shell.active.values()) == ['node=~"worker1"&alertname="NodeRebooted"']
    one.expect_boots([])
    assert len(shell.active) == 1
    assert notices == []


def test_alertmanager_may_be_away_when_nodes_have_booted():
    shell = FakeAlertmanager(unreachable=("head1",))
    one, notices = make(shell)
    one.expect_boots(["worker1"])
    assert notices == []


def test_a_boot_is_silenced_for_as_long_as_its_alert_is_true():
    boots = ALERTS[REBOOTED]
    assert boots.thresholds["seconds"].value < 60 * MINUTES


def test_an_answer_without_an_id_is_no_silence():
    shell = FakeAlertmanager()
    shell.prints = "silenced!\n"
    one, notices = make(shell)
    with one.around(NODES):
        pass
    assert notices == [
        "Alerts of the nodes of this run are not silenced: head1: Alertmanager returned no silence."
    ]


def test_the_other_one_of_a_pair_is_asked_where_the_first_is_gone():
    shell = FakeAlertmanager(unreachable=("head2",))
    one, notices = make(shell, rack(heads=2))
    with one.around(NODES):
        assert list(shell.active.values()) == [OF_NODES]
    assert [node for node, _ in shell.log] == ["head2", "head1", "head1"]
    assert notices == []


def test_one_that_was_just_started_is_asked_again():
    shell = FakeAlertmanager()
    one, notices = make(shell)
    with one.around(NODES):
        shell.refusals = 3
    assert shell.active == {}
    assert notices == []


def test_what_cannot_be_ended_is_reported(monkeypatch):
    monkeypatch.setattr(silencer, "_END_SECONDS", 0.05)
    shell = FakeAlertmanager()
    one, notices = make(shell)
    with one.around(NODES):
        shell.refusals = 10_000
    assert len(shell.active) == 1
    assert notices == ["Cannot end this run's silences on head1: they expire within 15 minutes."]


def test_many_nodes_are_several_silences(monkeypatch):
    monkeypatch.setattr(matchers, "NODES_AT_ONCE", 2)
    shell = FakeAlertmanager()
    one, _ = make(shell)
    with one.around(("a", "b", "c")):
        assert sorted(shell.active.values()) == ['node=~"a|b"', 'node=~"c"']
    assert shell.active == {}


def test_half_a_silence_is_taken_back(monkeypatch):
    monkeypatch.setattr(matchers, "NODES_AT_ONCE", 1)

    class Second(FakeAlertmanager):
        def run(self, node, command, **rest):
            if command.startswith("add") and self.active:
                self.refusals = 1
            return super().run(node, command, **rest)

    shell = Second()
    one, notices = make(shell)
    with one.around(NODES):
        assert shell.active == {}
    assert len(notices) == 1

"""Drills on a rack of paper: what is made, what is healed, and what is reported."""

from __future__ import annotations

import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from rackwright.drill import run
from rackwright.drill.model import Drill, LabFault, Need, Outcome, Shell
from rackwright.errors import LabError
from rackwright.roles.base.options import BaseOptions
from tests.unit.roles.sites import site

CLUSTER = site({"base": BaseOptions()})


class Rack:
    """Remembers what was done to its nodes; `fails` names a node on which nothing works, `has` are files on each."""

    def __init__(self, fails=None, has=()):
        self.done, self.fails, self.has, self.lock = [], fails, has, threading.Lock()

    def _do(self, *what):
        if what[0] == self.fails:
            raise LabError("node is not running")
        with self.lock:
            self.done.append(what)

    def fault(self, node, kind, *args):
        self._do(node, "fault", kind, *args)

    def heal(self, node):
        self._do(node, "heal")

    def run(self, node, argv, timeout=60):
        if argv[-1].startswith("[ ! -e"):
            return "there\n" if any(path in argv[-1] for path in self.has) else ""
        self._do(node, argv[-1])
        return ""


class Webhook:
    """Reports an alert as fired while its fault is there, and as resolved once it is healed; some it never does.

    `already`: how many times it is asked before what fires without the fault has resolved.
    """

    def __init__(self, rack, silent=(), stuck=(), already=0, flaps=False):
        self.rack, self.silent, self.stuck, self.already, self.flaps = rack, silent, stuck, already, flaps

    def count(self):
        return 0

    def firing(self, alert, labels):
        if self.flaps and self.rack.done:
            return True
        self.already -= 1
        return self.already >= 0

    def seen(self, alert, labels, status, since):
        if alert in self.silent:
            return False
        broken = bool(self.rack.done) and not any("heal" in step[-1] for step in self.rack.done)
        return broken if status == "firing" else alert not in self.stuck


def on_gpu1(cluster):
    return cluster.by_name["gpu1"]


def drill(alert="UnitFailed", act=None, **changes):
    return Drill(alert, "a unit is stopped", on_gpu1, act or Shell("make it", "heal it"), **changes)


def drilled(*drills, rack=None, **webhook):
    rack = rack or Rack()
    told = []
    results = run.run_drills(CLUSTER, rack, Webhook(rack, **webhook), drills, 0.05, told.append)
    assert sorted(map(id, told)) == sorted(map(id, results))
    return results, rack


@pytest.fixture(autouse=True)
def at_once(monkeypatch):
    monkeypatch.setattr(run, "_POLL_SECONDS", 0.001)


def test_an_alert_that_fires_and_resolves_passes():
    (result,), rack = drilled(drill())
    assert result.outcome is Outcome.PASSED
    assert result.fired_after is not None
    assert result.resolved_after is not None
    assert rack.done == [("gpu1", "make it"), ("gpu1", "heal it")]


def test_a_fault_of_the_lab_is_healed_by_the_lab():
    _, rack = drilled(drill(act=LabFault("clock:jump", ("60",))))
    assert rack.done == [("gpu1", "fault", "clock:jump", "60"), ("gpu1", "heal")]


def test_a_check_that_would_run_later_runs_after_the_fault_and_after_healing():
    _, rack = drilled(drill(act=LabFault("gpu:ecc", then="check now")))
    assert [step[1:] for step in rack.done] == [
        ("fault", "gpu:ecc"),
        ("check now",),
        ("heal",),
        ("check now",),
    ]


def test_another_node_is_broken_and_healed_too():
    _, rack = drilled(drill(also=lambda cluster: cluster.by_name["gpu2"]))
    assert rack.done == [
        ("gpu1", "make it"),
        ("gpu2", "make it"),
        ("gpu1", "heal it"),
        ("gpu2", "heal it"),
    ]


def test_a_rack_without_the_other_node_skips():
    (result,), rack = drilled(drill(also=lambda cluster: None))
    assert result.outcome is Outcome.SKIPPED
    assert rack.done == []


NEED = Need("/etc/timer", "the check is not installed", "rackwright drift install FILE")


def test_what_a_node_lacks_is_named_with_the_command_that_brings_it():
    (result,), rack = drilled(drill(needs=NEED))
    assert (result.outcome, result.node) == (Outcome.SKIPPED, "gpu1")
    assert result.detail == "the check is not installed: rackwright drift install FILE"
    assert rack.done == []


def test_a_node_that_has_it_is_drilled():
    (result,), _ = drilled(drill(needs=NEED), rack=Rack(has=["/etc/timer"]))
    assert result.outcome is Outcome.PASSED


def test_an_alert_that_fires_already_is_waited_for():
    (result,), _ = drilled(drill(), already=2)
    assert result.outcome is Outcome.PASSED


def test_an_alert_that_fires_without_the_fault_is_no_pass():
    (result,), rack = drilled(drill(), already=10**9)
    assert (result.outcome, result.detail) == (Outcome.ERROR, "the alert already fires without the fault")
    assert rack.done == []


def test_an_alert_that_does_not_fire_is_reported_and_its_fault_healed():
    (result,), rack = drilled(drill(), silent=("UnitFailed",))
    assert result.outcome is Outcome.NOT_FIRED
    assert rack.done[-1] == ("gpu1", "heal it")


def test_an_alert_that_comes_and_goes_has_to_end_after_healing():
    (result,), rack = drilled(drill(), flaps=True)
    assert result.outcome is Outcome.NOT_RESOLVED
    assert rack.done[-1][-1] == "heal it"


def test_an_alert_that_does_not_resolve_is_reported():
    (result,), _ = drilled(drill(), stuck=("UnitFailed",))
    assert (result.outcome, result.resolved_after) == (Outcome.NOT_RESOLVED, None)


def test_a_fault_that_cannot_be_made_is_an_error_and_not_a_pass():
    (result,), _ = drilled(drill(), rack=Rack(fails="gpu1"))
    assert (result.outcome, result.detail) == (Outcome.ERROR, "node is not running")


def test_a_rack_without_a_fitting_node_skips():
    nowhere = Drill("X", "a fault", lambda cluster: None, Shell("a", "b"))
    (result,), rack = drilled(nowhere)
    assert (result.outcome, result.node) == (Outcome.SKIPPED, None)
    assert rack.done == []


def test_what_wants_the_rack_for_itself_comes_last():
    alone = drill(act=Shell("make alone", "heal it"), alone=True)
    results, rack = drilled(alone, drill(lane="a"), drill(lane="b"))
    assert len(results) == 3
    assert [step[-1] for step in rack.done].index("make alone") == 4


def test_results_come_in_the_order_of_the_drills():
    results, _ = drilled(drill("A", lane="1"), drill("B", lane="2"), drill("C", lane="1"))
    assert [result.alert for result in results] == ["A", "B", "C"]


class Stubborn(Rack):
    """A rack whose lab cannot heal some nodes."""

    def __init__(self, *stuck):
        super().__init__()
        self.stuck = stuck

    def heal(self, node):
        super().heal(node)
        if node in self.stuck:
            raise LabError(f"{node} does not come back")


@pytest.mark.parametrize("stuck", [("gpu1",), ("gpu1", "gpu2")])
def test_a_node_that_cannot_be_healed_leaves_no_other_broken(stuck):
    """Its check runs too; the first error is the one that is reported."""
    pulled = drill(act=LabFault("cable", then="check"), also=lambda cluster: cluster.by_name["gpu2"])
    (result,), rack = drilled(pulled, rack=Stubborn(*stuck))
    assert (result.outcome, result.detail) == (Outcome.ERROR, "gpu1 does not come back")
    assert rack.done[4:] == [("gpu1", "heal"), ("gpu1", "check"), ("gpu2", "heal"), ("gpu2", "check")]


class Interrupted(Rack):
    """A rack whose operator presses Ctrl-C while a fault is made or healed; healing takes until the drills stop."""

    def __init__(self, monkeypatch, when):
        super().__init__()
        self.when, self.stop = when, threading.Event()
        self.started = started = threading.Event()

        class Pool(ThreadPoolExecutor):
            def submit(self, *given):
                future = super().submit(*given)
                started.set()
                return future

        monkeypatch.setattr(run, "Event", lambda: self.stop)
        monkeypatch.setattr(run, "ThreadPoolExecutor", Pool)

    def run(self, node, argv, timeout=60):
        if argv[-1] == self.when:
            assert self.started.wait(20)
            while not self.stop.wait(0.2):  # again, should one come just before the main thread waits
                signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
        if argv[-1] == "heal it":
            assert self.stop.wait(20)
        return super().run(node, argv, timeout)


@pytest.mark.parametrize("when", ["make it", "heal it"])
@pytest.mark.parametrize("alone", [False, True])
def test_ctrl_c_heals_what_is_broken_and_breaks_nothing_more(monkeypatch, when, alone):
    rack = Interrupted(monkeypatch, when)
    with pytest.raises(KeyboardInterrupt):
        drilled(drill(alone=alone), drill(alone=alone), rack=rack, silent=("UnitFailed",))
    assert rack.done == [("gpu1", "make it"), ("gpu1", "heal it")]


def test_an_error_of_one_lane_stops_the_others(monkeypatch):
    """The terminal is gone while another lane has broken a node."""
    rack = Interrupted(monkeypatch, when=None)
    skipped = Drill("X", "a fault", lambda cluster: None, Shell("a", "b"))

    def told(result):
        if result.alert == "X":
            while not rack.done:
                time.sleep(0.001)
            raise BrokenPipeError

    with pytest.raises(BrokenPipeError):
        run.run_drills(CLUSTER, rack, Webhook(rack), [drill(), drill(), skipped], 0.05, told)
    assert rack.done == [("gpu1", "make it"), ("gpu1", "heal it")]

"""The check that all clocks agree, on clocks that the test sets; and the readings behind it."""

from __future__ import annotations

import threading
import time

import pytest

from rackwright.claims.check import Undetermined
from rackwright.roles.time.options import TimeOptions
from rackwright.roles.time.readings import Interval, clock_error, parse_sources, parse_tracking, spread
from rackwright.roles.time.verify import CHECKS
from rackwright.verify.judge import Patience, ask
from rackwright.verify.selection import PlannedCheck
from tests.unit.roles.fake_host import FakeHost, Reply, judged
from tests.unit.roles.sites import head, site

CLUSTER = site({"time": TimeOptions()})
TRACKING = "{0},10.9.0.10,11,1795206453.5,{1},0.0002,0.0002,0.068,0.000,1.110,{2},0.0001,64.1,Normal\n"


class Steady(threading.local):
    """The steady clock here, as each thread reads it: only answers take time."""

    now = 1000.0

    def monotonic(self):
        return self.now


STEADY = Steady()


@pytest.fixture(autouse=True)
def _steady(monkeypatch):
    monkeypatch.setattr("rackwright.roles.time.verify.time", STEADY)


class Clock(FakeHost):
    """A node whose clock is `ahead` seconds ahead, and whose answers take `way` seconds each way."""

    def __init__(self, ahead=0.0, way=0.0, tracking=None, sources=""):
        known = {"chronyc -c -n tracking": tracking, "chronyc -c -n sources": sources}
        super().__init__({} if tracking is None else known)
        self.ahead, self.way = ahead, way

    def run(self, command, *args):
        if not command.startswith("date "):
            return super().run(command, *args)
        self.asked.append(command)
        STEADY.now += self.way
        reported = 1_795_206_453.0 + STEADY.now + self.ahead
        STEADY.now += self.way
        return Reply(0, f"{reported:.9f}\n", "")


def _agree(**clocks):
    hosts = {"head1": Clock(), "gpu1": Clock(), "gpu2": Clock(), **clocks}
    return judged("time", CHECKS, "all clocks agree", CLUSTER, head(CLUSTER), hosts)


def test_clocks_that_agree():
    result = _agree()
    assert result.status == "PASS"
    assert result.evidence.startswith("3 clocks within ")
    assert result.evidence.endswith("measured from here")


@pytest.mark.parametrize(("ahead", "who"), [(0.3, "gpu2 is at least"), (-0.3, "ahead of gpu2")])
def test_one_clock_is_wrong(ahead, who):
    result = _agree(gpu2=Clock(ahead=ahead))
    assert result.status == "FAIL"
    assert who in result.evidence
    assert "more than 0.05 s" in result.evidence


def test_over_a_slow_way_chronys_own_bound_decides():
    tracking = TRACKING.format("0A090A0A", "-0.000005321", "0.000022613")
    slow = {name: Clock(way=0.03, tracking=tracking) for name in ("head1", "gpu1", "gpu2")}
    result = _agree(**slow)
    assert (result.status, result.evidence) == ("PASS", "3 clocks within 0 ms by chrony's own bounds")


def test_a_slow_path_with_a_wide_bound_is_undetermined():
    tracking = TRACKING.format("0A090A0A", "-0.000005321", "0.400000000")
    slow = {name: Clock(way=0.03, tracking=tracking) for name in ("head1", "gpu1", "gpu2")}
    result = _agree(**slow)
    assert result.status == "UNKNOWN"
    assert result.evidence.endswith("by chrony's own bounds: too imprecise to decide about 0.05 s")


JUST_STARTED = (
    "0A4E280A,10.78.40.10,11,1795525104.243489021,0.003009937,-0.003979129,0.003979129,0.000,-31.059,"
    "1000000.000,0.005479958,4.525711060,64.5,Normal\n"
)
FEW_SAMPLES = "^,*,10.78.40.10,10,6,77,4,-0.000607113,-0.004586242,0.002743729\n"
"""A follower (chrony 4.6.1 on an emulated virtual machine, 2026-11-24) three minutes after chronyd's start."""


def test_a_chronyd_that_was_just_started_is_judged_by_its_last_sample():
    """Its own bound grows by a second each second until it dares to estimate the clock's frequency."""
    followers = {
        name: Clock(way=0.03, tracking=JUST_STARTED, sources=FEW_SAMPLES) for name in ("gpu1", "gpu2")
    }
    head1 = Clock(way=0.03, tracking=TRACKING.format("7F7F0101", "0.0", "0.0"))
    result = _agree(head1=head1, **followers)
    assert (result.status, result.evidence) == ("PASS", "3 clocks within 17 ms by chrony's own bounds")


def test_the_last_sample_counts_less_with_its_age_and_only_if_its_source_is_selected():
    tracking = parse_tracking(JUST_STARTED)
    assert tracking.error_seconds == pytest.approx(0.003009937 + 4.525711060 + 0.005479958 / 2)
    now, later = parse_sources(FEW_SAMPLES), parse_sources(FEW_SAMPLES.replace(",77,4,", ",77,1004,"))
    assert clock_error(tracking, now) == pytest.approx(0.003009937 + 0.000607113 + 0.002743729 + 0.002)
    assert clock_error(tracking, later) == pytest.approx(clock_error(tracking, now) + 0.5)
    assert clock_error(tracking, parse_sources(FEW_SAMPLES.replace("^,*", "^,?"))) == tracking.error_seconds
    assert clock_error(tracking, ()) == tracking.error_seconds


class Settling(Clock):
    """A node that answers late while it is busy: for the first two rounds of five readings."""

    def run(self, command, *args):
        self.way = 0.03 if len(self.asked) < 10 else 0.0
        return super().run(command, *args)


class Unhurried(threading.Event):
    """A stop that never comes, and pauses that take no time."""

    def wait(self, timeout=None):
        return False


def test_readings_that_were_too_imprecise_are_taken_again_within_the_settle_time():
    tracking = TRACKING.format("0A090A0A", "-0.000005321", "0.400000000")
    hosts = {name: Settling(tracking=tracking) for name in ("head1", "gpu1", "gpu2")}
    check = next(check for check in CHECKS if check.name == "all clocks agree")
    node = head(CLUSTER)
    planned = PlannedCheck("time", check, node, node.options["time"], 0)
    result = ask(planned, CLUSTER, hosts.__getitem__, Patience(time.monotonic(), Unhurried()))
    assert (result.status, result.evidence) == ("PASS", "3 clocks within 0 ms, measured from here")


def test_a_large_difference_shows_over_a_slow_way_too():
    slow = {name: Clock(way=0.03) for name in ("head1", "gpu1")}
    assert _agree(**slow, gpu2=Clock(way=0.03, ahead=1.0)).status == "FAIL"


def test_a_node_that_does_not_tell_its_time_is_unknown():
    assert _agree(gpu1=FakeHost({"date +%s.%N": "1795206453.%N\n"})).status == "UNKNOWN"
    assert _agree(gpu1=FakeHost({})).status == "UNKNOWN"


def test_intervals_narrow_and_a_set_clock_starts_over():
    assert Interval(0.0, 1.0).narrowed(Interval(0.5, 2.0)) == Interval(0.5, 1.0)
    assert Interval(0.0, 1.0).narrowed(Interval(5.0, 6.0)) == Interval(5.0, 6.0)


def test_spread_names_who_is_behind_and_ahead():
    assert spread({"a": Interval(0.0, 1.0), "b": Interval(3.0, 4.0)}) == (2.0, 4.0, "a", "b")
    assert spread({"a": Interval(0.0, 1.0), "b": Interval(0.5, 1.5)})[:2] == (0.0, 1.5)
    assert spread({"a": Interval(0.0, 1.0)}) == (0.0, 1.0, "a", "a")


def test_tracking_is_read_whole():
    tracking = parse_tracking(TRACKING.format("0A090A0A", "-0.001", "0.002"))
    assert (tracking.stratum, tracking.reference, tracking.synchronised) == (11, "10.9.0.10", True)
    assert tracking.error_seconds == pytest.approx(0.001 + 0.0001 + 0.001)


@pytest.mark.parametrize("output", ["", "506 Cannot talk to daemon\n", "a,b,c\n", ",".join("x" * 14)])
def test_tracking_that_is_not_one(output):
    with pytest.raises(Undetermined):
        parse_tracking(output)


def test_sources_are_read_and_reach_is_octal():
    (source,) = parse_sources("^,*,10.9.0.10,10,6,377,47,0.0,0.0,0.0\n")
    assert (source.state, source.address, source.reach) == ("*", "10.9.0.10", 0b11111111)
    assert parse_sources("") == ()
    with pytest.raises(Undetermined, match="a line that is not a source: '506 Cannot talk to daemon'"):
        parse_sources("506 Cannot talk to daemon\n")

"""Soaks with a clock that a test moves: hours take no time."""

from __future__ import annotations

import json
import threading

import pytest

from rackwright.burnin import burnin
from rackwright.burnin.alone import GpuFigure
from rackwright.burnin.finding import Finding
from rackwright.burnin.floors import Floor
from rackwright.burnin.measurement import Measurement
from rackwright.burnin.readings import Reading, judge_readings, reading_of
from rackwright.burnin.soak import READING_SECONDS, Load, Sample, Soaking, drift_of
from rackwright.burnin.store import RESULTS
from rackwright.burnin.table import parse_nccl_tests
from rackwright.errors import ExitCode, WorkloadError
from rackwright.health.run import FleetHealth, NodeHealth
from rackwright.health.verdict import Action, HealthResult
from rackwright.status import Status
from tests.unit.burnin.head import Head, cluster_of, table

SIZE = 2**26
FLOOR = Floor(1.0, "a floor of the test", 0, 2)


class Clock:
    """Time that passes only by work and sleep."""

    def __init__(self):
        self.now = 1_780_000_000.0

    def monotonic(self):
        return self.now

    time = monotonic

    def sleep(self, seconds, /):
        self.now += seconds


class Rack:
    """Two nodes under load: every all-reduce takes a minute, `busbw(hours)` is what it reaches."""

    def __init__(self, busbw=lambda hours: 5.0, gemm=None, readings=()):
        self.clock, self.busbw, self.gemm_of = Clock(), busbw, gemm
        self.begun = self.clock.now
        self.readings = list(readings)
        self.kept = []
        self.read_by = []

    @property
    def hours(self):
        return (self.clock.now - self.begun) / 3600

    def all_reduce(self):
        self.clock.now += 60
        reached = self.busbw(self.hours)
        if isinstance(reached, BaseException):
            raise reached
        if reached is None:
            return Measurement("all_reduce", None, (Finding(Status.UNKNOWN, "srun exited 1"),))
        return Measurement("all_reduce", parse_nccl_tests(table(["w1", "w2"], [SIZE], reached)), ())

    def gemm(self):
        self.clock.now += 60
        figures = tuple(GpuFigure("w1", gpu, self.gemm_of(self.hours, gpu)) for gpu in (0, 1))
        return figures, []

    def read(self):
        self.read_by.append(threading.current_thread() is threading.main_thread())
        return self.readings.pop(0) if self.readings else Reading(f"after {self.hours:.2f} h")

    def soak(self, hours=1.0, floor=FLOOR):
        load = Load(self.all_reduce, self.gemm if self.gemm_of else None, self.read, floor, self.kept.append)
        return Soaking(load, hours, self.clock).run()


def texts(findings):
    return [(found.status, found.text) for found in findings]


def test_a_quiet_day_passes():
    rack = Rack()
    soak, findings = rack.soak(24)
    assert findings == ()
    assert (soak.hours, soak.hours_asked, len(soak.samples), soak.ended) == (24.0, 24, 1440, "")
    assert soak.drift_percent == 0.0
    # one before the load, then one every other minute, meanwhile and in another thread
    assert len(soak.readings) == 1 + 24 * 3600 // READING_SECONDS
    assert rack.read_by[0] is True
    assert not any(rack.read_by[1:])
    assert len(rack.kept) == len(soak.readings) - 1


def test_a_round_under_the_floor_is_named_once_with_its_time():
    _, findings = Rack(lambda hours: 0.5 if 0.5 < hours < 0.6 else 5.0).soak()
    [(status, text)] = texts(findings)
    assert status is Status.FAIL
    assert text == (
        f"all_reduce: 0.5 GB/s at {SIZE} B is below the floor of 1 GB/s (a floor of the test) "
        "(first seen at 2026-05-28T20:56:40+00:00)"
    )


def test_wrong_values_are_named():
    rack = Rack()

    def wrong():
        rack.clock.now += 60
        found = Finding(Status.FAIL, f"wrong values: 7 at {SIZE} B")
        return Measurement(
            "all_reduce", parse_nccl_tests(table(["w1", "w2"], [SIZE], 5.0, wrong="7")), (found,)
        )

    rack.all_reduce = wrong
    soak, findings = rack.soak(0.1)
    assert texts(findings)[0][1].startswith(f"all_reduce: wrong values: 7 at {SIZE} B (first seen at ")
    assert soak.samples[0].busbw_gbs is None


def test_drift_is_reported_and_warned_of():
    soak, findings = Rack(lambda hours: 5.0 - hours).soak()
    assert soak.drift_percent == pytest.approx(-15.4, abs=0.3)
    assert texts(findings)[0][0] is Status.WARN
    assert "drifted by" in texts(findings)[0][1]
    assert drift_of(tuple(Sample("t", 5.0) for _ in range(7))) is None


def test_a_gpu_that_slows_down_is_named():
    rack = Rack(gemm=lambda hours, gpu: 600.0 if gpu == 1 and hours > 0.5 else 700.0)
    soak, findings = rack.soak()
    [(status, text)] = texts(findings)
    assert status is Status.FAIL
    assert text.startswith("gemm: GPU 1 of w1 fell from 700.0 to 600.0 TFLOPS (first seen at ")
    assert soak.samples[-1].gemm_tflops == 600.0


def test_both_gpus_that_slow_down_are_named():
    rack = Rack(gemm=lambda hours, gpu: 600.0 if hours > 0.5 else 700.0)
    assert [text[:17] for _, text in texts(rack.soak()[1])] == ["gemm: GPU 0 of w1", "gemm: GPU 1 of w1"]


def failing(at, *failures):
    return Reading(at, failures=failures)


def test_new_failures_have_their_time_and_old_ones_are_told_apart():
    xid = ("w2", "xid", "XID 79: GPU has fallen off the bus")
    disk = ("w1", "disk", "/ is 99 % full")
    readings = [
        failing("10:00", disk),
        failing("10:02", disk),
        failing("10:04", disk, xid),
        failing("10:06", disk, xid),
    ]
    findings = judge_readings(tuple(readings))
    assert texts(findings) == [
        (Status.FAIL, "w1: disk: / is 99 % full (before the load began)"),
        (Status.FAIL, "w2: xid: XID 79: GPU has fallen off the bus (since 10:04)"),
    ]


def test_throttling_by_the_board_fails_and_is_named():
    hot = Reading("10:02", 92.0, "GPU 3 of w1", ("GPU 3 of w1: hw_thermal_slowdown",))
    [found] = judge_readings((Reading("10:00"), hot, hot))
    assert (found.status, found.text) == (
        Status.FAIL,
        "GPU 3 of w1: hw_thermal_slowdown throttles the clocks (since 10:02)",
    )


def test_a_node_that_is_unread_most_of_the_time_is_unknown():
    silent = Reading("10:02", unread=(("w2", "the probe exited 124"),))
    assert judge_readings((Reading("10:00"), silent, Reading("10:04"))) == []
    [found] = judge_readings((Reading("10:00"), silent, silent))
    assert (found.status, found.text) == (
        Status.UNKNOWN,
        "w2: 2 of 3 readings of the health probe failed: the probe exited 124",
    )


def test_what_a_reading_keeps_of_the_probe():
    def gpu(index, heat, **throttle):
        return {"index": index, "temperature": {"gpu_c": heat}, "throttle": throttle}

    gpus = [gpu(0, 61, sw_power_cap=True), gpu(1, 88, hw_thermal_slowdown=True), gpu(2, None)]
    document = {"sections": {"gpus": {"ok": True, "data": {"gpus": gpus}}}}
    failed = HealthResult("w1", "gpu-temperature", "c", "gpu", Status.FAIL, "88 C", Action.NONE, "")
    fleet = FleetHealth(
        "test", (NodeHealth("w1", document, (failed,)), NodeHealth("w2", None, (), "no answer"))
    )
    reading = reading_of(fleet)
    assert (reading.hottest_c, reading.hottest) == (88.0, "GPU 1 of w1")
    assert reading.throttled == ("GPU 1 of w1: hw_thermal_slowdown",)
    assert reading.failures == (("w1", "gpu-temperature", "88 C"),)
    assert reading.unread == (("w2", "no answer"),)


@pytest.mark.parametrize(
    ("error", "why"), [(KeyboardInterrupt(), "interrupted"), (WorkloadError("Slurm does not answer on head1."), "Slurm does not")]
)  # fmt: skip
def test_an_interrupted_soak_keeps_what_it_measured(error, why):
    soak, findings = Rack(lambda hours: error if hours > 0.5 else 5.0).soak(24)
    assert len(soak.samples) == 30
    [(status, text)] = texts(findings)
    assert status is Status.UNKNOWN
    assert text.startswith(f"the soak ended after 0.52 of 24 hours: {why}")


def test_jobs_that_do_not_run_end_it_after_five():
    soak, findings = Rack(lambda hours: None).soak(24)
    assert len(soak.samples) == 5
    assert any("5 rounds in a row gave no figure: srun exited 1" in text for _, text in texts(findings))
    assert any(text == "no round of the soak gave a figure" for _, text in texts(findings))


def test_one_missed_round_is_unknown_with_its_time():
    _, findings = Rack(lambda hours: None if 0.1 < hours < 0.13 else 5.0).soak()
    [(status, text)] = texts(findings)
    assert status is Status.UNKNOWN
    assert text.startswith("1 of 60 rounds gave no figure, the first at ")


def test_without_a_floor_a_soak_is_unknown():
    assert texts(Rack().soak(floor=None)[1]) == [(Status.UNKNOWN, "no floor is declared for this many nodes")]


@pytest.fixture
def _state(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setattr("rackwright.burnin.readiness.PATIENCE_SECONDS", 0)


@pytest.mark.usefixtures("_state")
def test_a_whole_soak_through_the_workload_manager(monkeypatch):
    clock = Clock()
    monkeypatch.setattr("rackwright.burnin.group.time", clock)
    monkeypatch.setattr("rackwright.burnin.group.health", lambda cluster, **_: FleetHealth(cluster.name, ()))

    class Slow(Head):
        def _srun(self, command):
            clock.now += 30
            return super()._srun(command)

    head = Slow(busbw=5.0)
    report = burnin(cluster_of(3), shell=head, profile="soak", hours=0.1)
    [group] = report.groups
    assert report.exit_code is ExitCode.CLEAN
    assert (len(group.soak.samples), group.soak.hours) == (12, 0.1)
    assert head.together == [("w1", "w2", "w3")] * 12
    assert len(group.per_node) == 3
    [path] = RESULTS.folder("test").glob("*.json")
    document = json.loads(path.read_text())
    assert (document["profile"], len(document["groups"][0]["soak"]["samples"])) == ("soak", 12)

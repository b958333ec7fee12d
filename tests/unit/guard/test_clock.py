"""A clock that was ahead for a while hides no complaint of the kernel, and no drain, reboot or counter stays in the future."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import pytest

from rackwright.health.document import Document
from rackwright.health.guard import places
from rackwright.health.guard.clock import put_right, set_back
from rackwright.health.guard.found import Found, Outcome
from rackwright.health.guard.main import Guard
from rackwright.health.guard.memory import Memory
from rackwright.health.guard.would import recorded
from rackwright.health.history import HOUR, rising
from rackwright.health.probe.kernel_log import from_journal
from rackwright.status import Status
from tests.unit.guard.machine import FULL, Machine, OnNode
from tests.unit.health.fake_node import NOW

YEAR = 365 * 86400.0
BOOT = "0f3c0e8a-1111-4222-8333-444455556666"
FIRST = "NVRM: Xid (PCI:0000:1b:00): 79, pid=1, GPU has fallen off the bus."
SECOND = "NVRM: Xid (PCI:0000:43:00): 79, pid=1, GPU has fallen off the bus."


class Clocked(OnNode):
    """A node whose uptime runs, while its clock is `ahead` of the time."""

    def __init__(self, root, node):
        super().__init__(root, node)
        self.since_boot, self.ahead, self.boot = 86400.0, 0.0, BOOT
        self.lines, self.drift = [], 0.0

    def now(self):
        return self.clock + self.ahead

    def data(self, path, offset, size):
        if path == "/proc/uptime" and self.since_boot is None:
            return b"unknown\n"
        if path == "/proc/uptime":
            self.since_boot += self.drift
            return f"{self.since_boot:.2f} 1.00\n".encode()
        if path == "/proc/sys/kernel/random/boot_id":
            return f"{self.boot}\n".encode()
        return super().data(path, offset, size)

    def start(self, arguments, seconds):
        command = " ".join(arguments)
        if not command.startswith("journalctl") or "-o json" not in command:
            return super().start(arguments, seconds)
        self.asked.append(command)
        since = float(command.partition("--since=@")[2] or 0)
        told = (line for line in self.lines if int(line["__REALTIME_TIMESTAMP"]) / 1e6 >= since)
        return 0, "".join(json.dumps(line) + "\n" for line in told), ""

    def logs(self, message):
        """As journald stamps it: by the clock, and by the time since boot."""
        stamps = {"__REALTIME_TIMESTAMP": self.now(), "__MONOTONIC_TIMESTAMP": self.since_boot}
        self.lines.append({"MESSAGE": message, **{key: str(int(at * 1e6)) for key, at in stamps.items()}})

    def later(self, seconds):
        self.clock += seconds
        self.since_boot += seconds


@pytest.fixture
def machine(tmp_path):
    made = Machine(tmp_path)
    made.source = Clocked(tmp_path, FULL.node)
    made.run()
    return made


def drained_and_resumed_ahead(machine):
    """An XID drains the node; its clock goes a year ahead, and an operator resumes it."""
    machine.source.logs(FIRST)
    machine.run()
    assert "xid-hardware" in machine.slurm.reason
    machine.source.ahead = YEAR
    machine.source.later(300)
    machine.slurm.human(drain=False)
    machine.run()
    assert machine.read(places.MEMORY)["excused_until"] == machine.source.now()
    assert "DRAIN" not in machine.slurm.words


def results_of(machine, check):
    return [one for one in machine.read(places.LAST)["results"] if one["check"] == check]


@pytest.mark.parametrize("set_back_first", [True, False])
def test_an_xid_after_a_resume_is_seen_although_the_clock_was_ahead(machine, set_back_first):
    drained_and_resumed_ahead(machine)
    machine.source.later(300)
    if not set_back_first:
        machine.source.logs(SECOND)  # stamped a year ahead
    machine.source.ahead = 0.0
    if set_back_first:
        machine.source.logs(SECOND)
    machine.source.later(300)
    machine.run()
    (unknown,) = results_of(machine, "xid-hardware")
    assert unknown["status"] == "UNKNOWN"
    assert unknown["evidence"].startswith(f"kernel_log: the clock was set back by {YEAR - 600:.0f} s")
    assert machine.read(places.MEMORY)["excused_until"] == pytest.approx(machine.source.now() - 600, abs=1)
    machine.source.later(300)
    machine.run()
    assert "xid-hardware" in machine.slurm.reason
    assert "0000:43:00" in machine.slurm.reason
    assert "DRAIN" in machine.slurm.words


def test_what_the_operator_had_seen_drains_no_second_time(machine):
    drained_and_resumed_ahead(machine)
    machine.source.ahead = 0.0
    for _ in range(4):
        machine.source.later(300)
        machine.run()
    assert "DRAIN" not in machine.slurm.words
    assert results_of(machine, "xid-hardware")[0]["status"] == "PASS"


def test_what_the_operator_had_seen_drains_no_second_time_although_a_reboot_is_dated_ahead(machine):
    machine.source.logs(FIRST)
    machine.run()
    assert "DRAIN" in machine.slurm.words
    kept = machine.read(places.MEMORY)
    machine.put(places.MEMORY, json.dumps({**kept, "reboots": [NOW + YEAR]}))
    machine.source.later(300)
    machine.slurm.human(drain=False)
    machine.run()
    assert "DRAIN" not in machine.slurm.words
    assert results_of(machine, "xid-hardware")[0]["status"] == "PASS"
    assert machine.read(places.MEMORY)["reboots"] == [machine.source.now()]


def test_a_verdict_that_is_shown_is_unknown_while_the_resume_is_dated_ahead(machine):
    drained_and_resumed_ahead(machine)
    machine.source.ahead = 0.0
    shown = Guard(str(machine.root), machine.slurm, machine.source).shown()
    (log,) = [one for one in shown.results if one.check == "xid-hardware"]
    assert (log.status, "the clock was set back by" in log.evidence) == (Status.UNKNOWN, True)
    machine.source.later(300)
    machine.run()
    machine.source.later(300)
    shown = Guard(str(machine.root), machine.slurm, machine.source).shown()
    (log,) = [one for one in shown.results if one.check == "xid-hardware"]
    assert log.status is Status.PASS


def test_an_xid_of_another_boot_is_seen(machine):
    drained_and_resumed_ahead(machine)
    machine.source.ahead, machine.source.boot, machine.source.since_boot = 0.0, "another", 30.0
    machine.source.lines.clear()  # journalctl -b
    machine.source.logs(SECOND)
    machine.source.later(300)
    machine.run()
    machine.source.later(300)
    machine.run()
    assert "0000:43:00" in machine.slurm.reason


def test_a_record_without_the_boot_is_unknown_once_and_then_sane(machine):
    ahead = {**machine.read(places.MEMORY), "excused_until": NOW + YEAR}
    machine.put(places.MEMORY, json.dumps({key: ahead[key] for key in ahead if "excused_b" not in key}))
    machine.run()
    assert results_of(machine, "xid-hardware")[0]["status"] == "UNKNOWN"
    assert machine.read(places.MEMORY)["excused_until"] == machine.source.now()
    machine.source.later(300)
    machine.source.logs(SECOND)
    machine.run()
    assert "0000:43:00" in machine.slurm.reason


@pytest.mark.parametrize("damage", ["Infinity", "NaN", '"later"', "-1", "1e300", "[]", "true"])
def test_a_memory_with_a_time_that_is_none_is_lost(machine, damage):
    kept = {**machine.read(places.MEMORY), "excused_until": "HERE"}
    machine.put(places.MEMORY, json.dumps(kept).replace('"HERE"', damage))
    machine.source.logs(SECOND)
    machine.run()
    assert "0000:43:00" in machine.slurm.reason


def test_a_drain_of_ours_outlives_the_correction(machine):
    machine.source.logs(FIRST)
    machine.run()
    kept = machine.read(places.MEMORY)
    assert kept["drained"]
    machine.put(
        places.MEMORY,
        json.dumps({**kept, "excused_until": NOW + YEAR, "excused_boot": BOOT, "excused_uptime": 9.0}),
    )
    machine.source.drift = 0.01  # the uptime is read later than the clock
    for _ in range(3):
        machine.source.later(300.37)
        machine.run()
        assert machine.read(places.MEMORY)["drained"]
        assert "DRAIN" in machine.slurm.words


def test_times_ahead_are_put_right_and_others_left():
    sane = Memory(excused_until=NOW - 5, reboots=(NOW - 9,))
    assert put_right(sane, NOW, BOOT, 100.0) is sane
    assert set_back(replace(sane, excused_until=NOW + 4), NOW) == 0.0
    ahead = replace(
        sane, excused_until=NOW + YEAR, reboots=(NOW - 9, NOW + YEAR), excused_boot=BOOT, excused_uptime=40.0
    )
    assert set_back(ahead, NOW) == YEAR
    right = put_right(ahead, NOW, BOOT, 100.0)
    assert (right.excused_until, right.reboots) == (NOW - 60, (NOW - 9, NOW))
    assert put_right(ahead, NOW, "another", 100.0).excused_until == 0.0
    assert put_right(ahead, NOW, "", None).excused_until == NOW


def test_a_reboot_dated_ahead_counts_for_a_day_and_no_longer():
    memory = put_right(Memory(reboots=(NOW + YEAR,)), NOW, BOOT, 1.0)
    assert memory.reboots == (NOW,)


def test_an_episode_dated_ahead_does_not_end_before_it_began():
    bad = Found(Outcome.BAD)
    ahead = recorded(None, False, bad, False, NOW + YEAR)
    back = recorded(ahead, False, bad, False, NOW)
    assert (back.current.since, back.current.last, back.since, back.current.passes) == (NOW, NOW, NOW, 2)
    ended = recorded(back, False, None, True, NOW + 60)
    assert [one.until for one in ended.past] == [NOW + 60]


def test_counters_dated_ahead_are_unknown():
    def document(at):
        snapshots = [{"at": at, "changed": {"c": 5}}]
        history = {"ok": True, "data": {"snapshots": snapshots}}
        return Document(
            {"schema": "rackwright-probe", "version": 1, "taken_at": NOW, "sections": {"history": history}}
        )

    found = rising(document(NOW + 900), "replays", "c", 99, 10, HOUR)
    assert (found.status, "set back by 900 s" in found.evidence) == (Status.UNKNOWN, True)
    assert rising(document(NOW - 900), "replays", "c", 99, 10, HOUR).status is Status.FAIL
    assert rising(document(NOW - 900), "replays", "c", 9, 10, HOUR) is None


def test_an_xid_of_a_clock_that_was_days_behind_is_seen(machine):
    machine.source.boot, machine.source.since_boot, machine.source.ahead = "another", 60.0, -2 * 86400.0
    machine.source.logs(SECOND)
    machine.source.ahead = 0.0  # chronyd has started
    machine.source.later(300)
    machine.run()
    assert "0000:43:00" in machine.slurm.reason


@pytest.mark.parametrize(("uptime", "is_whole"), [(3600.0, True), (2 * 86400.0, False), (None, False)])
def test_the_journal_is_asked_for_the_whole_of_a_boot_of_today_alone(tmp_path, uptime, is_whole):
    source = Clocked(tmp_path, FULL.node)
    source.since_boot, source.ahead = 60.0, -2 * 86400.0
    source.logs("behind")
    source.since_boot, source.ahead = uptime or 3600.0, 0.0
    source.logs("now")
    source.since_boot = uptime
    lines = from_journal(source, NOW - 86400)
    assert ("--since=@" in source.asked[0]) is not is_whole
    assert [line.message for line in lines] == (["behind", "now"] if is_whole else ["now"])


def test_a_line_is_dated_by_the_time_since_boot_where_the_clock_was_set(tmp_path):
    source = Clocked(tmp_path, FULL.node)
    source.ahead = YEAR
    source.logs("ahead")
    source.ahead = 0.0
    source.logs("now")
    source.lines.append(
        {"MESSAGE": "odd", "__REALTIME_TIMESTAMP": str(int(NOW * 1e6)), "__MONOTONIC_TIMESTAMP": "x"}
    )
    lines = from_journal(source, NOW - 60)
    assert [line.message for line in lines] == ["ahead", "now", "odd"]
    assert all(math.isclose(line.at, NOW, abs_tol=1) for line in lines)

"""Reservations: what Slurm 24.11 prints read, compared, turned into scontrol commands."""

from __future__ import annotations

import subprocess
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from rackwright.facts.slurm import ReservationsFound
from rackwright.workload.slurm import reservations
from rackwright.workload.slurm.records import Unread
from rackwright.workload.slurm.reservations import (
    Found,
    Reservation,
    parse,
    past,
    read_command,
    scontrol_commands,
    undeclared,
)

PRINTED = """\
# zone +0000
ReservationName=maint StartTime=2030-01-01T08:00:00 EndTime=2030-01-01T12:00:00 Duration=04:00:00 \
Nodes=w[1-2] NodeCnt=2 CoreCnt=4 Features=(null) PartitionName=(null) Flags=MAINT,IGNORE_JOBS,SPEC_NODES,ALL_NODES \
TRES=cpu=4 Users=root Groups=(null) Accounts=(null) Licenses=(null) State=INACTIVE BurstBuffer=(null) \
MaxStartDelay=(null)
# complete
"""
NOW = datetime(2026, 11, 23, 4, 30)  # a Monday
MAINT = Reservation(
    start=datetime(2030, 1, 1, 8),
    end=datetime(2030, 1, 1, 12),
    nodes=frozenset({"w1", "w2"}),
    users=frozenset({"root"}),
    flags=frozenset({"MAINT", "IGNORE_JOBS"}),
)


@pytest.fixture(autouse=True)
def the_clock_stands(monkeypatch):
    monkeypatch.setattr(reservations, "clock", lambda zone: NOW)


def moment(text):
    return datetime.fromisoformat(text)


def lines(there, declared, *, prune=False, now=NOW):
    return [" ".join(one.arguments) for one in scontrol_commands(Found(now, there), declared, prune=prune)]


def repeating(flag, start="2026-11-02T03:00:00", end="2026-11-02T04:00:00"):
    return replace(MAINT, start=moment(start), end=moment(end), flags=frozenset({flag}))


def test_what_is_printed():
    assert parse(PRINTED.splitlines()) == Found(NOW, {"maint": MAINT})
    none = "# zone +0000\nNo reservations in the system\n# complete\n"
    assert parse(none.splitlines()) == Found(NOW, {})


def test_the_answer_of_an_unchanged_slurmctld_is_the_same_at_any_time(tmp_path):
    """It is part of what a node in sync is recognised by."""
    for tool, does in (("scontrol", "echo No reservations in the system"), ("systemctl", "exit 0")):
        (tmp_path / tool).write_text(f"#!/bin/sh\n{does}\n")
        (tmp_path / tool).chmod(0o755)
    environment = {"PATH": f"{tmp_path}:/usr/bin:/bin"}

    def answer() -> str:
        return subprocess.run(
            ["/bin/sh", "-c", read_command()], capture_output=True, text=True, check=True, env=environment
        ).stdout

    first = answer()
    time.sleep(1.1)
    assert answer() == first
    assert parse(first.splitlines()) == Found(NOW, {})


def test_the_clock_is_that_of_the_zone(monkeypatch):
    monkeypatch.undo()
    utc, east = reservations.clock("+0000"), reservations.clock("+0530")
    assert timedelta(hours=5, minutes=29) < east - utc < timedelta(hours=5, minutes=31)
    assert abs(utc - datetime.now(UTC).replace(tzinfo=None)) < timedelta(minutes=1)


@pytest.mark.parametrize("output", ["", "# silent\n", PRINTED.replace("# complete\n", "")])
def test_an_answer_that_is_not_whole(output):
    assert parse(output.splitlines()) is None
    assert ReservationsFound().process(output.splitlines()) is (Unread.SILENT if output else None)
    assert ReservationsFound().process(["# stopped"]) is Unread.STOPPED


def test_where_slurm_is_not_installed_nothing_is_said():
    done = subprocess.run(
        ["/bin/sh", "-c", read_command()],
        capture_output=True,
        text=True,
        env={"PATH": "/nowhere"},
        check=False,
        timeout=60,
    )
    assert (done.returncode, done.stdout) == (0, "")


def test_as_declared_nothing_is_done():
    assert lines({"maint": MAINT}, {"maint": MAINT}) == []


def test_a_missing_one_is_made():
    assert lines({}, {"maint": MAINT}) == [
        (
            "create ReservationName=maint StartTime=2030-01-01T08:00:00 EndTime=2030-01-01T12:00:00 "
            "Nodes=w[1-2] Users=root Flags=IGNORE_JOBS,MAINT"
        )
    ]


def test_one_that_has_begun_starts_now():
    begun = replace(MAINT, start=moment("2026-11-23T04:00:00"))
    assert lines({}, {"maint": begun})[0].startswith(
        "create ReservationName=maint StartTime=now EndTime=2030-"
    )
    made = replace(begun, start=moment("2026-11-23T04:12:00"))
    assert lines({"maint": made}, {"maint": begun}) == []


def test_one_that_is_over_is_left_out_and_named():
    over = replace(MAINT, start=moment("2020-01-01T08:00:00"), end=moment("2020-01-01T09:00:00"))
    assert lines({}, {"old": over}) == []
    assert past({"old": over, "maint": MAINT}, NOW) == ("old",)


@pytest.mark.parametrize(
    ("change", "command"),
    [
        ({"nodes": frozenset({"w1"})}, "update ReservationName=maint Nodes=w[1-2]"),
        ({"users": frozenset({"eve"})}, "update ReservationName=maint Users=root"),
        ({"accounts": frozenset({"x"})}, "update ReservationName=maint Accounts="),
        ({"end": moment("2030-01-01T13:00:00")}, "update ReservationName=maint EndTime=2030-01-01T12:00:00"),
        ({"start": moment("2030-01-01T07:00:00")}, "update ReservationName=maint StartTime=2030-01-01T08:00:00"),
        ({"flags": frozenset({"MAINT"})}, "update ReservationName=maint Flags+=IGNORE_JOBS"),
        ({"flags": MAINT.flags | {"DAILY"}}, "update ReservationName=maint Flags-=DAILY"),
    ],
)  # fmt: skip
def test_what_differs_is_updated(change, command):
    assert lines({"maint": replace(MAINT, **change)}, {"maint": MAINT}) == [command]


@pytest.mark.parametrize(
    ("flag", "first"),
    [
        ("HOURLY", "2026-11-23T05:00:00"),
        ("DAILY", "2026-11-24T03:00:00"),
        ("WEEKLY", "2026-11-30T03:00:00"),
        ("WEEKDAY", "2026-11-24T03:00:00"),
        ("WEEKEND", "2026-11-28T03:00:00"),
    ],
)
def test_a_repeating_one_begins_with_its_next_occurrence(flag, first):
    want = repeating(flag)
    assert lines({}, {"r": want}) == [
        f"create ReservationName=r StartTime={first} Duration=60 Nodes=w[1-2] Users=root Flags={flag}"
    ]
    length = want.end - want.start
    moved_on = replace(want, start=moment(first), end=moment(first) + length)
    assert lines({"r": moved_on}, {"r": want}) == []


def test_a_repeating_one_at_another_time():
    want, other = repeating("WEEKLY"), repeating("WEEKLY", "2026-12-01T03:00:00", "2026-12-01T05:00:00")
    assert lines({"r": other}, {"r": want}) == [
        "update ReservationName=r StartTime=2026-11-30T03:00:00 Duration=60"
    ]


def test_others_go_with_prune_alone():
    assert lines({"maint": MAINT}, {}) == []
    assert lines({"maint": MAINT}, {}, prune=True) == ["delete ReservationName=maint"]
    assert undeclared(Found(NOW, {"maint": MAINT}), {}) == ("maint",)

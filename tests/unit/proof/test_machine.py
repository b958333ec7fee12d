"""What the kernel says of the machine."""

from __future__ import annotations

import platform

import pytest

from rackwright.durations import duration
from tests.proof import machine
from tests.proof.machine import Meter, Usage, describe, description, memory_in_use, usage

_STAT = "cpu  1000 200 300 4000 500 60 70 80 900 100"
_CPUINFO = "processor\t: 0\nmodel name\t: AMD EPYC  7R13\nprocessor\t: 1\nmodel name\t: AMD EPYC  7R13\n"
_MEMINFO = "MemTotal:       8123456 kB\nMemFree: 1 kB\n"


def test_busy_is_all_but_idle_waiting_and_stolen_time():
    used = usage(_STAT, 7.0, 100)
    assert used.cpu_seconds == 16.3
    assert used.stolen_seconds == 0.8
    assert used.capacity_seconds == pytest.approx(62.1)
    assert used.stolen == pytest.approx(0.8 / 62.1)


def test_a_meter_never_runs_backwards():
    read = Meter().read()
    assert read.seconds >= 0
    assert 0 <= read.stolen <= 1
    assert read.memory_mib >= 0


def test_over_a_few_ticks_no_more_is_stolen_than_there_was():
    assert Usage(stolen_seconds=0.02, capacity_seconds=0.01).stolen == 1


def test_memory_in_use_is_what_is_not_available():
    assert memory_in_use("MemTotal:       8192 kB\nMemFree: 1024 kB\nMemAvailable:   2048 kB\n") == 6


def test_a_meter_has_the_peak_of_what_it_saw_and_attempts_do_not_add_up(monkeypatch):
    monkeypatch.setattr(machine, "_memory_in_use", iter([100, 300, 150]).__next__)
    meter = Meter()
    meter.sample()
    assert meter.read().memory_mib == 200
    assert (Usage(memory_mib=200) + Usage(memory_mib=50)).memory_mib == 200


@pytest.mark.parametrize(
    ("cores", "cpuinfo", "expected"),
    [
        (2, _CPUINFO, "2 cores of AMD EPYC 7R13, 8 GiB of memory, Debian 12, kernel 6.1.0"),
        (1, "", f"1 core of {platform.machine()}, 8 GiB of memory, Debian 12, kernel 6.1.0"),
    ],
)
def test_the_machine_in_words(cores, cpuinfo, expected):
    assert describe(cores, cpuinfo, _MEMINFO, "Debian 12", "6.1.0") == expected


def test_this_machine_has_no_name():
    assert f" {platform.node()}" not in description()
    assert "/work" not in description()


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.2, "0 s"), (59.4, "59 s"), (59.6, "1 min"), (185, "3 min 5 s"), (3599.7, "1 h"), (7260, "2 h 1 min")],
)
def test_durations_as_people_read_them(seconds, text):
    assert duration(seconds) == text

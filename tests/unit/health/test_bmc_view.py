"""What a BMC reports over the network comes to what the node's own checks come to."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from rackwright.bmc.interface import BmcHealth, Condition, LogEntry, Part
from rackwright.health.bmc_view import LOG_CHECKS, critical_entries, judge_bmc
from rackwright.health.registry import CHECKS
from rackwright.health.verdict import Action
from rackwright.status import Status

NOW = datetime(2026, 11, 27, 12, tzinfo=UTC)
OK, CRITICAL, WARNING, UNKNOWN, ABSENT = (
    Condition.OK, Condition.CRITICAL, Condition.WARNING, Condition.UNKNOWN, Condition.ABSENT,
)  # fmt: skip
SOUND = BmcHealth(
    OK,
    power_supplies=(Part("PSU0", OK, 1100, "W"), Part("PSU1", OK), Part("PSU2", ABSENT)),
    fans=(Part("Fan 1", OK, 9000, "RPM"),),
    temperatures=(Part("Inlet", OK, 23, "C"), Part("slot 9", UNKNOWN)),
    power_watts=2064.0,
    sel_full=3,
)


def entry(message, hours=1.0, severity=CRITICAL, sensor=None):
    return LogEntry(NOW - timedelta(hours=hours) if hours is not None else None, severity, message, sensor)


def judged(health=SOUND, log=(), **more):
    return {one.check: one for one in judge_bmc("gpu1", health, log, now=NOW, **more)}


def changed(**parts):
    return BmcHealth(**{name: getattr(SOUND, name) for name in SOUND.__slots__} | parts)


def test_a_sound_one_passes():
    results = judged()
    assert {one.status for one in results.values()} == {Status.PASS}
    assert set(results) <= set(CHECKS)
    assert results["bmc-supplies"].evidence == "2 power supplies"


@pytest.mark.parametrize(
    ("health", "check", "status", "evidence"),
    [
        (changed(power_supplies=(Part("PSU1", CRITICAL, 0, "W"),)), "bmc-supplies", Status.FAIL, "PSU1: critical, 0 W"),
        (changed(power_supplies=(Part("PSU1", WARNING),)), "bmc-supplies", Status.WARN, "PSU1: warning"),
        (changed(fans=(Part("Fan 1", CRITICAL, 0, "RPM"),)), "bmc-fans", Status.FAIL, "Fan 1: critical, 0 RPM"),
        (changed(temperatures=(Part("Inlet", CRITICAL, 47, "C"),)), "bmc-temperatures", Status.FAIL, "Inlet: critical, 47 C"),
        (changed(temperatures=(Part("Inlet", CRITICAL, 2, "C"),)), "bmc-temperatures", Status.WARN, "Inlet: critical, 2 C"),
        (changed(temperatures=(Part("CPU Margin", CRITICAL, 1, "C"),)), "bmc-temperatures", Status.FAIL, "CPU Margin: critical, 1 C"),
        (changed(sel_full=96), "bmc-log-room", Status.FAIL, "96 % full"),
        (changed(sel_full=81), "bmc-log-room", Status.WARN, "81 % full"),
        (changed(sel_full=None), "bmc-log-room", Status.OUT_OF_SCOPE, "the BMC does not report how large its event log is"),
        (changed(sel_full=100, sel_wraps=True), "bmc-log-room", Status.PASS, "100 %; a full log drops its oldest entries"),
        (changed(power_watts=None), "bmc-power", Status.OUT_OF_SCOPE, "the BMC reports no power draw"),
        (changed(power_watts=0.0), "bmc-power", Status.WARN, "0 W"),
        (changed(fans=(Part("Fan 1", UNKNOWN, 41, "%"),)), "bmc-fans", Status.OUT_OF_SCOPE, "the BMC reports no state of fans"),
        (changed(fans=(), unread=("/redfish/v1/Chassis/1/Thermal",)), "bmc-fans", Status.UNKNOWN,
         "the BMC failed to read /redfish/v1/Chassis/1/Thermal"),
    ],
)  # fmt: skip
def test_what_is_wrong(health, check, status, evidence):
    one = judged(health)[check]
    assert (one.status, one.evidence, one.action) == (status, evidence, Action.NONE)


DIMM = "Multi-bit memory errors detected on a memory device at location(s) DIMM_A3."


@pytest.mark.parametrize(
    ("log", "status"),
    [
        ([entry(DIMM)], Status.FAIL),
        ([entry(DIMM, 25)], Status.PASS),
        ([entry(DIMM, None)], Status.PASS),
        ([entry(DIMM, 1, OK), entry(DIMM, 2)], Status.PASS),
        ([entry(DIMM, 1), entry(DIMM, 2, OK)], Status.FAIL),
    ],
)
def test_an_event_counts_while_it_is_fresh_and_stands(log, status):
    one = judged(log=log)["bmc-log-memory"]
    assert one.status is status
    assert one.action is (Action.RMA if status is Status.FAIL else Action.NONE)


def test_the_events_have_the_actions_of_the_nodes_own_checks():
    words = {
        "bmc-log-processor": "CPU 1 has an internal error (IERR).",
        "bmc-log-pcie": "A fatal error was detected on a component at bus 0 device 2 function 0.",
        "bmc-log-power": "Power supply 1 has failed.",
        "bmc-log-drive": "Fault detected on drive 2 in disk drive bay 1.",
        "bmc-log-memory": "Uncorrectable ECC",
    }
    assert set(words) == set(LOG_CHECKS)
    for check, message in words.items():
        one = judged(log=[entry(message, sensor="Memory" if "ECC" in message else None)])[check]
        assert (one.status, one.action, one.remedy) == (
            Status.FAIL,
            CHECKS[check].action,
            CHECKS[check].remedy,
        )


def test_a_site_sets_another_window():
    assert (
        judged(log=[entry(DIMM, 40)], limits={"bmc_event_hours": 48})["bmc-log-memory"].status is Status.FAIL
    )


def test_critical_entries_of_any_age():
    log = [
        entry("Timestamp Clock Sync", 1),
        entry(DIMM, 900),
        entry(DIMM, 1000, OK),
        entry("CPU 1 has an internal error (IERR).", None),
    ]
    assert [(one.message, kind) for one, kind in critical_entries(log)] == [
        (DIMM, "memory"), ("CPU 1 has an internal error (IERR).", "processor"),
    ]  # fmt: skip


def test_what_a_bmc_says_is_printable():
    one = judged(changed(fans=(Part("Fan\x1b[2J", CRITICAL),)))["bmc-fans"]
    assert "\x1b" not in one.evidence

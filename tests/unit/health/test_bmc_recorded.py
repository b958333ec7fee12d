"""What BMCs printed, and what each document comes to: every finding, also those that take no node out."""

from __future__ import annotations

import pytest

from rackwright.catalog.read import catalogue
from rackwright.health.bmc_words import critical, sensor_kind
from rackwright.health.captured.judged import judge_capture
from rackwright.health.captured.kinds import kind_of, read_capture
from rackwright.health.declare import expected_of_sku
from rackwright.health.probe.bmc import parse_events, parse_power, parse_sensors, seconds_of
from rackwright.health.probe.source import Unavailable
from rackwright.status import Status
from tests.unit.health.corpus_entries import OWN

EXPECTED = expected_of_sku(catalogue()["hgx-h100"])
NOTHING: dict[str, str] = {}
FOUND = {
    "ipmi-dell-11g-elist": NOTHING,
    "ipmi-dell-four-supplies-degraded": {"bmc-supplies": "FAIL none", "bmc-redundancy": "WARN none"},
    "ipmi-dgx1-two-feeds-lost": {"bmc-supplies": "FAIL none", "bmc-redundancy": "FAIL none"},
    "ipmi-dl360-g7-psu1-failed": {"bmc-supplies": "FAIL none", "bmc-redundancy": "WARN none"},
    "ipmi-gigabyte-g431-supplies": NOTHING,
    "ipmi-hpe-gen8-supplies": NOTHING,
    "ipmi-one-supply-of-two": {"bmc-redundancy": "WARN none"},
    "ipmi-r740xd-supplies": NOTHING,
    "ipmi-sim-three-faults": {
        "bmc-supplies": "FAIL none",
        "bmc-fans": "FAIL none",
        "bmc-temperatures": "FAIL none",
    },
    "ipmi-supermicro-x10-sdr": NOTHING,
    "ipmi-telegraf-elist": NOTHING,
    "ipmi-telegraf-x3650-sdr": NOTHING,
    "sel-correctable-limit": NOTHING,
    "sel-drive-fault": {"bmc-log-drive": "FAIL none"},
    "sel-fan-and-feed-deasserted": NOTHING,
    "sel-fboss-machine-checks": {"bmc-log-processor": "FAIL drain"},
    "sel-fboss-machine-checks-two-weeks-ago": NOTHING,
    "sel-gcm-bus-fatal": {"bmc-log-pcie": "FAIL none"},
    "sel-gcm-bus-fatal-deasserted": NOTHING,
    "sel-hr650x-ierr": {"bmc-log-processor": "FAIL drain"},
    "sel-info-cisco-overflow": {"bmc-log-room": "FAIL none"},
    "sel-info-openbmc-unknown": NOTHING,
    "sel-info-supermicro": NOTHING,
    "sel-intel-s2600-first-boot": NOTHING,
    "sel-memory-non-recoverable": {"bmc-log-memory": "FAIL rma"},
    "sel-memory-non-recoverable-deasserted": NOTHING,
    "sel-openpower-ierr": {"bmc-log-processor": "FAIL drain"},
    "sel-power-cycles": NOTHING,
    "sel-quanta-pre-init": {"bmc-log-pcie": "UNKNOWN none"},
    "sel-supermicro-fans": NOTHING,
    "sel-supply-and-feed": {"bmc-log-power": "FAIL none"},
    "sel-uncorrectable-ecc": {"bmc-log-memory": "FAIL rma"},
    "sel-uncorrectable-ecc-a-week-ago": NOTHING,
}
QUIET = (Status.PASS, Status.OUT_OF_SCOPE)


def documents():
    return {
        path.stem: path.read_text() for path in (OWN / "docs").iterdir() if path.name[:4] in ("ipmi", "sel-")
    }


def test_every_document_is_pinned():
    assert sorted(documents()) == sorted(FOUND)


@pytest.mark.parametrize("name", FOUND)
def test_a_document_comes_to_this(name):
    text = documents()[name]
    kind = kind_of(text)
    assert kind is not None
    assert kind.name.startswith("ipmitool")
    results = judge_capture(EXPECTED, read_capture(text, kind))
    assert results
    found = {
        one.check: f"{one.status.value} {one.action.value}" for one in results if one.status not in QUIET
    }
    assert found == FOUND[name]


# Messages of Redfish logs: Dell's and HPE's registries, Lenovo XCC, and the words of ipmitool.
@pytest.mark.parametrize(
    ("words", "kind"),
    [
        ("Multi-bit memory errors detected on a memory device at location(s) DIMM_A3.", "memory"),
        ("Uncorrectable Memory Error (Processor 1, Memory Module 5)", "memory"),
        ("Uncorrectable error detected for DIMM 3 on Subsystem System Memory.", "memory"),
        ("Memory #0x53: Uncorrectable ECC", "memory"),
        ("Memory #0x53: Correctable ECC", None),
        ("Memory #0x53: Correctable ECC logging limit reached", None),
        ("GPU_SXM_1: uncorrectable ECC error", None),
        ("Uncorrectable Machine Check Exception (Processor 1, APIC ID 0x0)", "processor"),
        ("CPU 1 has an internal error (IERR).", "processor"),
        ("Processor CPU1_Status: Thermal Trip", "processor"),
        ("Processor #0x04: IERRATA note", None),
        ("Processor #0x04: Correctable machine check error", None),
        ("A fatal error was detected on a component at bus 0 device 2 function 0.", "pcie"),
        ("Critical Interrupt PCIE_ERR: Fatal NMI", "pcie"),
        ("Critical Interrupt #0x17: Bus Correctable error", None),
        ("A non-fatal PCIe error was detected on a component at slot 3.", None),
        ("Power supply 1 has failed.", "power"),
        ("Power Supply #0x62: Fully Redundant", None),
        ("Power Supply #0xc8: Predictive failure", None),
        ("Drive Slot / Bay #0x44: Drive Fault", "drive"),
        ("Drive Slot / Bay #0x44: Predictive Failure", None),
        ("Fault detected on drive 2 in disk drive bay 1.", "drive"),
        ("System Event: Timestamp Clock Sync", None),
    ],
)
def test_what_is_critical(words, kind):
    assert critical(words) == kind


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("06/14/2023 10:01:17", 1686736877.0),
        ("06/14/23 10:01:17 UTC", 1686736877.0),
        ("12/06/2024 10:06:50 PM EST", 1733522810.0),
        ("06/14/2023 12:01:17 AM UTC", 1686700877.0),
        ("Pre-Init 0000000123", None),
        ("Unspecified", None),
        ("99/99/2023 10:01:17", None),
    ],
)
def test_times(text, seconds):
    assert seconds_of(text) == seconds


def test_a_bmc_without_dcmi_prints_it_and_exits_zero():
    none = {"dcmi": False, "watts": None, "active": None}
    assert parse_power("\n    DCMI request failed because: Invalid data field in request (cc)\n") == none
    printed = "Instantaneous power reading:   167 Watts\nPower reading state is:      activated\n"
    assert parse_power(printed) == {"dcmi": True, "watts": 167, "active": True}
    with pytest.raises(Unavailable):
        parse_power("")


def test_what_is_no_sensor_is_left_out():
    with pytest.raises(Unavailable):
        parse_sensors("Could not open device at /dev/ipmi0\n")
    assert parse_events("SEL has no entries\n a | half a line\n") == []
    assert sensor_kind("PS1 Status", None, "10.1", "Presence detected") == "supply"
    assert sensor_kind("PSU2_STATUS", None, "10.2", "") is None
    assert sensor_kind("ROMB Battery", None, "26.3", "Failure detected") is None

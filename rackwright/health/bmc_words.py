"""How to read BMC texts: ipmitool's sensors and event log, and Redfish messages.

Sensor and event texts: the tables of ipmitool's ipmi_sel.h (IPMI 2.0, tables 42-2 and 42-3), read 2026-11-27.
Messages: event logs that Dell, HPE, Lenovo, Supermicro, Gigabyte, Fujitsu and OpenPOWER machines printed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeVar

MEMORY, PROCESSOR, PCIE, POWER, DRIVE = "memory", "processor", "pcie", "power", "drive"
NAMES = {
    MEMORY: "uncorrectable memory error",
    PROCESSOR: "processor error",
    PCIE: "fatal PCIe error",
    POWER: "power unit failure",
    DRIVE: "drive fault",
}
"""Names of the critical event kinds."""

_FLAGS = re.IGNORECASE
_HARMLESS = re.compile(r"predict|non-?fatal|non-?uncorrect|\bno (?:uncorrect|fatal)", _FLAGS)
_GPU = re.compile(r"gpu|hbm|sram|nvlink|nvswitch", _FLAGS)
"""GPU events are skipped: the driver reports more, and the GPU checks judge it."""
_EVENTS = (
    (
        PROCESSOR,
        re.compile(
            r"(?<![a-z])(?:ierr|caterr|mcerr)(?![a-z])|thermal trip|uncorrectable cpu-complex|internal error \(ierr\)"
            r"|uncorrectable machine check|^processor.*(?:non-recoverable|unrecoverable)|^cpu \d+ has an internal error"
            r"|^processor.*frb[123]",
            _FLAGS,
        ),
    ),
    (
        PCIE,
        re.compile(
            r"pci [sp]err|bus fatal error|bus uncorrectable error|fatal nmi|(?:fatal|uncorrect\w*)[^|]*\bpci"
            r"|\bpci.*(?:fatal|uncorrect)|fatal error was detected on a component at (?:bus|slot)",
            _FLAGS,
        ),
    ),
    (
        MEMORY,
        re.compile(
            r"uncorrect\w* ecc|multi-?bit (?:memory )?error|uncorrect\w*[^|]*(?:memory|dimm)"
            r"|(?:memory|dimm)[^|]*uncorrect|^memory.*(?:non-recoverable|unrecoverable|parity|scrub failed)",
            _FLAGS,
        ),
    ),
    (
        POWER,
        re.compile(
            r"^power (?:supply|unit).*(?:failure detected|240va|interlock power|soft-power control failure)"
            r"|power supply \S+ (?:has )?failed",
            _FLAGS,
        ),
    ),
    (
        DRIVE,
        re.compile(
            r"^drive slot.*(?:drive fault|in failed array)|fault detected on drive|^(?:physical )?d(?:isk|rive) .*\bfailed",
            _FLAGS,
        ),
    ),
)
"""By the sensor and the event in one text; the first that matches counts."""

_FAN = re.compile(r"fan|blower|cooling|tach", _FLAGS)
_MARGIN = re.compile(r"marg|mgn|mrgn|dts", _FLAGS)
_REDUNDANCY = re.compile(r"redundan", _FLAGS)
SUPPLY_FAILED = ("Failure detected", "Power Supply AC lost", "AC lost or out-of-range", "AC lost")
SUPPLY_WARNS = ("Predictive failure", "AC out-of-range, but present", "Config Error", "240VA power down")
REDUNDANCY_LOST = ("Redundancy Lost", "Non-Redundant: Insufficient Resources")
FAN_FAILED = ("Transition to Non-recoverable", "Transition to Critical", "Failure detected")
BEYOND = ("cr", "nr", "lcr", "ucr", "lnr", "unr")
"""States of a sensor beyond its critical threshold: ipmitool 1.8.18 prints cr and nr, 1.8.19 which side it is on."""
NEAR = ("nc", "lnc", "unc")
UNREAD = ("ns", "na")
SUPPLY, FAN, TEMPERATURE = "supply", "fan", "temperature"
SUPPLY_SET, FAN_SET = "redundancy of power supplies", "redundancy of fans"


def critical(words: str) -> str | None:
    """The kind of critical event that a text reports; None: it reports none."""
    if _HARMLESS.search(words) or _GPU.search(words):
        return None
    return next((kind for kind, pattern in _EVENTS if pattern.search(words)), None)


def sensor_kind(name: str, unit: str | None, entity: str | None, text: str) -> str | None:
    """The kind of a sensor, as far as the checks need it."""
    if _REDUNDANCY.search(text):
        return FAN_SET if _FAN.search(name) else SUPPLY_SET
    if unit == "degrees C":
        return TEMPERATURE
    if unit == "RPM":
        return FAN
    supply = any(words in text for words in (*SUPPLY_FAILED, *SUPPLY_WARNS))
    if (entity or "").partition(".")[0] == "10" and (supply or "Presence detected" in text):
        return SUPPLY
    if _FAN.search(name) and (unit == "percent" or any(words in text for words in FAN_FAILED)):
        return FAN
    return SUPPLY if supply and re.search("power|pwr|psu?[ _-]?\\d", name, _FLAGS) else None


def is_margin(name: str) -> bool:
    """Whether a temperature is a margin to a limit, so that a low value is hot."""
    return _MARGIN.search(name) is not None


def is_low(name: str, state: str, value: float, cold: float) -> bool:
    """Whether a temperature beyond a threshold is too low, or not read, rather than hot.

    + cold: without a side in the state, what is below it is low
    """
    if is_margin(name) or state in ("unc", "ucr", "unr"):
        return False
    return value < cold or state in ("lnc", "lcr", "lnr")


@dataclass(frozen=True)
class Event:
    """One entry of an event log; `at` is None if its time cannot be trusted."""

    at: float | None
    words: str
    asserted: bool = True
    severe: bool = True
    """False if the BMC itself rates it harmless."""


E = TypeVar("E", bound=Event)


def standing(events: Iterable[E]) -> list[E]:
    """The last event of each text, oldest first, without those that were deasserted."""
    last: dict[str, E] = {}
    for event in events:
        last.pop(event.words, None)
        last[event.words] = event
    return [one for one in last.values() if one.asserted and one.severe]


def fresh(event: Event, now: float, seconds: float, ahead: float) -> bool:
    """Whether an event is at most this old; one without a time or with a future time is not."""
    return event.at is not None and -ahead <= now - event.at <= seconds

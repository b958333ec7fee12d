"""Parses the output of ipmitool: each function takes text and never raises."""

from __future__ import annotations

import re
from datetime import UTC, datetime

from rackwright.bmc.interface import (
    BmcIdentity,
    BootOverride,
    BootTarget,
    Condition,
    Firmware,
    LogEntry,
    Part,
    Power,
)
from rackwright.boundary import printable

_TEXT_MAX = 200
_DEVICES = {
    "no override": BootTarget.NONE,
    "force pxe": BootTarget.PXE,
    "force boot from default hard-drive": BootTarget.DISK,
    "force boot from cd/dvd": BootTarget.CD,
    "force boot into bios setup": BootTarget.SETUP,
}
_POWER_SUPPLY = "10"
"""The entity of power supplies in IPMI's table of entities."""
_BY_STATUS = {"ok": Condition.OK, "ns": Condition.ABSENT}
_WARNINGS = ("nc", "lnc", "unc")
_CRITICALS = ("cr", "lcr", "ucr", "nr", "lnr", "unr")
_CRITICAL = re.compile(
    r"(?<!non-)critical|non-recoverable|(?<!predictive )failure|failed|uncorrectable|fault|"
    r"(ac|input|power supply input|voltage) lost|thermal trip|ierr|machine check|bus fatal",
    re.IGNORECASE,
)
_WARNING = re.compile(r"non-critical|predictive|correctable|degraded|redundancy lost", re.IGNORECASE)


def power_of(text: str) -> Power:
    """`power status`."""
    found = re.search(r"Chassis Power is (on|off)\b", text)
    return Power(found[1]) if found else Power.UNKNOWN


def boot_of(text: str) -> BootOverride:
    """`chassis bootparam get 5`; invalid flags override nothing."""
    device = re.search(r"Boot Device Selector : (.+)", text)
    target = _DEVICES.get(device[1].strip().lower(), BootTarget.NONE) if device else BootTarget.NONE
    if target is BootTarget.NONE or "Boot Flag Valid" not in text:
        return BootOverride(BootTarget.NONE)
    return BootOverride(target, once="apply to only next boot" in text)


def identity_of(fru: str, mc: str) -> BmcIdentity:
    """`fru print 0` and `mc info`. IPMI knows no MACs of the node's own ports."""
    there, info = _fields(fru), _fields(mc)
    return BmcIdentity(
        maker=there.get("Product Manufacturer") or there.get("Board Mfg"),
        model=there.get("Product Name") or there.get("Board Product"),
        serial=there.get("Product Serial") or there.get("Chassis Serial"),
        bmc_firmware=info.get("Firmware Revision"),
    )


def firmware_of(mc: str) -> list[Firmware]:
    """`mc info`: the BMC's own firmware is all that IPMI reports."""
    revision = _fields(mc).get("Firmware Revision")
    return [] if revision is None else [Firmware("bmc", "BMC", revision)]


def overall_of(chassis: str) -> Condition:
    """`chassis status`: faults of the power supply, the fans and the drives."""
    faults = [
        value
        for name, value in _fields(chassis).items()
        if name in ("Power Overload", "Main Power Fault", "Drive Fault", "Cooling/Fan Fault")
    ]
    if "true" in faults:
        return Condition.CRITICAL
    return Condition.OK if faults and set(faults) == {"false"} else Condition.UNKNOWN


def parts_of(sdr: str) -> tuple[list[Part], list[Part], list[Part]]:
    """`sdr elist`: power supplies, fans and temperatures."""
    supplies: list[Part] = []
    fans: list[Part] = []
    temperatures: list[Part] = []
    for line in sdr.splitlines():
        cells = [cell.strip() for cell in line.split("|")]
        if len(cells) != 5:
            continue
        name, _, status, entity, reading = cells
        name, state = printable(name, _TEXT_MAX), _state(status)
        if measured := re.fullmatch(r"(-?\d{1,9}(?:\.\d{1,9})?) (degrees C|RPM)", reading):
            into, unit = (fans, "RPM") if measured[2] == "RPM" else (temperatures, "C")
            into.append(Part(name, state, float(measured[1]), unit))
        elif entity.partition(".")[0] == _POWER_SUPPLY and not reading[:1].isdigit():
            supplies.append(Part(name, _supply_state(state, reading)))
    return supplies, fans, temperatures


def watts_of(dcmi: str) -> float | None:
    """`dcmi power reading`."""
    found = re.search(r"Instantaneous power reading\s*:\s*(\d{1,9})\s+Watts", dcmi)
    return float(found[1]) if found else None


def fullness_of(sel: str) -> int | None:
    """`sel info`."""
    found = re.search(r"Percent Used\s*:\s*(\d{1,3})%", sel)
    return min(100, int(found[1])) if found else None


def entries_of(sel: str) -> list[LogEntry]:
    """`sel elist`, newest first."""
    entries = [entry for line in sel.splitlines() if (entry := _entry(line)) is not None]
    return entries[::-1]


def _entry(line: str) -> LogEntry | None:
    cells = [cell.strip() for cell in line.split("|")]
    if len(cells) < 5 or not re.fullmatch(r"[0-9a-fA-F]{1,4}", cells[0]):
        return None
    _, day, hour, sensor, *event = cells
    message = printable(", ".join(part for part in event if part not in ("", "Asserted")), _TEXT_MAX)
    ended = "Deasserted" in event
    severity = Condition.OK if ended else _severity(message)
    return LogEntry(_time(day, hour), severity, message, printable(sensor, _TEXT_MAX))


def _severity(message: str) -> Condition:
    """Severity from the words of the event; IPMI has no severity field."""
    if _WARNING.search(message) and not re.search(r"uncorrectable|non-recoverable", message, re.IGNORECASE):
        return Condition.WARNING
    return Condition.CRITICAL if _CRITICAL.search(message) else Condition.UNKNOWN


def _time(day: str, hour: str) -> datetime | None:
    """Years have two digits since ipmitool 1.8.19, and four before."""
    hour = hour.removesuffix(" UTC")
    for layout in ("%m/%d/%y %H:%M:%S", "%m/%d/%Y %H:%M:%S"):
        try:
            return datetime.strptime(f"{day} {hour}", layout).replace(tzinfo=UTC)
        except ValueError:
            continue
    return None


def _state(status: str) -> Condition:
    if status in _WARNINGS:
        return Condition.WARNING
    if status in _CRITICALS:
        return Condition.CRITICAL
    return _BY_STATUS.get(status, Condition.UNKNOWN)


def _supply_state(state: Condition, reading: str) -> Condition:
    found = _severity(reading)
    if found is not Condition.UNKNOWN:
        return found
    if "Presence detected" in reading:
        return Condition.OK if state in (Condition.OK, Condition.ABSENT) else state
    return Condition.ABSENT if reading in ("", "No Reading", "Disabled") else Condition.UNKNOWN


def _fields(text: str) -> dict[str, str]:
    """Lines `Name : value`; the first of each name."""
    found: dict[str, str] = {}
    for line in text.splitlines():
        name, colon, value = line.partition(":")
        if colon and value.strip():
            found.setdefault(name.strip(), printable(value.strip(), _TEXT_MAX))
    return found

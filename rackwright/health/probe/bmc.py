"""Queries the node's BMC in-band with ipmitool: sensors, event log, power draw, chassis faults.

A BMC answers one query at a time and takes seconds, so short queries come first and each has a separate time limit.
A missing device or ipmitool is not an error: not every node can reach a BMC.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime, timezone
from typing import Any

from rackwright.health.probe.source import Source, Unavailable, integer, number, pairs, patience

UTC = timezone.utc  # noqa: UP017 - Python 3.9
TOOL = "/usr/bin/ipmitool"
DEVICES = ("/dev/ipmi0", "/dev/ipmi/0", "/dev/ipmidev/0")
"""Where ipmitool looks for its driver."""
SHORT_SECONDS = 3.0
LOG_SECONDS = 8.0
SENSORS_SECONDS = 15.0
"""Long, because ipmitool first reads the description of each sensor, one by one."""
NEWEST = 256
SENSORS_MAX = 1000
FAULTS = ("Power Overload", "Main Power Fault", "Power Control Fault", "Drive Fault", "Cooling/Fan Fault")
NO_DCMI = re.compile(r"DCMI request failed|not supported|[Ii]nvalid command|Unable to get DCMI")
_TIME = re.compile(r"(\d\d)/(\d\d)/(\d{2,4})\D+(\d\d):(\d\d):(\d\d)(?: ([AP]M))?")
_READING = re.compile(r"(-?\d+(?:\.\d+)?) ([A-Za-z][A-Za-z /%]*)$")
_STATE = re.compile(r"[a-z]{2,3}")


def bmc(source: Source, request: dict[str, Any]) -> dict[str, Any]:
    """All queries to the BMC. Only a failure of the first one ends the rest."""
    device = next((path for path in DEVICES if source.exists(path)), None)
    tool = "ipmitool" if source.exists(TOOL) else None
    answers: dict[str, Any] = {"tool": tool, "device": device, "why": None, "firmware": None, "maker": None}
    answers["uptime_s"] = number(source.maybe("/proc/uptime"))
    if tool is None or device is None:
        return answers

    def ask(words: str, seconds: float) -> str:
        return source.run([tool, *words.split()], patience(request, seconds))

    try:
        answers.update(parse_controller(ask("mc info", SHORT_SECONDS)))
    except Unavailable as error:
        return {**answers, "why": str(error)}
    log = _part(answers, "log", lambda: parse_log(ask("sel info", SHORT_SECONDS)))
    _part(answers, "clock", lambda: seconds_of(ask("sel time get", SHORT_SECONDS)))
    _part(answers, "faults", lambda: parse_chassis(ask("chassis status", SHORT_SECONDS)))
    _part(answers, "power", lambda: _power(ask))
    _part(answers, "events", lambda: _events(ask, log))
    _part(answers, "sensors", lambda: parse_sensors(ask("sdr elist", SENSORS_SECONDS)))
    return answers


def _part(answers: dict[str, Any], name: str, read: Callable[[], Any]) -> Any:  # noqa: ANN401
    """Store one answer, or the reason for its absence as `NAME_why`."""
    answers[name], answers[name + "_why"] = None, None
    try:
        answers[name] = read()
    except Unavailable as error:
        answers[name + "_why"] = str(error)
    return answers[name]


def parse_controller(text: str) -> dict[str, Any]:
    """Read `mc info`."""
    found = pairs(text, ":")
    if "Device Available" not in found:
        raise Unavailable("`ipmitool mc info` does not report whether the BMC is available")
    if found["Device Available"] != "yes":
        raise Unavailable(
            "the BMC reports that it is not available: it is starting, or its firmware is being updated"
        )
    return {
        "firmware": found.get("Firmware Revision") or None,
        "maker": found.get("Manufacturer Name") or None,
    }


def parse_log(text: str) -> dict[str, Any]:
    """Read `sel info`: how full the event log is; None if the BMC does not report its size."""
    found = pairs(text, ":")
    entries = integer(found.get("Entries"))
    if entries is None or "Percent Used" not in found or found.get("Overflow") not in ("true", "false"):
        raise Unavailable("`ipmitool sel info` lacks entries, percent used or overflow")
    percent = integer(found["Percent Used"].rstrip("%"))
    return {"entries": entries, "percent": percent, "overflow": found["Overflow"] == "true"}


def parse_chassis(text: str) -> list[str]:
    """Read `chassis status`: the faults that it reports."""
    found = pairs(text, ":")
    missing = [name for name in FAULTS if found.get(name) not in ("true", "false")]
    if missing:
        raise Unavailable(f"`ipmitool chassis status` lacks {', '.join(missing)}")
    return [name for name in FAULTS if found[name] == "true"]


def _power(ask: Callable[[str, float], str]) -> dict[str, Any]:
    try:
        return parse_power(ask("dcmi power reading", SHORT_SECONDS))
    except Unavailable as error:
        if NO_DCMI.search(str(error)):
            return {"dcmi": False, "watts": None, "active": None}
        raise


def parse_power(text: str) -> dict[str, Any]:
    """Read `dcmi power reading`; a BMC without DCMI exits 0 too."""
    if NO_DCMI.search(text):
        return {"dcmi": False, "watts": None, "active": None}
    watts = re.search(r"Instantaneous power reading: +(\d+) Watts", text)
    state = re.search(r"Power reading state is: +(\w+)", text)
    if watts is None or state is None:
        raise Unavailable("`ipmitool dcmi power reading` prints no power")
    return {"dcmi": True, "watts": int(watts.group(1)), "active": state.group(1) == "activated"}


def _events(ask: Callable[[str, float], str], log: dict[str, Any] | None) -> list[dict[str, Any]]:
    """The newest entries. Uses `sel list`, because `elist` looks up each sensor and is slow."""
    entries = log["entries"] if log is not None else None
    if entries == 0:
        return []
    text = ask(f"sel list last {NEWEST}", LOG_SECONDS)
    found = parse_events(text)
    if 2 * len(text.splitlines()) < min(entries or 0, NEWEST):
        raise Unavailable(f"`ipmitool sel list` prints {len(text.splitlines())} of {entries} entries")
    return found


def parse_events(text: str) -> list[dict[str, Any]]:
    """Read `sel list` or `sel elist`, the oldest first. OEM records cannot be decoded."""
    found = []
    for line in text.splitlines():
        fields = [field.strip() for field in line.split("|")]
        if len(fields) < 5 or not re.fullmatch("[0-9a-f]+", fields[0]):
            continue
        sensor, *words = fields[3:]
        ends = [at for at, word in enumerate(words) if word in ("Asserted", "Deasserted")]
        event = " | ".join(words[: ends[0]] if ends else words)
        found.append(
            {
                "at": seconds_of(f"{fields[1]} {fields[2]}"),
                "sensor": sensor,
                "event": event,
                "asserted": "Deasserted" not in (words[ends[0]] if ends else event),
            }
        )
    return found


def seconds_of(text: str) -> float | None:
    """A time of the event log (ipmitool runs in UTC); None for `Pre-Init` and other text."""
    found = _TIME.search(text)
    if found is None:
        return None
    month, day, year, hour, minute, second = (int(part) for part in found.groups()[:6])
    if found.group(7):
        hour = hour % 12 + (12 if found.group(7) == "PM" else 0)
    try:
        when = datetime(year + 2000 if year < 100 else year, month, day, hour, minute, second, tzinfo=UTC)
    except ValueError:
        return None
    return when.timestamp()


def parse_sensors(text: str) -> list[dict[str, Any]]:
    """Read `sdr elist`, or the shorter `sdr list`; sensors without a reading are left out."""
    found, lines = [], 0
    for line in text.splitlines():
        fields = [field.strip() for field in line.split("|")]
        if len(fields) == 3:
            name, reading, state, entity = fields[0], fields[1], fields[2], None
        elif len(fields) == 5:
            name, _, state, entity, reading = fields
        else:
            continue
        if not _STATE.fullmatch(state):
            continue
        lines += 1
        if state in ("ns", "na"):
            continue
        value = _READING.match(reading.partition(",")[0])
        found.append(
            {
                "name": name,
                "state": state,
                "entity": entity,
                "value": number(value.group(1)) if value else None,
                "unit": value.group(2) if value else None,
                "text": reading,
            }
        )
    if not lines:
        raise Unavailable("`ipmitool sdr` lists no sensor")
    return found[:SENSORS_MAX]

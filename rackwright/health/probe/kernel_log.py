"""Errors in the kernel log of the last day: read with their structured fields, grouped, counted.

A fault can repeat thousands of times and push its cause out of any window of lines. So identical errors
become one entry, with the first and last time, the count, and the number of bursts.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any, NamedTuple

from rackwright.health.probe.kernel_events import Events, Surroundings
from rackwright.health.probe.kernel_patterns import ADDRESS
from rackwright.health.probe.kernel_surroundings import Sysfs
from rackwright.health.probe.source import Source, Unavailable, number, pairs, patience

DAY = 86400
JOURNAL_SECONDS = 5.0
ROUNDED_SECONDS = 1.0
"""journalctl takes whole seconds."""
CLOCK_SET_SECONDS = 60.0
"""Difference between the two times of a line from which the clock was set, not just slewed."""
FIELDS = "MESSAGE,SYSLOG_FACILITY,_KERNEL_DEVICE"


class Line(NamedTuple):
    """One message of the kernel."""

    at: float
    """Seconds since the epoch."""
    message: str
    device: str | None = None
    """PCI address from the kernel's structured field."""


def kernel_log(source: Source, request: dict[str, Any]) -> dict[str, Any]:
    """Errors from the journal, else from the kernel's ring buffer."""
    since = max(source.now() - DAY, float(request.get("log_since") or 0))
    try:
        lines, where = from_journal(source, since, patience(request, JOURNAL_SECONDS)), "journalctl"
    except Unavailable as error:
        try:
            lines, where = from_kmsg(source, since), "/dev/kmsg"
        except Unavailable as second:
            raise Unavailable(f"{error}; {second}") from None
    return {"from": where, "since": int(since), "lines": len(lines), **sort_out(lines, Sysfs(source))}


def from_journal(source: Source, since: float, limit: float = JOURNAL_SECONDS) -> list[Line]:
    """Every kernel line in the journal of this boot since then, without lines that programs wrote."""
    booted = boot_time(source)
    command = ["journalctl", "-k", "-b", "-q", "--no-pager", "-o", "json", f"--output-fields={FIELDS}"]
    # --since uses the journal's timestamps: with a clock that was behind it would hide lines of a recent boot
    is_young = booted is not None and booted >= since
    text = source.run(command if is_young else [*command, f"--since=@{since:.0f}"], limit)
    lines = []
    for line in text.splitlines():
        try:
            entry = json.loads(line)
            at = steady(int(entry["__REALTIME_TIMESTAMP"]) / 1e6, booted, entry.get("__MONOTONIC_TIMESTAMP"))
            message, facility = entry["MESSAGE"], entry.get("SYSLOG_FACILITY", "0")
            device = entry.get("_KERNEL_DEVICE")
        except (ValueError, KeyError, TypeError, AttributeError):
            raise Unavailable(f"`journalctl -o json` printed something else: {line[:80]}") from None
        if isinstance(message, list):  # a list of bytes if the message is not text
            message = bytes(message).decode("utf-8", "replace")
        if message is not None and facility == "0" and at >= since - ROUNDED_SECONDS:
            lines.append(Line(at, message, pci_of(device)))
    if not lines and not source.run(
        ["journalctl", "-k", "-b", "-q", "--no-pager", "-n", "1", "-o", "cat"], limit
    ):
        raise Unavailable("journalctl: no kernel line of this boot")  # then silence proves nothing
    return lines


def boot_time(source: Source) -> float | None:
    """Boot time by the current clock; None if the node does not report it."""
    uptime = number((source.maybe("/proc/uptime") or "").strip() or None)
    return source.now() - uptime if uptime is not None else None


def steady(stamped: float, booted: float | None, monotonic: object) -> float:
    """When a line was logged, by the current clock.

    The journal stamps a line with the clock of that moment, which may have been set since; the time since boot is never
    set, and `journalctl -o json` always prints it (journalctl(1), __MONOTONIC_TIMESTAMP, read 2026-11-23).
    """
    if booted is None or not isinstance(monotonic, str) or not re.fullmatch("[0-9]{1,18}", monotonic):
        return stamped
    steady = booted + int(monotonic) / 1e6
    return steady if abs(steady - stamped) > CLOCK_SET_SECONDS else stamped


def pci_of(device: object) -> str | None:
    """`+pci:0000:4b:00.0` as an address; None for a device elsewhere."""
    found = re.fullmatch(rf"\+pci:({ADDRESS})", device) if isinstance(device, str) else None
    return found.group(1) if found else None


def from_kmsg(source: Source, since: float) -> list[Line]:
    """Every record of the ring buffer since then; times are derived from the uptime."""
    booted = source.now() - float(number(source.text("/proc/uptime")) or 0)
    lines = []
    records = source.kmsg()
    for record in records:
        head, _, rest = record.partition(";")
        fields = head.split(",")
        if len(fields) < 3 or not (fields[0].isdigit() and fields[2].isdigit()):
            raise Unavailable(f"/dev/kmsg: a record reads {record[:80]!r}")
        message, _, more = rest.partition("\n")
        if int(fields[0]) >> 3 == 0 and booted + int(fields[2]) / 1e6 >= since:
            device = pairs(more).get("DEVICE")
            lines.append(Line(booted + int(fields[2]) / 1e6, unescaped(message), pci_of(device)))
    if not records:
        raise Unavailable("/dev/kmsg: no record")
    return lines


def unescaped(message: str) -> str:
    """A message of /dev/kmsg with its escapes for non-printable bytes decoded."""
    return re.sub(r"\\x([0-9a-f]{2})", lambda found: chr(int(found.group(1), 16)), message)


def sort_out(lines: Iterable[tuple[Any, ...]], around: Surroundings | None = None) -> dict[str, Any]:
    """`entries` of the lines that are errors, newest last, and `counts` of lines by kind.

    `lines` are (time, message) or (time, message, PCI address); `around` has the kinds of devices and the mount points
    of drives, which are unknown in a log that was captured alone.
    """
    events = Events(around or Surroundings())
    for line in lines:
        events.add(*line)
    return {"entries": events.entries(), "counts": events.counts}

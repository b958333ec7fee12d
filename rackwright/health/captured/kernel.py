"""Kernel logs as they are saved: dmesg with or without times, journalctl, /dev/kmsg, syslog."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from typing import Any

from rackwright.health.captured.reading import Context, Reading
from rackwright.health.probe.kernel_events import Surroundings
from rackwright.health.probe.kernel_log import sort_out, unescaped
from rackwright.health.probe.source import Unavailable

_LEVEL = r"(?:<\d+>|\w+ *:\w+ *: )?"
_UPTIME = re.compile(rf"^{_LEVEL}\[ *(\d+\.\d+)\](?:\[ *[TC]\d+\])? ?(.*)$")
_DATE = re.compile(rf"^{_LEVEL}\[(\w{{3}} \w{{3}} +\d+ \d\d:\d\d:\d\d \d{{4}})\] ?(.*)$")
_KMSG = re.compile(r"^(\d+),\d+,(\d+),[^;]*;(.*)$")
_ISO = r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?"
_SHORT = r"\w{3} +\d+ \d\d:\d\d:\d\d(?:\.\d+)?"
_SYSLOG = re.compile(
    rf"^(?:<\d+>)?(?:\w{{3}} )?({_ISO}|{_SHORT})(?: [A-Z]{{3,4}})? (?:\S+ )?kernel(?:\[\d+\])?: (?:\[ *\d+\.\d+\] )?(.*)$"
)
_ISO_ALONE = re.compile(rf"^({_ISO}) (.*)$")
_TAG = re.compile(
    r"^(?:[\w.-]+ )?kernel(?:\[\d+\])?: (?:\[ *\d+\.\d+\] )?|^\[(?: *\+\d+\.\d+|\w{3} *\d+ \d\d:\d\d)\] ?"
)
"""Also of `dmesg -e`, whose times are differences."""
_BARE = re.compile(
    r"\b(?:NVRM|Xid|SXid|nvidia-nvswitch|nvidia-peermem|EDAC|mce|AER|GHES|pcieport|mlx\d_core|nvme\d*|ata\d|rcu"
    r"|watchdog|INFO: task|BUG:|Out of memory|EXT4-fs|XFS|BTRFS|nfs|LustreError|I/O error|blk_update_request"
    r"|print_req_error|block|Buffer I/O|IPv6: ADDRCONF|usb \d|pci \d|entered .* state|available PCIe bandwidth"
    r"|Hardware Error|Linux version|amdgpu|megaraid_sas|systemd\[1\]|Call Trace|Kernel panic|VFS|segfault)"
)
DRIVERS = {"nvidia": "gpu", "amdgpu": "gpu", "mlx5_core": "rdma", "nvme": "nvme"}
_DRIVER = re.compile(rf"\b({'|'.join(DRIVERS)}) ([0-9a-fA-F]{{4}}:[0-9a-fA-F]{{2}}:[0-9a-fA-F]{{2}}\.[0-7])")
SPARE_YEAR = 2000
"""journalctl's short times name no year; only differences count."""


def is_kernel_log(text: str) -> bool:
    """Lines in one of the forms with times, or with words that kernels use."""
    lines = [line for line in text.splitlines() if line.strip()]
    known = sum(_timed(line) is not None or _BARE.search(line) is not None for line in lines)
    return bool(lines) and known > len(lines) / 10


def kernel_log(text: str, context: Context) -> Reading:
    """Every error in the log, of any age: an excerpt was saved because of its content."""
    lines = _lines(text)
    if not lines:
        raise Unavailable("no line")
    complaints = sort_out(lines, Words(text, context))
    section = {"from": "a capture", "since": int(lines[0][0]), "lines": len(lines), **complaints}
    return Reading({"kernel_log": section}, taken_at=lines[-1][0])


class Words(Surroundings):
    """The devices of a log, from the context if there is one, else from the log itself."""

    def __init__(self, text: str, context: Context) -> None:
        self._context = context
        self._named = {address.lower(): DRIVERS[driver] for driver, address in _DRIVER.findall(text)}
        self._named.update({address.lower(): "gpu" for address in context.gpus})
        self._named.update({address.lower(): "rdma" for address in context.nics})

    def device(self, address: str) -> str | None:
        """gpu, rdma or nvme; None if unknown."""
        address = address.lower()
        return self._named.get(address if "." in address else address + ".0")

    def mounts(self, device: str) -> list[str] | None:
        """`/` for a drive that is known to carry declared filesystems."""
        if not self._context.drives:
            return None
        return ["/"] if device.startswith(self._context.drives) else []


def _lines(text: str) -> list[tuple[float, str]]:
    """(seconds, message) of each line; one without a time is of the time before it."""
    found: list[tuple[float, str]] = []
    now = 0.0
    for line in text.splitlines():
        timed = _timed(line)
        if timed is not None:
            now, message = timed
        elif line.strip():
            message = _TAG.sub("", line)
        else:
            continue
        found.append((now, message))
    return found


def _timed(line: str) -> tuple[float, str] | None:
    found = _UPTIME.match(line)
    if found:
        return float(found.group(1)), found.group(2)
    found = _KMSG.match(line)
    if found:
        return int(found.group(2)) / 1e6, unescaped(found.group(3))
    found = _DATE.match(line)
    if found:
        return _seconds(found.group(1), "%a %b %d %H:%M:%S %Y"), found.group(2)
    found = _SYSLOG.match(line) or _ISO_ALONE.match(line)
    if found:
        return _of_syslog(found.group(1)), found.group(2)
    return _of_journal(line) if line.startswith("{") else None


def _of_syslog(text: str) -> float:
    if text[0].isdigit():
        text = re.sub(r"[.,]\d+|Z$", "", text.replace("T", " ")).strip()
        return _seconds(text[:19], "%Y-%m-%d %H:%M:%S")
    words = re.sub(r"\.\d+$", "", text).split()
    return _seconds(" ".join([*words, str(SPARE_YEAR)]), "%b %d %H:%M:%S %Y")


def _seconds(text: str, form: str) -> float:
    try:
        return datetime.strptime(text, form).replace(tzinfo=UTC).timestamp()
    except ValueError:
        return 0.0


def _of_journal(line: str) -> tuple[float, str] | None:
    """A line of `journalctl -o json`."""
    try:
        record: dict[str, Any] = json.loads(line)
        return int(record["__REALTIME_TIMESTAMP"]) / 1e6, str(record["MESSAGE"])
    except (ValueError, KeyError, TypeError):
        return None

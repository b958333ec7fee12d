"""What sysfs and tools print about RDMA devices, read into values: text in, nothing else."""

from __future__ import annotations

import re
from dataclasses import dataclass

from rackwright.claims.check import Undetermined

READ = """for path in /sys/class/infiniband/*; do
    [ -e "$path" ] || continue
    echo "device ${path##*/}"
    at=$(readlink -f "$path/device" 2>/dev/null); echo "at ${at##*/}"
    for file in fw_ver board_id ports/1/state ports/1/phys_state ports/1/rate ports/1/link_layer; do
        [ ! -r "$path/$file" ] || echo "${file##*/} $(cat "$path/$file")"
    done
done
echo end"""
"""Shell: every RDMA device with its first port, a line for each value."""
_PCI = re.compile(r"[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")
_RATE = re.compile(r"([0-9]+(?:\.[0-9]+)?) Gb/sec")


@dataclass(frozen=True)
class Found:
    """An RDMA device in sysfs; None: not reported."""

    name: str
    pci: str | None = None
    firmware: str | None = None
    board: str | None = None
    state: str | None = None
    """E.g. `ACTIVE`."""
    physical: str | None = None
    """E.g. `LinkUp`."""
    rate_gbps: float | None = None
    link_layer: str | None = None


def parse_devices(text: str) -> dict[str, Found]:
    """What READ prints, by name. Undetermined where its last line is missing."""
    lines = text.splitlines()
    if not lines or lines[-1] != "end":
        raise Undetermined(f"/sys/class/infiniband was not read to its end: {text[-60:]!r}")
    found: dict[str, Found] = {}
    values: dict[str, str] = {}
    for line in lines:
        word, _, value = line.partition(" ")
        if word in ("device", "end"):
            if values:
                found[values["device"]] = _found(values)
            values = {}
        if word != "end":
            values[word] = value.strip()
    return found


def _found(values: dict[str, str]) -> Found:
    rate = _RATE.match(values.get("rate", ""))
    at = values.get("at", "")
    return Found(
        values["device"],
        at if _PCI.fullmatch(at) else None,
        values.get("fw_ver") or None,
        values.get("board_id") or None,
        _after_colon(values.get("state")),
        _after_colon(values.get("phys_state")),
        float(rate[1]) if rate else None,
        values.get("link_layer") or None,
    )


def _after_colon(value: str | None) -> str | None:
    """`4: ACTIVE` as `ACTIVE`."""
    return value.partition(": ")[2] or None if value else None


def parse_memlock(text: str) -> tuple[str, str]:
    """(soft, hard) of `prlimit --memlock --output=SOFT,HARD --noheadings`, or of /proc/PID/limits."""
    for line in text.splitlines():
        words = line.removeprefix("Max locked memory").split()
        if len(words) >= 2 and all(word == "unlimited" or word.isdecimal() for word in words[:2]):
            return words[0], words[1]
    raise Undetermined(f"no limit of locked memory in {text[:60]!r}")

"""What is on a disk: file systems, arrays, volumes, tables, and partition names. Unreadable is not empty."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Sequence
from typing import Any

from rackwright.install.agent.programs import AgentError, run

_EDGE = 1 << 20
_TABLES = {"gpt", "dos", "PMBR"}
UNFINISHED = "rw-unfinished-"
"""Prefix of partition names until their installation has finished."""


def read(disk: str) -> list[str]:
    """Signatures of a disk and its partitions, as `DEVICE:TYPE:LABEL`, sorted; AgentError if it is unreadable."""
    found: list[str] = []
    for device in [disk, *partitions_of(disk)]:
        _require_readable(device)
        found += of_device(device, run(["wipefs", "--no-act", "--json", device]))
    if any(one.split(":")[1] in _TABLES for one in found if one.startswith(f"{disk}:")):
        found += of_table(disk, run(["sfdisk", "--json", disk], check=False))
    return sorted(set(found))


def partitions_of(disk: str, folder: str = "/sys/block") -> list[str]:
    """Partition devices that the kernel lists for a disk."""
    name = os.path.basename(disk)
    try:
        entries = os.listdir(f"{folder}/{name}")
    except OSError:
        return []
    return sorted(f"/dev/{one}" for one in entries if os.path.exists(f"{folder}/{name}/{one}/partition"))


def of_device(device: str, text: str) -> list[str]:
    """Signatures in the output of `wipefs --json`, which is empty if there are none."""
    listed: list[dict[str, Any]] = json.loads(text)["signatures"] if text.strip() else []
    return [f"{device}:{one['type']}:{one.get('label') or one.get('uuid') or ''}" for one in listed]


def of_table(disk: str, text: str) -> list[str]:
    """Partition names in the output of `sfdisk --json`: from the table itself, not from udev."""
    try:
        listed = json.loads(text)["partitiontable"].get("partitions", [])
    except (ValueError, KeyError):
        return [f"{disk}:partitions:unreadable"]
    return [f"{one['node']}:partlabel:{one.get('name', '')}" for one in listed]


def difference(approved: Sequence[str], found: Sequence[str]) -> str | None:
    """How a disk differs from what the head approved; None if it does not."""
    new, gone = sorted(set(found) - set(approved)), sorted(set(approved) - set(found))
    parts = [f"now has {', '.join(new)}"] if new else []
    parts += [f"no longer has {', '.join(gone)}"] if gone else []
    return "; ".join(parts) or None


def busy(disk: str) -> str | None:
    """The disk or partition in use by a mount, an array or a volume; None if all are free."""
    for device in [*partitions_of(disk), disk]:
        try:
            # open(2): O_EXCL without O_CREAT fails on a block device that the system has in use
            os.close(os.open(device, os.O_RDONLY | os.O_EXCL | os.O_CLOEXEC))
        except OSError as error:
            return f"{device} is in use: {error.strerror}"
    return None


def partition(disk: str, number: int) -> str:
    """Device of a partition: /dev/sda2, /dev/nvme0n1p2."""
    return f"{disk}{'p' if re.search(r'[0-9]$', disk) else ''}{number}"


def _require_readable(device: str) -> None:
    """Check that a device is readable: wipefs takes an unreadable place for one without a signature."""
    try:
        descriptor = os.open(device, os.O_RDONLY | os.O_CLOEXEC)
        try:
            end = os.lseek(descriptor, 0, os.SEEK_END)
            if end == 0:
                raise AgentError(f"{device} has size 0")
            for start in (0, max(0, end - _EDGE)):
                os.pread(descriptor, _EDGE, start)
        finally:
            os.close(descriptor)
    except OSError as error:
        raise AgentError(f"cannot read {device}: {error.strerror}") from None

"""Names of disks, arrays and volumes."""

from __future__ import annotations

import re
from dataclasses import dataclass

SERIAL = re.compile(r"[A-Za-z0-9]([A-Za-z0-9 ._:+-]{0,126}[A-Za-z0-9])?")
"""A serial number that can be typed. Others are treated as missing: they select no disk."""
DEVICE = "@DEVICE@"
"""Placeholder in a mount unit for a disk name that is known only on its node."""
SUPERBLOCK_NAME_MAX = 32
"""Bytes of `HOST:NAME` in an md superblock of version 1 (Linux, include/uapi/linux/raid/md_p.h, set_name)."""


@dataclass(frozen=True)
class Selector:
    """A declared disk; one of `serial` and `slot` is set."""

    name: str
    serial: str | None = None
    slot: str | None = None

    def __str__(self) -> str:
        return f"{self.name} (serial {self.serial})" if self.serial else f"{self.name} (slot {self.slot})"


def array_path(name: str) -> str:
    """Array name as passed to mdadm."""
    return f"/dev/md/{name}"


def array_link(host: str, name: str) -> str:
    """udev's link by the name in the superblock, used to open and mount an array.

    An initramfs assembles arrays before the host name is set, considers them foreign, and links them as
    /dev/md/HOST:NAME; this link is the same in both cases (63-md-raid-arrays.rules; seen on Debian 13, 2026-11-25).
    """
    return f"/dev/disk/by-id/md-name-{host}:{name}"


def volume_path(group: str, volume: str) -> str:
    """The device of a logical volume; neither name has a dash, which device-mapper would double."""
    return f"/dev/mapper/{group}-{volume}"

"""How disks, arrays and volumes are named."""

from __future__ import annotations

import re
from dataclasses import dataclass

SERIAL = re.compile(r"[A-Za-z0-9]([A-Za-z0-9 ._:+-]{0,126}[A-Za-z0-9])?")
"""A serial that can be typed. Others are treated as missing: no disk is chosen by one."""
DEVICE = "@DEVICE@"
"""In the text of a mount unit, where the name of a disk goes that is known on its node only."""
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
    """What mdadm is told to call an array of this name."""
    return f"/dev/md/{name}"


def array_link(host: str, name: str) -> str:
    """udev's link by the name in the superblock: how an array is opened and mounted.

    An initramfs assembles arrays before the machine has its name, takes them for another machine's, and links them as
    /dev/md/HOST:NAME; this link is the same either way (63-md-raid-arrays.rules; seen on Debian 13, 2026-11-25).
    """
    return f"/dev/disk/by-id/md-name-{host}:{name}"


def volume_path(group: str, volume: str) -> str:
    """The device of a logical volume; neither name has a dash, which device-mapper would double."""
    return f"/dev/mapper/{group}-{volume}"

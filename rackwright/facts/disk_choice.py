"""Selects a disk of a node by serial or slot: exactly one, or an error with the reason; and what is on it."""

from __future__ import annotations

from rackwright.errors import RackwrightError
from rackwright.facts.block_records import Disk, Signature, Storage
from rackwright.model.disks import Selector

PERCENT = "%"
REST = "rest"


class NotChosen(RackwrightError):  # noqa: N818 - reads as a sentence
    """A selector does not mean exactly one usable disk."""


class NoDisk(NotChosen):
    """None is there."""


def chosen(storage: Storage, selector: Selector) -> Disk:
    """The disk that a selector matches. NoDisk if it is missing, NotChosen if the match is ambiguous."""
    if not storage.complete:
        raise NotChosen("The node did not list its disks.")
    found = [
        disk
        for disk in storage.disks
        if (disk.serial == selector.serial if selector.serial is not None else selector.slot in disk.slots)
    ]
    if not found:
        raise NoDisk(f"No disk matches {selector}.", hint="the node has: " + listing(storage))
    if len(found) > 1:
        raise NotChosen(
            f"{len(found)} disks match {selector}: {', '.join(disk.device for disk in found)}; none was changed."
        )
    disk = found[0]
    if disk.serial is None:
        raise NotChosen(f"{selector}: {disk.device} has no readable serial; it was not changed.")
    if [other.serial for other in storage.disks].count(disk.serial) > 1:
        raise NotChosen(f"Several disks have the serial {disk.serial}; none was changed.")
    return disk


def usable(disk: Disk) -> Disk:
    """The disk, which nothing uses and whose content is known. NotChosen otherwise."""
    if disk.signatures is None or disk.digest is None:
        raise NotChosen(
            f"The contents of {disk.description} are unreadable; it was not changed.",
            hint=f"wipefs {disk.device}",
        )
    if disk.uses:
        raise NotChosen(f"{disk.description} is in use and is never erased: {'; '.join(disk.uses)}.")
    if disk.read_only:
        raise NotChosen(f"{disk.description} is read-only.")
    return disk


def listing(storage: Storage) -> str:
    """The disks of a node, for a hint."""
    return ", ".join(
        f"{disk.serial or 'no serial'} in {' or '.join(disk.slots) or 'an unknown slot'}"
        for disk in storage.disks
    )


def signatures_at(there: Storage, path: str) -> tuple[Signature, ...] | None:
    """What is on a volume, or on an array by any of udev's links; None where that is not there."""
    array = next((one for one in there.arrays if path in one.links), None)
    return there.on.get(path if array is None else array.device)


def stable_link(disk: Disk) -> str:
    """A name of a disk that no other disk gets at another boot: udev's by its serial."""
    links = [one for one in disk.links if one.startswith("/dev/disk/by-id/") and (disk.serial or "") in one]
    if not links:
        raise NotChosen(f"udev has no name by serial for {disk.description}")
    return min(links, key=lambda one: (len(one), one))


def extent_bytes(there: Storage, group: str) -> int:
    """Size of an extent of a volume group; LVM's default where it is not there yet."""
    return int(there.groups[group]["vg_extent_size"]) if group in there.groups else 4 << 20


def wanted_bytes(there: Storage, group: str, volume: str, size: str) -> int:
    """What a size is of a group that is there."""
    row = there.groups[group]
    if size == REST:
        return int(there.volumes[f"{group}/{volume}"]["lv_size"]) + int(row["vg_free"])
    if size.endswith(PERCENT):
        extent = int(row["vg_extent_size"])
        return int(row["vg_size"]) // extent * int(size.removesuffix(PERCENT)) // 100 * extent
    return int(size.removesuffix("GiB")) << 30

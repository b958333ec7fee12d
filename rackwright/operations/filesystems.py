"""Filesystems on arrays, volumes and whole disks: made where nothing is, never made over anything."""

from __future__ import annotations

from collections.abc import Generator
from shlex import quote

from pyinfra.api.command import StringCommand
from pyinfra.api.exceptions import OperationError
from pyinfra.api.operation import operation
from pyinfra.context import host

from rackwright.data import site_of
from rackwright.facts.block_devices import BlockDevices
from rackwright.facts.block_records import Disk, Signature, Storage
from rackwright.facts.disk_choice import chosen, signatures_at, stable_link, usable
from rackwright.model.disks import DEVICE, Selector
from rackwright.operations import files
from rackwright.operations.disk_guard import change_of, guarded, refuse_container, same_as_planned
from rackwright.plan.changes import Change, record


@operation()
def filesystem(
    path: str, type: str, label: str | None = None, disk: Selector | None = None, lvm: bool = False
) -> Generator[StringCommand, None, None]:
    """A filesystem of this type is on a device.

    On an array or a volume it is made only where nothing is; on a whole disk that holds anything else, only where the
    disk's serial was typed.

    + path: of the device, e.g. /dev/md/scratch; a disk's own where `disk` is given
    + type: xfs or ext4
    """
    refuse_container()
    if site_of().offline:
        host.noop("an empty node has no disks")
        return
    there: Storage = host.get_fact(BlockDevices, lvm=lvm)
    if disk is not None:
        yield from _on_disk(chosen(there, disk), type, label)
        return
    on = signatures_at(there, path)
    if on is not None and any(is_declared(one, type, label) for one in on):
        host.noop(f"{path} has {type}")
        return
    if on:
        raise OperationError(
            f"{path} holds {'; '.join(map(str, on))}, not {type}{f' with the label {label}' if label else ''}: it is not formatted; empty it by hand if it may go"
        )
    record(
        Change(
            "disk", path, "no signature" if on is not None else None, f"{type} filesystem", disruptive=True
        )
    )
    yield StringCommand(f"sh -c {quote(_script(path, type, label))}")


def _on_disk(disk: Disk, type: str, label: str | None) -> Generator[StringCommand, None, None]:
    if [is_declared(one, type, label) for one in disk.signatures or ()] == [True]:
        host.noop(f"{disk.device} has {type}")
        return
    usable(disk)
    same_as_planned(f"{type} on {disk.serial}", [disk])
    record(change_of(disk, f"{type} filesystem"))
    yield guarded([disk], f"{make(disk.device, type, label)}\nsettle\n")


def _script(path: str, type: str, label: str | None) -> str:
    """Made on what is a block device, and empty, at this very moment."""
    device = quote(path)
    return f"""\
set -eu
udevadm settle --timeout=60 || :
[ -b {device} ] || {{ echo {quote(f"{path} is not there")} >&2; exit 1; }}
found=$(LC_ALL=C wipefs --no-act --noheadings --output TYPE {device})
[ -z "$found" ] || {{ echo {quote(path)} "holds $found: it is not formatted" >&2; exit 1; }}
{make(path, type, label)}
udevadm settle --timeout=60 || :
"""


def make(path: str, type: str, label: str | None) -> str:
    """mkfs, which itself refuses a device that holds anything (xfs), or asks and gets no answer (ext4)."""
    named = ["-L", label] if label is not None else []
    words = ["mkfs.xfs", "-q", *named, path] if type == "xfs" else ["mkfs.ext4", "-q", *named, path]
    return f"{' '.join(map(quote, words))} </dev/null"


def is_declared(one: Signature, type: str, label: str | None) -> bool:
    """Whether it is the declared filesystem; without a declared label, any of its type."""
    return one.type == type and label in (None, one.label)


@operation()
def mount_unit_of_disk(
    path: str, disk: Selector, content: str, lvm: bool = False
) -> Generator[StringCommand, None, None]:
    """A mount unit whose text names the disk that is there by the link that udev makes of its serial."""
    if site_of().offline:
        yield from files.file._inner(path=path, content=content)
        return
    there: Storage = host.get_fact(BlockDevices, lvm=lvm)
    yield from files.file._inner(path=path, content=content.replace(DEVICE, stable_link(chosen(there, disk))))

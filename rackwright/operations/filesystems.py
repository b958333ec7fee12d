"""Filesystems on arrays, volumes and whole disks: made where nothing is, never made over anything."""

from __future__ import annotations

from collections.abc import Generator
from shlex import quote

from pyinfra.api.command import StringCommand
from pyinfra.api.exceptions import OperationError
from pyinfra.api.operation import operation
from pyinfra.context import host

from rackwright.boundary import printable
from rackwright.data import site_of
from rackwright.facts.block_devices import BlockDevices
from rackwright.facts.block_records import Disk, Signature, Storage
from rackwright.facts.disk_choice import chosen, signatures_at, stable_link, usable
from rackwright.facts.settings import Answer
from rackwright.model.disks import DEVICE, Selector
from rackwright.model.mount_names import unit_name
from rackwright.operations import files, units
from rackwright.operations.disk_guard import change_of, guarded, refuse_container, same_as_planned
from rackwright.operations.mounts import keep_own_login
from rackwright.plan.changes import Change, record

_FIRST_ENTRY = """\
p={path}
if awk -v p="$p" '$5 == p {{ found = 1 }} END {{ exit !found }}' /proc/self/mountinfo; then
  echo mounted
elif [ -e "$p" ]; then
  one=$(find "$p" -mindepth 1 -maxdepth 1 ! -name lost+found -print -quit) && echo "${{one:-empty}}"
else
  echo empty
fi"""


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


@operation()
def mounted(path: str, unit_file: str, lvm: bool = False) -> Generator[StringCommand, None, None]:
    """A filesystem is mounted by its mount unit, and never over a folder that holds anything."""
    if not site_of().offline:
        _hides_nothing(path, host.get_fact(BlockDevices, lvm=lvm))
    yield from units.unit._inner(unit=unit_name(path), reload_on=(unit_file,))


def _hides_nothing(path: str, there: Storage) -> None:
    """OperationError where a mount would hide what is in the folder; where one is mounted, nothing is read."""
    if path in there.mounts:
        return
    keep_own_login(path)
    first: str | None = host.get_fact(Answer, read=_FIRST_ENTRY.format(path=quote(path)))
    if first is None:
        raise OperationError(f"whether {path} is empty cannot be read; nothing is mounted over it")
    if first not in ("empty", "mounted"):
        raise OperationError(
            f"{path} is not empty (it holds {printable(first, 200)}), and a filesystem mounted there would hide that: "
            f"move it away first, e.g. `mv {path} {path}.old`, and copy it back once the filesystem is mounted"
        )

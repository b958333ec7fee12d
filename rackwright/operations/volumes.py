"""LVM on declared devices: groups and volumes are created and grown, never shrunk or removed."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from shlex import quote

from pyinfra.api.command import StringCommand
from pyinfra.api.exceptions import OperationError
from pyinfra.api.operation import operation
from pyinfra.context import host

from rackwright.data import site_of
from rackwright.facts.block_devices import BlockDevices
from rackwright.facts.block_records import Disk, Storage
from rackwright.facts.disk_choice import PERCENT, REST, chosen, extent_bytes, usable, wanted_bytes
from rackwright.model.disks import Selector, array_link, volume_path
from rackwright.operations.disk_guard import change_of, guarded, refuse_container, same_as_planned
from rackwright.plan.changes import Change, record


@operation()
def group(
    group: str, arrays: Sequence[str] = (), disks: Sequence[Selector] = ()
) -> Generator[StringCommand, None, None]:
    """A volume group has these arrays and disks; further ones are added to it.

    A disk with a signature is written to only where its serial was typed; an array that holds anything is refused.
    """
    refuse_container()
    if site_of().offline:
        host.noop("an empty node has no disks")
        return
    there: Storage = host.get_fact(BlockDevices, lvm=True)
    mine = {device for device, owner in there.physical.items() if owner == group}
    members = [chosen(there, one) for one in disks]
    new_disks = [usable(disk) for disk in members if disk.device not in mine]
    new_arrays = [name for name in arrays if not _is_member(there, name, mine)]
    if not new_disks and not new_arrays:
        host.noop(f"{group} is as declared")
        return
    same_as_planned(f"volume group {group}", new_disks)
    for name in new_arrays:
        _refuse_content(there, name)
        part = f"part of the volume group {group}"
        record(Change("disk", _path(name), "no signature", part, disruptive=True))
    record(*(change_of(disk, f"part of the volume group {group}") for disk in new_disks))
    yield guarded(new_disks, _script(group, new_arrays, new_disks, exists=group in there.groups))


def _is_member(there: Storage, array: str, mine: set[str]) -> bool:
    found = there.array(array)
    return found is not None and bool(mine & {found.device, *found.links})


def _path(array: str) -> str:
    return array_link(site_of().node.name, array)


def _refuse_content(there: Storage, array: str) -> None:
    found = there.array(array)
    if found is not None and (on := there.on.get(found.device)):
        raise OperationError(
            f"{_path(array)} holds {'; '.join(map(str, on))}: no volume group is made on it; empty it by hand"
        )


def _script(group: str, arrays: Sequence[str], disks: Sequence[Disk], *, exists: bool) -> str:
    paths = [_path(name) for name in arrays]
    empty = "".join(
        f'[ -z "$(wipefs --no-act --noheadings --output TYPE {quote(path)})" ] || refuse {quote(path + " is not empty")}\n'
        for path in paths
    )
    devices = " ".join(quote(path) for path in (*paths, *(disk.device for disk in disks)))
    verb = "vgextend" if exists else "vgcreate"
    return (
        f"{empty}pvcreate --quiet {devices} </dev/null\n{verb} --quiet {quote(group)} {devices} </dev/null\n"
    )


@operation()
def volume(group: str, volume: str, size: str) -> Generator[StringCommand, None, None]:
    """A logical volume has at least this size; a smaller one is grown with its filesystem, online.

    + size: `10GiB`, `60%` of its group, or `rest` for all that is free
    """
    refuse_container()
    if site_of().offline:
        host.noop("an empty node has no disks")
        return
    there: Storage = host.get_fact(BlockDevices, lvm=True)
    name = f"{group}/{volume}"
    row = there.volumes.get(name)
    if row is None:
        record(Change("disk", name, None, f"logical volume of {size}", disruptive=True))
        # -Wy -y: what an earlier volume at the same place left shows through, and has no owner any more
        yield StringCommand(
            f"lvcreate --quiet --yes --wipesignatures y --name {quote(volume)} {_argument(size)} {quote(group)} </dev/null"
        )
        return
    has, wants, extent = (
        int(row["lv_size"]),
        wanted_bytes(there, group, volume, size),
        extent_bytes(there, group),
    )
    if has + extent <= wants:
        before, after = (f"{value / 2**30:.1f} GiB" for value in (has, wants))
        record(Change("disk", name, before, after, disruptive=False))
        path = quote(volume_path(group, volume))
        fits = "--resizefs " if there.on.get(volume_path(group, volume)) else ""
        yield StringCommand(f"lvextend --quiet {fits}{_argument(size, grows=True)} {path} </dev/null")
        return
    if wants + extent <= has:
        raise OperationError(
            f"{name} has {has / 2**30:.1f} GiB, but {size} is declared: volumes are not shrunk; declare its size"
        )
    host.noop(f"{name} is as declared")


def _argument(size: str, *, grows: bool = False) -> str:
    if size == REST:
        return "--extents +100%FREE" if grows else "--extents 100%FREE"
    if size.endswith(PERCENT):
        return f"--extents {size}VG"
    return f"--size {size.removesuffix('GiB')}g"

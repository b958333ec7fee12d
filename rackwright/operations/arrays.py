"""md arrays from declared disks: created, assembled, completed; never reshaped, and never guessed from a scan."""

from __future__ import annotations

from collections.abc import Collection, Generator, Sequence
from shlex import quote

from pyinfra.api.command import StringCommand
from pyinfra.api.exceptions import OperationError
from pyinfra.api.operation import operation
from pyinfra.context import host

from rackwright.data import site_of
from rackwright.facts.block_devices import BlockDevices
from rackwright.facts.block_records import Array, Disk, Storage
from rackwright.facts.disk_choice import NoDisk, chosen, usable
from rackwright.model.disks import Selector, array_path
from rackwright.operations.disk_guard import change_of, guarded, refuse_container, same_as_planned
from rackwright.plan.changes import Change, record

RUNNING = frozenset({"clean", "active", "active-idle", "write-pending", "readonly", "read-auto"})
"""Of array_state: it serves its data (Linux, Documentation/admin-guide/md.rst)."""


@operation()
def array(
    array: str,
    level: str,
    disks: Sequence[Selector],
    spares: Sequence[Selector] = (),
    chunk_kib: int | None = None,
    lvm: bool = False,
) -> Generator[StringCommand, None, None]:
    """An md array of these disks runs. A disk with a signature is written to only where its serial was typed.

    A failed member that is no longer declared is removed, and a declared disk that is not a member is added: that is
    a replaced drive. A member that still works and is no longer declared serves until its data is on the disk declared
    in its place (`mdadm --replace`), and leaves the array after that; while a declared disk is missing, it stays. A
    stripe of which a drive was replaced has lost its data and is made anew, once the serials of its other drives were
    typed. A member that is missing, or failed and still declared, is left to `rackwright verify`.

    + array: its name; the array is /dev/md/NAME
    + level: 0, 1, 5, 6 or 10
    + lvm: whether the fact is read with LVM's volumes
    """
    refuse_container()
    if site_of().offline:
        host.noop("an empty node has no disks")
        return
    there: Storage = host.get_fact(BlockDevices, lvm=lvm)
    found = there.array(array)
    if found is not None and found.value("array_state") in RUNNING:
        yield from _complete(array, level, len(disks), there, found, (*disks, *spares))
        return
    present = _present(there, (*disks, *spares))
    members = there.members_of(f"{site_of().node.name}:{array}")
    mine = [disk for disk in members if disk.serial in {one.serial for one in present}]
    lost = level == "0" and len(mine) < len(present)
    if found is not None:
        state = found.value("array_state") or "in an unknown state"
        if lost:
            raise OperationError(
                f"the stripe {array} ({found.device}) is {state}: the data of the lost drive cannot be recovered; run "
                f"`mdadm --stop {found.device}`, and apply again: it is recreated from its declared drives"
            )
        raise OperationError(
            f"the array {array} ({found.device}) is {state}: repair it by hand, mdadm --detail"
        )
    if mine and not lost:
        yield _assemble(array, mine)
        return
    yield _create(array, level, there, disks, spares, chunk_kib)


def _present(there: Storage, selectors: Sequence[Selector]) -> list[Disk]:
    found = []
    for selector in selectors:
        try:
            found.append(chosen(there, selector))
        except NoDisk:
            continue
    return found


def _assemble(array: str, members: Sequence[Disk]) -> StringCommand:
    """Of these disks, which hold its superblocks: nothing on them is lost."""
    same_as_planned(f"assemble {array}", members)
    devices = " ".join(quote(disk.device) for disk in members)
    record(Change("disk", array_path(array), "not assembled", f"assembled from {devices}", disruptive=True))
    return StringCommand(f"mdadm --assemble --run {quote(array_path(array))} {devices}")


def _create(
    array: str,
    level: str,
    there: Storage,
    disks: Sequence[Selector],
    spares: Sequence[Selector],
    chunk_kib: int | None,
) -> StringCommand:
    members = [usable(chosen(there, one)) for one in (*disks, *spares)]
    if len({disk.name for disk in members}) < len(members):
        raise OperationError(f"two disks of the array {array} are the same disk")
    same_as_planned(f"create {array}", members)
    record(*(change_of(disk, f"member of the array {array} (RAID {level})") for disk in members))
    node, path = site_of().node.name, array_path(array)
    words = ["mdadm", "--create", path, "--run", "--metadata=1.2", f"--level={level}"]
    words += [f"--name={array}", f"--homehost={node}", f"--raid-devices={len(disks)}"]
    words += [f"--spare-devices={len(spares)}"] if spares else []
    words += [f"--chunk={chunk_kib}"] if chunk_kib is not None else []
    words += ["--bitmap=internal"] if level != "0" else []
    create = " ".join(map(quote, (*words, *(disk.device for disk in members))))
    # What stood at the same place of an earlier array shows through, and may be destroyed as its disks' content may.
    emptied = f"wipefs --all --quiet {quote(path)}\n" if any(disk.signatures for disk in members) else ""
    return guarded(members, f"{create}\nsettle\n{emptied}")


def _complete(
    array: str, level: str, disks: int, there: Storage, found: Array, declared: Sequence[Selector]
) -> Generator[StringCommand, None, None]:
    _refuse_reshape(array, level, disks, found)
    present, path = _present(there, declared), quote(found.device)
    names = {disk.name for disk in present}
    gone = [name for name, state in found.members.items() if "faulty" in state and name not in names]
    new = [usable(disk) for disk in present if disk.name not in found.members] if level != "0" else []
    # with a serial or slot that no disk has, the member that looks undeclared may be the one that was meant
    complete = len(present) == len(declared)
    moved = _moved(found, names, len(new)) if level != "0" and complete else []
    if not (gone or new or moved):
        host.noop(f"{array} is as declared")
        return
    same_as_planned(f"complete {array}", new)
    record(
        *(Change("disk", f"/dev/{name}", f"failed member of {array}", None, disruptive=True) for name in gone)
    )
    record(*(change_of(disk, f"member of the array {array}, rebuilt") for disk in new))
    record(*(Change("disk", f"/dev/{name}", f"member of {array}", None, disruptive=True) for name in moved))
    if gone:
        # its device may be gone, and `failed` and `detached` name members without a device's name
        yield StringCommand(
            f"mdadm {path} --remove failed --remove detached"
            if not _kept(found, gone)
            else " && ".join(f"mdadm {path} --remove {quote('/dev/' + name)}" for name in gone)
        )
    if new:
        devices = " ".join(quote(disk.device) for disk in new)
        yield guarded(new, f"mdadm --manage {path} --add {devices}\nsettle\n")
    for name in moved:
        yield _move(found, name)


def _refuse_reshape(array: str, level: str, disks: int, found: Array) -> None:
    """A number that cannot be read (`3 (2)` while md reshapes) is left to `rackwright verify`."""
    if found.value("level") != f"raid{level}":
        raise OperationError(
            f"the array {array} is {found.value('level')}, but RAID {level} is declared: it is not reshaped"
        )
    made = found.value("raid_disks")
    if made.isdecimal() and int(made) != disks:
        raise OperationError(
            f"the array {array} ({found.device}) has {made} disks, but {disks} are declared: it is not "
            f"reshaped; declare {made} `disks` and any others as `spares`, or reshape it by hand (mdadm --grow)"
        )


def _kept(found: Array, gone: Sequence[str]) -> bool:
    """Whether another failed member is still declared, and stays."""
    return any("faulty" in state and name not in gone for name, state in found.members.items())


def _moved(found: Array, declared: Collection[str], new: int) -> list[str]:
    """Members that work and are not declared, as many as disks are free to take their place."""
    states = {name: set(state.split(",")) for name, state in found.members.items()}
    idle = found.value("sync_action") in ("", "idle")
    spare = [name for name, state in states.items() if idle and state == {"spare"} and name in declared]
    missing = int(found.value("degraded") or 0)  # these take the first free disks
    working = [
        name
        for name, state in states.items()
        if name not in declared and "in_sync" in state and "want_replacement" not in state
    ]
    return working[: max(0, new + len(spare) - missing)]


def _move(found: Array, name: str) -> StringCommand:
    """The kernel copies the member to a spare, then marks it as failed; a unit waits for that and removes it.

    A node that reboots meanwhile continues the copy, and the next plan removes the member.
    """
    path, member = quote(found.device), quote(f"/dev/{name}")
    state = quote(f"/sys/block/{found.name}/md/dev-{name}/state")
    remove = (
        f"while [ -e {state} ]; do "
        f"if grep -q faulty {state}; then mdadm {path} --remove {member} && exit; fi; sleep 10; done"
    )
    unit = quote(f"rackwright-{found.name}-without-{name}")
    return StringCommand(
        f"mdadm --manage {path} --replace {member} && "
        f"systemd-run --quiet --collect --property=RuntimeMaxSec=7d --unit={unit} sh -c {quote(remove)}"
    )

"""Writes to disks: checks each again first, and writes only to disks that are exactly as approved."""

from __future__ import annotations

import os
from collections.abc import Sequence

from rackwright.install.agent import inventory, layout, signatures
from rackwright.install.agent.layout import Command
from rackwright.install.agent.order import Disk, Order
from rackwright.install.agent.programs import AgentError, log, run

TARGET = "/target"


def require_as_approved(disks: Sequence[Disk]) -> None:
    """AgentError unless every disk is free and still has the approved serial number and signatures."""
    there = {one["path"]: one for one in inventory.disks()}
    for disk in disks:
        if (problem := difference(disk, there.get(disk.path))) is not None:
            raise AgentError(f"{problem}; nothing was written")
        if (use := signatures.busy(disk.path)) is not None:
            raise AgentError(f"{use}; nothing was written")


def difference(disk: Disk, found: dict[str, object] | None) -> str | None:
    """How a disk differs from what was approved, as a sentence; `found` as in the inventory."""
    if found is None:
        return f"{disk.path} is gone"
    if found["serial"] != disk.serial:
        return f"{disk.path} has the serial number {found['serial']}, but {disk.serial} was approved"
    if "error" in found:
        return str(found["error"])
    if found["read_only"]:
        return f"{disk.path} is read-only"
    listed = found["signatures"]
    assert isinstance(listed, list)
    changed = signatures.difference(disk.signatures, listed)
    return (
        None
        if changed is None
        else f"{disk.path} ({disk.serial}) changed since it was approved: it {changed}"
    )


def make(order: Order) -> None:
    """Partition the disks and make the file systems; all labels mark them as unfinished."""
    require_as_approved(order.disks)
    for disk in order.disks:
        carry_out(layout.wipe(disk.path, signatures.partitions_of(disk.path)))
        run(
            ["sfdisk", "--quiet", "--wipe", "always", "--wipe-partitions", "always", disk.path],
            stdin=layout.table(order),
        )
    run(["udevadm", "settle", "--timeout=30"], check=False)
    key = order.encryption.recovery_key if order.encryption else None
    carry_out([*layout.volumes(order), *layout.file_systems(order)], key)
    log(f"partitioned {', '.join(disk.path for disk in order.disks)}; root on {layout.root_device(order)}")


def mount(order: Order) -> None:
    """The node's file systems below the target."""
    os.makedirs(TARGET, exist_ok=True)
    run(["mount", layout.root_device(order), TARGET])
    if (boot := layout.boot_device(order)) is not None:
        os.makedirs(f"{TARGET}/boot", exist_ok=True)
        run(["mount", boot, f"{TARGET}/boot"])


def finish(order: Order) -> None:
    """Sync everything, release the disks, and give the partitions their final names."""
    os.sync()
    run(["umount", "--recursive", TARGET])
    carry_out(layout.release(order))
    carry_out(layout.rename(order))
    os.sync()


def carry_out(commands: Sequence[Command], secret: str | None = None) -> None:
    """Run commands in order; stop at the first failure."""
    for command in commands:
        stdin = secret if command.secret else None
        try:
            run(command.argv, seconds=command.seconds, stdin=stdin)
        except AgentError as error:
            if command.otherwise is None:
                raise
            log(f"{error}; trying the alternative")
            run(command.otherwise, seconds=command.seconds, stdin=stdin)

"""Snapshots of a virtual machine's disks: taken while it runs, restored by booting from them.

Memory is not part of one: qemu's NVMe drives cannot be saved in motion, and a cluster's clocks and
connections would not survive the jump anyway. The guest's file systems are frozen for the moment.
"""

import re
import shutil
from contextlib import suppress
from pathlib import Path

from rackwright.errors import LabError
from rackwright.lab import cgroup, faults, names, node, qemu, vm
from rackwright.lab.process import run
from rackwright.lab.qemu_socket import agent
from rackwright.lab.spec import NodeSpec, RackSpec

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")
_TIMEOUT = 300
_FREEZE_SECONDS = 60.0


def take(spec: RackSpec, target: NodeSpec, name: str) -> None:
    """Keep the state of every disk under this name."""
    _check(target, name)
    _delete(spec, target, name)
    if cgroup.populated(spec.name, target.name):
        _take_running(spec, target, name)
    else:
        for disk in _disks(spec, target):
            run(["qemu-img", "snapshot", "-c", name, str(disk)], timeout=_TIMEOUT)
    shutil.copyfile(vm.disks(spec.name, target).variables, _variables(spec, target, name))


def restore(spec: RackSpec, target: NodeSpec, name: str) -> None:
    """Cut the power, bring the disks back, boot, and wait until the node is ready."""
    _check(target, name)
    kept = _variables(spec, target, name)
    if not kept.exists():
        known = sorted(path.name.removeprefix(f"{_PREFIX}.") for path in kept.parent.glob(f"{_PREFIX}.*"))
        raise LabError(
            f"node {target.name} has no snapshot {name!r}",
            hint=f"it has {', '.join(known)}" if known else f"rackwright lab snapshot {target.name} {name}",
        )
    cgroup.kill(spec.name, target.name)
    for disk in _disks(spec, target):
        run(["qemu-img", "snapshot", "-a", name, str(disk)], timeout=_TIMEOUT)
    shutil.copyfile(kept, vm.disks(spec.name, target).variables)
    node.kind(target).start(spec, target)
    node.wait_ready(spec, target)
    faults.forget(spec, target)


_PREFIX = "snapshot"
"""Not `variables`: those of the machine itself are in variables.fd, and fd may be the name of a snapshot."""


def _take_running(spec: RackSpec, target: NodeSpec, name: str) -> None:
    count = len(target.vm.data_disks_gb if target.vm else ())
    drives = [qemu.drive_name(), *(qemu.drive_name(number) for number in range(count))]
    actions = [
        {"type": "blockdev-snapshot-internal-sync", "data": {"device": drive, "name": name}}
        for drive in drives
    ]
    if target.bmc is not None:  # what is installed on it may lack a guest agent
        vm.monitor_ask(spec.name, target, "transaction", actions=actions)
        return
    socket = names.node_state(spec.name, target.name) / qemu.AGENT
    try:
        with agent(socket, _FREEZE_SECONDS) as guest:
            guest.ask("guest-fsfreeze-freeze")
        vm.monitor_ask(spec.name, target, "transaction", actions=actions)
    finally:  # with a separate time limit, also after a freeze that took too long and is still to come
        with agent(socket, _FREEZE_SECONDS) as guest:
            guest.ask("guest-fsfreeze-thaw")


def _delete(spec: RackSpec, target: NodeSpec, name: str) -> None:
    if not _variables(spec, target, name).exists():
        return
    _variables(spec, target, name).unlink()
    if not cgroup.populated(spec.name, target.name):
        for disk in _disks(spec, target):
            run(["qemu-img", "snapshot", "-d", name, str(disk)], timeout=_TIMEOUT)
        return
    for number in (None, *range(len(target.vm.data_disks_gb if target.vm else ()))):
        with suppress(LabError):  # one that an interrupted command had not made yet
            vm.monitor_ask(
                spec.name,
                target,
                "blockdev-snapshot-delete-internal-sync",
                device=qemu.drive_name(number),
                name=name,
            )


def _disks(spec: RackSpec, target: NodeSpec) -> list[Path]:
    disks = vm.disks(spec.name, target)
    return [disks.root, *disks.data]


def _variables(spec: RackSpec, target: NodeSpec, name: str) -> Path:
    """The firmware's variables at that time; written last, so that it vouches for the snapshot."""
    return vm.disk_folder(spec.name, target.name) / f"{_PREFIX}.{name}"


def _check(target: NodeSpec, name: str) -> None:
    if target.vm is None:
        raise LabError(
            f"node {target.name} is a container, which has no snapshots",
            hint="platform: vm in the cluster file",
        )
    if not _NAME.fullmatch(name):
        raise LabError(f"{name!r} is not a name of a snapshot", hint="e.g. before-upgrade")

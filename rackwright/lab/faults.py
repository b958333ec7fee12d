"""Faults: what breaks in a real rack, done to one node on purpose, recorded, and undone by `heal`."""

import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from rackwright.errors import LabError
from rackwright.lab import (
    bmc_faults,
    cgroup,
    container,
    container_disk,
    delay,
    fault_record,
    gpu_node,
    gpus,
    names,
    network,
    node,
    vm_faults,
)
from rackwright.lab.fault_record import recorded, save
from rackwright.lab.process import launch, wait_until
from rackwright.lab.spec import NodeSpec, RackSpec

Act = Callable[[RackSpec, NodeSpec, tuple[str, ...]], None]
_GPU = "gpu:"
_SSH_UNITS = ("ssh.socket", "ssh.service")


def inject(spec: RackSpec, target: NodeSpec, kind: str, args: tuple[str, ...]) -> None:
    """Do a fault to a node; a second one of the same kind replaces the first."""
    gpu = kind.startswith(_GPU)
    _check(target, kind, args)
    if kind in bmc_faults.USAGE:
        return bmc_faults.inject(spec, target, kind, args)
    faults = recorded(spec.name, target.name)
    if "kill" in faults or not node.running(spec.name, target.name):
        command = f"heal {target.name}" if target.bmc is None else f"power {target.name} on"
        raise LabError(f"node {target.name} is not running", hint=f"rackwright lab {command}")
    if "pause" in faults and _needs_running(target, kind):
        raise LabError(f"node {target.name} is paused, and {kind} needs it to run", hint="heal it first")
    # Recorded first: a half-done fault is then healed as well.
    faults |= {kind: list(args)}
    save(spec.name, target.name, faults)
    if gpu:
        gpu_node.place(spec.name, target, _of_gpus(faults))
        gpu_node.say(spec.name, target, kind.removeprefix(_GPU))
    else:
        FAULTS[kind].act(spec, target, args)
    if kind == "power-cut":
        booted(spec, target)
    return None


def booted(spec: RackSpec, target: NodeSpec) -> None:
    """Forget the faults that ended with a new start of the node: all but those of a machine's disk and of its BMC."""
    cgroup.remove(spec.name, _delay_group(target))
    faults = recorded(spec.name, target.name)
    kept = ("fill-disk", *bmc_faults.USAGE) if target.vm is not None else ()
    left = {kind: args for kind, args in faults.items() if kind in kept}
    save(spec.name, target.name, left)


def forget(spec: RackSpec, target: NodeSpec) -> None:
    """Forget every fault of a node that booted from other disks."""
    cgroup.remove(spec.name, _delay_group(target))
    fault_record.forget(spec.name, target.name)


def _needs_running(target: NodeSpec, kind: str) -> bool:
    """Whether the node, or its qemu, takes part in the fault."""
    if target.vm is None:
        return kind == "sshd-down"
    return kind in FAULTS and kind not in ("kill", "pause", "cut", "slow", "power-cut")


def _check(target: NodeSpec, kind: str, args: tuple[str, ...]) -> None:
    """Refuse a fault that there is not, or that this node cannot have, and wrong arguments."""
    if kind.startswith(_GPU):
        gpu_node.check(target, kind.removeprefix(_GPU))
        usage, least = kind, 0
    elif kind in FAULTS:
        usage, least = FAULTS[kind].usage, FAULTS[kind].least
    else:
        raise LabError(f"unknown fault {kind!r}", hint=f"faults: {', '.join(FAULTS)}, gpu:...")
    if kind in FAULTS and FAULTS[kind].of_machines and target.vm is None:
        raise LabError(
            f"node {target.name} is a container, and {kind} needs a virtual machine",
            hint="platform: vm in the cluster file",
        )
    most = len(usage.split()) - 1
    if not least <= len(args) <= most:
        takes = f"{most} arguments" if least == most else f"{least} to {most} arguments"
        raise LabError(f"fault {kind} takes {takes}, not {len(args)}", hint=usage)
    if kind == "slow":
        try:
            delay.parse(*args)
        except ValueError as error:
            raise LabError(f"slow {' '.join(args)}: {error}") from None
    if kind in vm_faults.CHECKS:
        vm_faults.CHECKS[kind](target, args)


def heal(spec: RackSpec, target: NodeSpec) -> None:
    """Undo every fault of a node, boot it if it is off, and wait until it is ready."""
    faults = recorded(spec.name, target.name)
    if "kill" not in faults and (_needs_power_cycle(target, faults) or node.panicked(spec.name, target.name)):
        cgroup.kill(spec.name, target.name)
        wait_until(lambda: not node.running(spec.name, target.name), f"{target.name} to be off")
    bmc_faults.heal(spec, target)
    if target.bmc is not None and "kill" not in faults and not node.running(spec.name, target.name):
        pass  # it was switched off, and a fault is not what keeps it so
    elif not node.running(spec.name, target.name):
        # A node which boots gets a new cable and its own sshd, and a container an empty disk reserve.
        cgroup.remove(spec.name, _delay_group(target))
        node.kind(target).start(spec, target)
        if "fill-disk" in faults and target.vm is not None:
            vm_faults.empty_disk_when_booted(spec, target)
    else:
        _undo(spec, target, faults)
    node.wait_ready(spec, target)
    fault_record.forget(spec.name, target.name)


def _needs_power_cycle(target: NodeSpec, faults: Mapping[str, object]) -> bool:
    # A boot's kernel log cannot be changed; a power cycle is also the remedy for such faults.
    return bool({"panic", "disk:fail"} & set(faults)) or any(
        gpu_node.logs(target, kind) for kind in _of_gpus(faults)
    )


def _of_gpus(faults: Mapping[str, object]) -> list[str]:
    return [kind.removeprefix(_GPU) for kind in faults if kind.startswith(_GPU)]


def _undo(spec: RackSpec, target: NodeSpec, faults: Mapping[str, object]) -> None:
    if _of_gpus(faults):
        gpu_node.place(spec.name, target)
    if "pause" in faults:
        cgroup.freeze(False, spec.name, target.name)
    if "slow" in faults:
        cgroup.remove(spec.name, _delay_group(target))
        network.remove_delay_line(spec.name, target.name)
    if "cut" in faults:
        network.set_cable(spec.name, target.name, up=True)
    if "link:down" in faults:
        vm_faults.restore_links(spec, target)
    if "clock:jump" in faults:
        vm_faults.set_clock(spec, target)
    if "fill-disk" in faults and target.vm is not None:
        vm_faults.empty_disk(spec, target)
    elif "fill-disk" in faults:
        _fill_file(spec.name, target.name).unlink(missing_ok=True)
    if "sshd-down" in faults:
        enabled = (
            node.kind(target)
            .run_inside(
                spec.name, target, ["sh", "-c", f"systemctl is-enabled {' '.join(_SSH_UNITS)} || true"]
            )
            .split()
        )
        units = [u for u, answer in zip(_SSH_UNITS, enabled, strict=False) if answer == "enabled"]
        node.kind(target).run_inside(
            spec.name, target, ["systemctl", "start", units[0] if units else _SSH_UNITS[1]]
        )


def _kill(spec: RackSpec, target: NodeSpec, _: tuple[str, ...]) -> None:
    # The kernel would go on answering ping for a node without processes; a machine without power does not.
    network.set_cable(spec.name, target.name, up=False)
    cgroup.kill(spec.name, target.name)


def _pause(spec: RackSpec, target: NodeSpec, _: tuple[str, ...]) -> None:
    cgroup.freeze(True, spec.name, target.name)


def _cut(spec: RackSpec, target: NodeSpec, _: tuple[str, ...]) -> None:
    network.set_cable(spec.name, target.name, up=False)


def _slow(spec: RackSpec, target: NodeSpec, args: tuple[str, ...]) -> None:
    groups = cgroup.create(spec.name, _delay_group(target))
    near, far = network.insert_delay_line(spec.name, target.name, target.mtu)
    relay = [sys.executable, "-I", str(Path(delay.__file__)), near, far, *args]
    log = names.node_state(spec.name, target.name) / "delay.log"
    log.unlink(missing_ok=True)
    launch(network.inside(names.namespace(spec.name), relay), groups, log)
    wait_until(lambda: delay.READY in log.read_text(), f"the slow cable of {target.name}; see {log}")


def _fill_disk(spec: RackSpec, target: NodeSpec, _: tuple[str, ...]) -> None:
    if target.vm is not None:
        vm_faults.fill_disk(spec, target, ())
        return
    # Reserved, not written: the node's file system is full to the last block, the machine's stays as it was.
    with _fill_file(spec.name, target.name).open("wb") as file:
        status = os.fstatvfs(file.fileno())
        length, step = 0, status.f_bavail * status.f_frsize
        while step >= status.f_frsize:
            try:
                os.posix_fallocate(file.fileno(), length, step)
            except OSError:
                step //= 2
            else:
                length += step


def _sshd_down(spec: RackSpec, target: NodeSpec, _: tuple[str, ...]) -> None:
    present = [
        unit
        for unit in _SSH_UNITS
        if node.kind(target).run_inside(
            spec.name, target, ["systemctl", "list-unit-files", "--no-legend", unit]
        )
    ]
    node.kind(target).run_inside(spec.name, target, ["systemctl", "stop", *present])


def _delay_group(target: NodeSpec) -> str:
    return f"{target.name}.delay"


def _fill_file(rack: str, name: str) -> Path:
    return container.host_view(rack, name, names.node_state(rack, name) / "disk" / container_disk.FILL)


@dataclass(frozen=True, slots=True)
class Fault:
    """What does a fault, how it is written, and how many of its arguments it cannot do without."""

    act: Act
    usage: str
    least: int = 0
    of_machines: bool = False
    """Only a virtual machine can have it."""


def _recorded_only(_spec: RackSpec, _target: NodeSpec, _args: tuple[str, ...]) -> None:
    """Faults of a BMC: see rackwright.lab.bmc_faults."""


FAULTS: dict[str, Fault] = {
    "kill": Fault(_kill, "kill"),
    "pause": Fault(_pause, "pause"),
    "cut": Fault(_cut, "cut"),
    "slow": Fault(_slow, "slow MS LOSS", least=2),
    "fill-disk": Fault(_fill_disk, "fill-disk"),
    "sshd-down": Fault(_sshd_down, "sshd-down"),
    "disk:fail": Fault(vm_faults.fail_disk, "disk:fail [DISK]", of_machines=True),
    "link:down": Fault(vm_faults.cut_link, "link:down [PORT]", of_machines=True),
    "clock:jump": Fault(vm_faults.jump_clock, "clock:jump SECONDS", least=1, of_machines=True),
    "power-cut": Fault(vm_faults.cut_power, "power-cut", of_machines=True),
    "panic": Fault(vm_faults.panic, "panic", of_machines=True),
    **{
        kind: Fault(_recorded_only, usage, least=len(usage.split()) - 1, of_machines=True)
        for kind, usage in bmc_faults.USAGE.items()
    },
}
"""Fault kind -> what does it."""

GPU_FAULTS = (*(f"{_GPU}{kind}" for kind in gpus.KINDS), f"{_GPU}xid:N")
"""Of nodes with simulated GPUs; the last GPU has them."""

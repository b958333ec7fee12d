"""Faults: what breaks in a real rack, done to one node on purpose, recorded, and undone by `heal`."""

import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from rackwright.errors import LabError
from rackwright.lab import cgroup, delay, disk, gpu_node, gpus, names, network, node, state
from rackwright.lab.process import launch, wait_until
from rackwright.lab.spec import NodeSpec, RackSpec

Fault = Callable[[RackSpec, NodeSpec, tuple[str, ...]], None]
_GPU = "gpu:"
_SSH_UNITS = ("ssh.socket", "ssh.service")


def recorded(rack: str, name: str) -> dict[str, list[str]]:
    """The faults a node has now: kind -> its arguments."""
    found: dict[str, list[str]] | None = state.read_json(_record(rack, name))
    return found or {}


def inject(spec: RackSpec, target: NodeSpec, kind: str, args: tuple[str, ...]) -> None:
    """Do a fault to a node; a second one of the same kind replaces the first."""
    gpu = kind.startswith(_GPU)
    if gpu:
        gpu_node.check(target, kind.removeprefix(_GPU))
    elif kind not in FAULTS:
        raise LabError(f"no fault {kind!r}", hint=f"faults: {', '.join(FAULTS)}, gpu:...")
    wanted = 2 if kind == "slow" else 0
    if len(args) != wanted:
        usage = "slow MS LOSS" if wanted else kind
        raise LabError(f"fault {kind} takes {wanted} arguments, not {len(args)}", hint=usage)
    faults = recorded(spec.name, target.name)
    if "kill" in faults or not node.running(spec.name, target.name):
        raise LabError(f"node {target.name} is not running", hint=f"rackwright lab heal {target.name}")
    if "pause" in faults and kind == "sshd-down":
        raise LabError(f"node {target.name} is paused: nothing can be stopped on it")
    if kind == "slow":
        try:
            delay.parse(*args)
        except ValueError as error:
            raise LabError(f"slow {' '.join(args)}: {error}") from None
    # Recorded first: a half-done fault is then healed as well.
    faults |= {kind: list(args)}
    _save(spec.name, target.name, faults)
    if gpu:
        gpu_node.place(spec.name, target, _of_gpus(faults))
        gpu_node.say(spec.name, target, kind.removeprefix(_GPU))
    else:
        FAULTS[kind](spec, target, args)


def heal(spec: RackSpec, target: NodeSpec) -> None:
    """Undo every fault of a node, boot it if it is off, and wait until it is ready."""
    faults = recorded(spec.name, target.name)
    if any(gpu_node.logs(target, kind) for kind in _of_gpus(faults)) and "kill" not in faults:
        # What the kernel's log of a boot says stays said; a power cycle is also the remedy of such faults.
        cgroup.kill(spec.name, target.name)
        wait_until(lambda: not node.running(spec.name, target.name), f"{target.name} to be off")
    if not node.running(spec.name, target.name):
        # A node which boots gets a new cable, an empty disk reserve and its own sshd.
        cgroup.remove(spec.name, _delay_group(target))
        node.start(spec, target)
    else:
        _undo(spec, target, faults)
    node.wait_ready(spec, target)
    _record(spec.name, target.name).unlink(missing_ok=True)


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
    if "fill-disk" in faults:
        _fill_file(spec.name, target.name).unlink(missing_ok=True)
    if "sshd-down" in faults:
        enabled = node.run_inside(
            spec.name, target.name, ["sh", "-c", f"systemctl is-enabled {' '.join(_SSH_UNITS)} || true"]
        ).split()
        units = [u for u, answer in zip(_SSH_UNITS, enabled, strict=False) if answer == "enabled"]
        node.run_inside(spec.name, target.name, ["systemctl", "start", units[0] if units else _SSH_UNITS[1]])


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
        if node.run_inside(spec.name, target.name, ["systemctl", "list-unit-files", "--no-legend", unit])
    ]
    node.run_inside(spec.name, target.name, ["systemctl", "stop", *present])


def _delay_group(target: NodeSpec) -> str:
    return f"{target.name}.delay"


def _fill_file(rack: str, name: str) -> Path:
    return node.host_view(rack, name, names.node_state(rack, name) / "disk" / disk.FILL)


def _record(rack: str, name: str) -> Path:
    return names.node_state(rack, name) / "faults.json"


def _save(rack: str, name: str, faults: Mapping[str, list[str]]) -> None:
    state.write_json(_record(rack, name), dict(faults))


FAULTS: dict[str, Fault] = {
    "kill": _kill,
    "pause": _pause,
    "cut": _cut,
    "slow": _slow,
    "fill-disk": _fill_disk,
    "sshd-down": _sshd_down,
}
"""Fault kind -> what does it."""

GPU_FAULTS = (*(f"{_GPU}{kind}" for kind in gpus.KINDS), f"{_GPU}xid:N")
"""Of nodes with simulated GPUs; the last GPU has them."""

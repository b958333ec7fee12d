"""Faults that only a virtual machine can have, and those that are injected in another way than into a container."""

import time
from collections.abc import Callable

from rackwright.errors import LabError
from rackwright.lab import cgroup, qemu, racked, vm
from rackwright.lab.process import wait_until
from rackwright.lab.spec import NodeSpec, RackSpec

_FILL = "/var/lib/rackwright-lab-fill"
_FILL_SECONDS = 300
# Reserved, then written to the last block: fallocate leaves what is less than its step.
_FILL_SCRIPT = f"""\
free=$(df --output=avail -B1 / | tail -n 1)
fallocate -l "$free" {_FILL} || true
dd if=/dev/zero of={_FILL} bs=4096 oflag=append conv=notrunc 2>/dev/null || true
sync
"""
_CLOCK_MAX = 10 * 365 * 86_400


def fail_disk(spec: RackSpec, node: NodeSpec, args: tuple[str, ...]) -> None:
    """Every read and write of a data disk fails from now on; the drive stays visible, as a broken one does."""
    drive = qemu.drive_name(_disk(node, args))
    # The block layer answers EIO once the host's side of a drive is gone (qemu's manual, drive_del).
    reply = vm.monitor_ask(spec.name, node, "human-monitor-command", **{"command-line": f"drive_del {drive}"})
    if reply:
        raise LabError(f"{node.name}: {reply}")


def cut_link(spec: RackSpec, node: NodeSpec, args: tuple[str, ...]) -> None:
    """A port loses its carrier; without a number the last port."""
    _set_link(spec, node, _port(node, args), up=False)


def restore_links(spec: RackSpec, node: NodeSpec) -> None:
    """Every port has its carrier."""
    for number in range(len(node.addresses)):
        _set_link(spec, node, number, up=True)


def jump_clock(spec: RackSpec, node: NodeSpec, args: tuple[str, ...]) -> None:
    """The clock goes this many seconds forward, or back."""
    script = f'date -s "@$(($(date +%s) + {_seconds(node, args)}))"'
    vm.run_inside(spec.name, node, ["sh", "-c", script])


def set_clock(spec: RackSpec, node: NodeSpec) -> None:
    """The clock shows this host's time again."""
    vm.run_inside(spec.name, node, ["date", "-s", f"@{time.time():.0f}"])


def cut_power(spec: RackSpec, node: NodeSpec, _: tuple[str, ...]) -> None:
    """The power fails and comes back at once: what was not flushed to disk is lost, and the machine boots."""
    cgroup.kill(spec.name, node.name)
    (vm if node.bmc is None else racked).start(spec, node)


def panic(spec: RackSpec, node: NodeSpec, _: tuple[str, ...]) -> None:
    """The kernel panics; kernel.panic decides whether the machine boots again."""
    vm.start_inside(spec.name, node, "sleep 1; echo c >/proc/sysrq-trigger")
    wait_until(lambda: not _answers(spec, node), f"{node.name} to panic", timeout=60)


def fill_disk(spec: RackSpec, node: NodeSpec, _: tuple[str, ...]) -> None:
    """The root file system is full to the last block."""
    vm.run_inside(spec.name, node, ["sh", "-c", _FILL_SCRIPT], _FILL_SECONDS)


def empty_disk(spec: RackSpec, node: NodeSpec) -> None:
    """The root file system has its space again."""
    vm.run_inside(spec.name, node, ["rm", "-f", _FILL])


def empty_disk_when_booted(spec: RackSpec, node: NodeSpec) -> None:
    """Give the space back to a machine that boots: what it starts may need it."""
    wait_until(lambda: _answers(spec, node), f"{node.name} to boot", vm.READY_TIMEOUT)
    empty_disk(spec, node)


def _answers(spec: RackSpec, node: NodeSpec) -> bool:
    try:
        return vm.ask(spec.name, node, ["true"], 5).exit_status == 0
    except LabError:
        return False


def _set_link(spec: RackSpec, node: NodeSpec, number: int, *, up: bool) -> None:
    vm.monitor_ask(spec.name, node, "set_link", name=f"nic{number}", up=up)


def _disk(node: NodeSpec, args: tuple[str, ...]) -> int:
    return _number(node, args, len(node.vm.data_disks_gb if node.vm else ()), "data disk")


def _port(node: NodeSpec, args: tuple[str, ...]) -> int:
    return _number(node, args, len(node.addresses), "port")


def _seconds(_: NodeSpec, args: tuple[str, ...]) -> int:
    try:
        seconds = int(args[0])
    except ValueError:
        raise LabError(f"clock:jump {args[0]}: not a number of seconds", hint="clock:jump -7200") from None
    if not -_CLOCK_MAX <= seconds <= _CLOCK_MAX:
        raise LabError(f"clock:jump {seconds}: more than ten years", hint="clock:jump -7200")
    return seconds


def _number(node: NodeSpec, args: tuple[str, ...], count: int, what: str) -> int:
    """Which of several, counted from 0; the last one where none is named."""
    if count == 0:
        raise LabError(f"node {node.name} has no {what}")
    text = args[0] if args else str(count - 1)
    if not (text.isascii() and text.isdecimal()) or int(text) >= count:
        raise LabError(f"node {node.name} has no {what} {text!r}", hint=f"a number from 0 to {count - 1}")
    return int(text)


CHECKS: dict[str, Callable[[NodeSpec, tuple[str, ...]], int]] = {
    "disk:fail": _disk,
    "link:down": _port,
    "clock:jump": _seconds,
}
"""Fault kind -> what reads its arguments; LabError where they name nothing that the node has."""

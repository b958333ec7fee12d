"""The power of a node, as its BMC would switch it, and a reboot in good order."""

from collections.abc import Callable

from rackwright.errors import LabError
from rackwright.lab import cgroup, faults, network, node, vm
from rackwright.lab.process import wait_until
from rackwright.lab.spec import NodeSpec, RackSpec

_SHUTDOWN_SECONDS = 300.0
_BOOT_ID = ["cat", "/proc/sys/kernel/random/boot_id"]


def reboot(spec: RackSpec, target: NodeSpec) -> None:
    """Let the node's systemd stop everything and boot again; wait until it is ready."""
    before = _session(spec, target)
    node.kind(target).run_inside(spec.name, target, ["systemctl", "--no-block", "reboot"])
    wait_until(
        lambda: _session(spec, target) not in ("", before), f"{target.name} to boot again", _timeout(target)
    )
    node.wait_ready(spec, target)


def act(spec: RackSpec, target: NodeSpec, action: str) -> None:
    """One of ACTIONS. What is off stays off until it is switched on, healed, or the rack is brought up again."""
    if action not in ACTIONS:
        raise LabError(f"unknown power action {action!r}", hint=f"one of {', '.join(ACTIONS)}")
    ACTIONS[action](spec, target)


def _on(spec: RackSpec, target: NodeSpec) -> None:
    if not node.running(spec.name, target.name):
        node.kind(target).start(spec, target)
        faults.booted(spec, target)
    node.wait_ready(spec, target)


def _off(spec: RackSpec, target: NodeSpec) -> None:
    if target.bmc is not None and not node.running(spec.name, target.name):
        return  # it may never have been switched on: there are no cables yet
    # A container's kernel would go on answering ping; a machine without power does not.
    network.set_cable(spec.name, target.name, up=False)
    cgroup.kill(spec.name, target.name)


def _soft(spec: RackSpec, target: NodeSpec) -> None:
    if node.running(spec.name, target.name):
        node.kind(target).shut_down(spec.name, target, _SHUTDOWN_SECONDS)


def _cycle(spec: RackSpec, target: NodeSpec) -> None:
    _off(spec, target)
    _on(spec, target)


def _session(spec: RackSpec, target: NodeSpec) -> str:
    """What differs after each boot; empty while the node cannot report it."""
    try:
        if target.vm is None:
            # The kernel's boot ID is the host's; the start of the node's first process is not (proc(5), field 22).
            first = node.kind(target).run_inside(spec.name, target, ["cat", "/proc/1/stat"])
            return first.rpartition(")")[2].split()[19]
        return vm.run_inside(spec.name, target, _BOOT_ID, timeout=10)
    except LabError:
        return ""


def _timeout(target: NodeSpec) -> float:
    return _SHUTDOWN_SECONDS + node.kind(target).READY_TIMEOUT


ACTIONS: dict[str, Callable[[RackSpec, NodeSpec], None]] = {
    "on": _on,
    "off": _off,
    "soft": _soft,
    "cycle": _cycle,
}
"""As ipmitool names them: `off` is the plug, `soft` the power button."""

"""One node of any kind: a container, a virtual machine or a racked one, each a module with the same functions."""

import os
import time
from collections.abc import Sequence
from pathlib import Path
from threading import Event
from typing import Protocol

from rackwright.errors import LabError
from rackwright.lab import cgroup, container, names, network, racked, vm
from rackwright.lab.seed import Identity
from rackwright.lab.spec import NodeSpec, RackSpec

_LOG_LINES = 12
_LOG_BYTES = 64 << 10
_PANIC = "---[ end Kernel panic"
"""Linux's panic(): printed where kernel.panic is 0, before it waits forever."""


class Kind(Protocol):
    """What the modules `container`, `vm` and `racked` offer."""

    READY_TIMEOUT: float

    def require_host(self) -> None:
        """Refuse a host that cannot run nodes of this kind."""

    def prepare(self, spec: RackSpec, node: NodeSpec, base: Path, admin_key: str) -> Identity:
        """Make the node's disks, with a new identity."""

    def start(self, spec: RackSpec, node: NodeSpec) -> None:
        """Boot a node whose disks are ready; does not wait for it."""

    def ready(self, spec: RackSpec, node: NodeSpec) -> bool:
        """Whether the node lets its administrator in by ssh."""

    def run_inside(self, rack: str, node: NodeSpec, argv: Sequence[str], timeout: float = 60) -> str:
        """Run a program as root on the node, past its sshd, and return its output."""

    def attach(self, rack: str, node: NodeSpec, argv: Sequence[str]) -> int:
        """Run a program as root on the node, past its sshd, and return its exit code."""

    def console(self, rack: str, node: NodeSpec) -> int:
        """A root shell of the node on this terminal."""

    def shut_down(self, rack: str, node: NodeSpec, timeout: float) -> None:
        """Shut the node down in good order, and wait until it is off."""

    def remove_disks(self, rack: str, node: str) -> None:
        """Remove the disks of a node that does not run."""


def kind(node: NodeSpec) -> Kind:
    """The module that runs the node."""
    if node.vm is None:
        return container
    return vm if node.bmc is None else racked


def running(rack: str, node: str) -> bool:
    """Whether any process of the node lives."""
    return cgroup.populated(rack, node)


def wait_ready(spec: RackSpec, node: NodeSpec, give_up: Event | None = None) -> None:
    """Wait until the node accepts its administrator's ssh login, or until cancelled."""
    timeout = kind(node).READY_TIMEOUT
    deadline = time.monotonic() + timeout
    while not kind(node).ready(spec, node):
        if not running(spec.name, node.name):
            raise LabError(f"node {node.name} ended while it booted\n{console_tail(spec.name, node.name)}")
        if time.monotonic() > deadline:
            raise LabError(
                f"node {node.name} does not answer ssh after {timeout:g} s\n{console_tail(spec.name, node.name)}",
                hint=f"rackwright lab console {node.name}",
            )
        if (give_up or Event()).wait(0.1):
            raise LabError(f"cancelled waiting for node {node.name}")


def console_tail(rack: str, node: str) -> str:
    """The last lines the node, or what runs it, wrote."""
    folder = names.node_state(rack, node)
    return "\n".join([*_tail(folder / "console.log"), *_tail(folder / "qemu.log")])


def panicked(rack: str, node: str) -> bool:
    """Whether the last that a machine wrote to its serial line is that its kernel has panicked and does not reboot."""
    return any(_PANIC in line for line in _tail(names.node_state(rack, node) / "console.log")[-1:])


def _tail(log: Path) -> list[str]:
    if not log.exists():
        return []
    with log.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - _LOG_BYTES))  # a node may write without end
        return file.read(_LOG_BYTES).decode(errors="replace").splitlines()[-_LOG_LINES:]


def remove(rack: str, node: str) -> None:
    """End a node and remove everything of it."""
    cgroup.remove(rack, node)
    network.remove_node(rack, node)
    for module in (container, vm):
        module.remove_disks(rack, node)

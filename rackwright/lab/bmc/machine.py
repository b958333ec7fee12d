"""The machine behind a BMC: switched on and off, and given another CD."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from rackwright.lab import cgroup, faults, network, node, qemu, racked, vm
from rackwright.lab.spec import NodeSpec, RackSpec


class Machine(Protocol):
    """What a BMC does to its machine."""

    def running(self) -> bool:
        """Whether it has power."""

    def on(self) -> None:
        """Switch it on; does not wait for it."""

    def off(self) -> None:
        """Take its power away."""

    def press(self) -> None:
        """Press its power button."""

    def put_in(self, image: Path | None) -> None:
        """Put an image into its CD drive, or take it out. A machine that is off finds it when it starts."""


class RackedMachine:
    """A racked machine of a rack that is up."""

    def __init__(self, spec: RackSpec, target: NodeSpec) -> None:
        self._spec = spec
        self._node = target

    def running(self) -> bool:
        """Whether it has power."""
        return node.running(self._spec.name, self._node.name)

    def on(self) -> None:
        """Switch it on; does not wait for it."""
        if not self.running():
            racked.start(self._spec, self._node)
            faults.booted(self._spec, self._node)

    def off(self) -> None:
        """Take its power away."""
        if self.running():
            network.set_cable(self._spec.name, self._node.name, up=False)
            cgroup.kill(self._spec.name, self._node.name)

    def press(self) -> None:
        """Press its power button."""
        vm.monitor_ask(self._spec.name, self._node, "system_powerdown")

    def put_in(self, image: Path | None) -> None:
        """Put an image into its CD drive, or take it out. A machine that is off finds it when it starts."""
        if not self.running():
            return
        drive = {"id": qemu.CD_DEVICE}
        if image is None:
            vm.monitor_ask(self._spec.name, self._node, "eject", **drive, force=True)
        else:
            change: dict[str, object] = {
                **drive,
                "filename": str(image),
                "format": "raw",
                "read-only-mode": "read-only",
            }
            change["force"] = True  # the guest may have locked the drive
            vm.monitor_ask(self._spec.name, self._node, "blockdev-change-medium", **change)

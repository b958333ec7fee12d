"""Drains nodes for firmware changes, makes sure that no job runs, and resumes them once their checks pass."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from rackwright.boundary import printable
from rackwright.engine.boots import Before
from rackwright.errors import FirmwareError, RackwrightError
from rackwright.firmware.names import PREFIX
from rackwright.model.cluster import Cluster, Node
from rackwright.workload.lookup import runs_jobs
from rackwright.workload.protocol import Manager
from rackwright.workload.several import part_for
from rackwright.workload.states import NodeState

Verified = Callable[[Cluster, Iterable[str]], Mapping[str, str | None]]


def drained_by_firmware(state: NodeState | None) -> str | None:
    """The earlier firmware run that left a node drained, if one did."""
    run = state.run if state is not None else None
    return run if run is not None and run.startswith(PREFIX) else None


@dataclass
class Service:
    """The workload manager of one run, and the checks before a node returns to it; used by many threads."""

    cluster: Cluster
    manager: Manager | None
    run: str
    before: Callable[[Iterable[str]], Mapping[str, Before]]
    """The boot that nodes are in, or why they may not be rebooted."""
    verified: Verified
    left: dict[str, str] = field(default_factory=dict)
    """Node to the run that it is drained by, until it is put back."""

    def take(self, node: Node, *, on: bool) -> str:
        """Drain a node and wait for its jobs; the boot that it is in, empty for one that is off.

        FirmwareError where it may not be touched; it is in service again then, if this run drained it.
        """
        try:
            self._drain(node)
            return self._boot_of(node) if on else ""
        except BaseException:  # Ctrl-C too
            self._undo(node)
            raise

    def give_back(self, node: Node, *, on: bool) -> None:
        """Put a node back into service once it passes its checks; FirmwareError where it does not, and stays drained.

        A node that was off stays out of service as well: it is not known what runs on it now.
        """
        run = self.left.get(node.name)
        if not on:
            return
        why = dict(self.verified(self.cluster, [node.name])).get(node.name)
        if why is not None:
            raise FirmwareError(f"its checks fail: {printable(why, 600).rstrip('.')}.")
        if run is not None and self.manager is not None:
            self.manager.resume([node.name], run)
            del self.left[node.name]

    def resume_command(self, node: str) -> str | None:
        """What an operator types to put a node back that was left drained; None: it was not."""
        return self.manager.resume_command(node) if self.manager is not None and node in self.left else None

    def _drain(self, node: Node) -> None:
        if self.manager is None or not runs_jobs(node):
            return
        state = self.manager.states().get(node.name)
        if (earlier := drained_by_firmware(state)) is not None:
            self.left[node.name] = earlier
        elif state is not None and state.in_service:
            self.left[node.name] = self.run
        seconds = self.cluster.waves.drain_deadline_seconds
        refused = self.manager.drain([node.name], self.run, seconds)
        if node.name in refused:
            raise FirmwareError(f"{refused[node.name].rstrip('.')}; it was not changed.")
        state = self.manager.states().get(node.name)  # raises where the manager does not answer
        if state is not None and (state.in_service or state.busy):
            raise FirmwareError(f"{part_for(self.manager, node.name).name} did not drain it: {state.text}.")

    def _boot_of(self, node: Node) -> str:
        before = self.before([node.name])[node.name]
        if before.why_not is not None:
            raise FirmwareError(
                f"it must not be rebooted: {before.why_not}; it was not changed.",
                hint="if it is running but does not answer ssh, shut it down first: `rackwright bmc power FILE soft`",
            )
        return before.boot

    def _undo(self, node: Node) -> None:
        """Nothing was done to the node: what this run drained is put back."""
        if self.left.get(node.name) != self.run or self.manager is None:
            return
        try:
            self.manager.resume([node.name], self.run)
        except RackwrightError:
            return  # it stays in `left`, and is reported
        self.left.pop(node.name, None)

"""Taking nodes out of the scheduler before something disruptive, and putting back only our own.

Slurm, asked on the primary head as root. Reasons begin with `rackwright:`, and a node whose reason
somebody else wrote is never resumed.
"""

from __future__ import annotations

import re
import time
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from types import TracebackType
from typing import Self

import paramiko

from rackwright.command import CommandResult
from rackwright.errors import RackwrightError
from rackwright.model.cluster import Cluster, Node
from rackwright.model.ranges import fold
from rackwright.ssh import connect, run

_POLL_SECONDS = 2
_COMMAND_SECONDS = 60
_OURS = "rackwright:"


@dataclass(frozen=True)
class SlurmNode:
    """What sinfo says of a node; `state` is its long form without marks, e.g. `drained`."""

    state: str
    reason: str

    @property
    def out(self) -> bool:
        """Out of service already, by whomever."""
        return any(word in self.state for word in ("drain", "down", "fail", "maint"))

    @property
    def empty(self) -> bool:
        """No job runs on it."""
        return self.state in ("drained", "down", "idle", "unknown")


def parse_sinfo(text: str) -> dict[str, SlurmNode]:
    """Read `sinfo -N -h -o '%N|%T|%E'`; a node in several partitions is listed once each."""
    nodes = {}
    for line in text.splitlines():
        name, _, rest = line.partition("|")
        state, _, reason = rest.partition("|")
        if name and state:
            nodes[name.strip()] = SlurmNode(re.sub(r"[*~#!%$@+^-]+$", "", state.strip()), reason.strip())
    return nodes


def is_scheduled(cluster: Cluster) -> bool:
    """Whether some role of this cluster runs a scheduler that rackwright can drain nodes in."""
    return any(options.scheduler == "slurm" for node in cluster.nodes for options in node.options.values())


class Drainer:
    """Drains and resumes nodes of one cluster. Use as a context manager."""

    def __init__(self, cluster: Cluster, run_name: str) -> None:
        self._cluster = cluster
        self._reason = f"{_OURS} {run_name}"
        self._client: paramiko.SSHClient | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._client is not None:
            self._client.close()

    def drain(self, nodes: Collection[Node], deadline_seconds: float) -> dict[str, str]:
        """Drain these nodes and wait for their jobs; {node: why it may not be touched} for the rest.

        A controller that is not there (a first installation) has no jobs to wait for: nothing is
        drained then. Nodes that are out of service already are left in whatever state they are in.
        """
        known = self._nodes()
        if known is None:
            return {}
        mine = [node.name for node in nodes if node.name in known and not known[node.name].out]
        if mine:
            self._scontrol(mine, f"State=DRAIN Reason='{self._reason}'")
        busy = self._wait([node.name for node in nodes if node.name in known], deadline_seconds)
        if busy:
            self._resume([name for name in busy if name in mine])
        return dict.fromkeys(busy, f"its jobs did not end within {deadline_seconds:g} s")

    def resume(self, nodes: Iterable[str]) -> None:
        """Put back into service those of these nodes that this run drained."""
        known = self._nodes() or {}
        self._resume([name for name in nodes if name in known and known[name].reason == self._reason])

    def _resume(self, nodes: list[str]) -> None:
        if nodes:
            self._scontrol(nodes, "State=RESUME")

    def _wait(self, nodes: list[str], deadline_seconds: float) -> list[str]:
        deadline = time.monotonic() + deadline_seconds
        while True:
            known = self._nodes() or {}
            busy = [name for name in nodes if name in known and not known[name].empty]
            if not busy or time.monotonic() >= deadline:
                return busy
            time.sleep(_POLL_SECONDS)

    def _nodes(self) -> dict[str, SlurmNode] | None:
        """Every node the controller knows, or None where no controller answers."""
        result = self._on_head("sinfo -N -h -o '%N|%T|%E'")
        return parse_sinfo(result.stdout) if result.exit_status == 0 else None

    def _scontrol(self, nodes: Iterable[str], update: str) -> None:
        folded = fold(list(nodes))
        result = self._on_head(f"scontrol update NodeName='{folded}' {update}")
        if result.exit_status != 0:
            said = result.stderr.strip() or result.stdout.strip() or "nothing"
            raise RackwrightError(
                f"Slurm did not accept {update} for {folded}: {said}",
                hint=f"look at `scontrol show node {folded}` on {self._cluster.primary.name}",
            )

    def _on_head(self, command: str) -> CommandResult:
        if self._client is None:
            self._client = connect(self._cluster, self._cluster.primary)
        return run(self._client, command, sudo=True, stdin=None, timeout=_COMMAND_SECONDS)

"""What would have drained the nodes of a cluster, from each node's own record."""

from __future__ import annotations

import time
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

from rackwright.boundary import last_line, printable, read_json
from rackwright.errors import ConnectionFailed, ExitCode, RackwrightError
from rackwright.health.guard import places
from rackwright.health.guard.would import Episode, Would
from rackwright.model.cluster import Cluster, Node
from rackwright.model.selection import pick
from rackwright.ssh import Pool, RootShell
from rackwright.ssh.side_by_side import side_by_side
from rackwright.status import Status
from rackwright.workload.lookup import runs_jobs

WORKERS_MAX = 64
SECONDS = 20
RECORD_MAX_BYTES = 2**20
"""Fifty episodes take about 50 KiB."""
AHEAD_SECONDS = 300.0
"""munge rejects a node whose clock is off by more."""
SILENT_SECONDS = 7200.0
"""A node whose last pass is older no longer observes."""


@dataclass(frozen=True)
class NodeWould:
    """The record of one node, or the reason why it is unknown."""

    node: str
    record: Would | None
    why: str | None = None

    @property
    def status(self) -> Status:
        """FAIL if the node would have been drained."""
        if self.record is not None and self.record.episodes:
            return Status.FAIL
        return Status.UNKNOWN if self.why is not None else Status.PASS

    def to_json(self) -> dict[str, Any]:
        """As plain data."""
        record = self.record.to_json() if self.record is not None else None
        return {"node": self.node, "status": self.status.value, "why": self.why, "record": record}


@dataclass(frozen=True)
class FleetWould:
    """Every node that was queried."""

    cluster: str
    nodes: tuple[NodeWould, ...]

    def of(self, status: Status) -> list[NodeWould]:
        """The nodes of one status."""
        return [one for one in self.nodes if one.status is status]

    @property
    def exit_code(self) -> ExitCode:
        """Exit status: 3 if a node would have been drained, else 4 if a record could not be read."""
        if self.of(Status.FAIL):
            return ExitCode.CHECK_FAILED
        return ExitCode.UNKNOWN if any(one.why is not None for one in self.nodes) else ExitCode.CLEAN

    @property
    def verdict(self) -> str:
        """One line."""
        unread = sum(one.why is not None for one in self.nodes)
        episodes = sum(len(one.record.episodes) for one in self.nodes if one.record is not None)
        counts = f"{len(self.of(Status.FAIL))} would have been drained, {episodes} times in all"
        return f"{len(self.nodes)} nodes of {self.cluster}: {counts}" + (
            f"; {unread} UNKNOWN" if unread else ""
        )

    def to_json(self) -> dict[str, Any]:
        """As plain data."""
        return {"cluster": self.cluster, "nodes": [one.to_json() for one in self.nodes]}


def would(
    cluster: Cluster, *, limit: str | None = None, shell: RootShell | None = None, now: float | None = None
) -> FleetWould:
    """Read the records over ssh, one execution per node. Never raises because of a node."""
    nodes = [node for node in pick(cluster, limit) if runs_jobs(node)]
    if not nodes:
        raise RackwrightError("None of these nodes runs jobs, so none has a record.")
    at = time.time() if now is None else now
    with ExitStack() as stack:
        reached = shell if shell is not None else stack.enter_context(Pool(cluster))
        executor = stack.enter_context(side_by_side(min(WORKERS_MAX, len(nodes))))
        return FleetWould(cluster.name, tuple(executor.map(lambda node: _one(reached, node, at), nodes)))


def _one(shell: RootShell, node: Node, now: float) -> NodeWould:
    try:
        reply = shell.run(node.name, f"cat {places.WOULD}", timeout=SECONDS)
    except ConnectionFailed as error:
        return NodeWould(node.name, None, error.message)
    if reply.exit_status != 0:
        return NodeWould(node.name, None, f"it has no record: {last_line(reply.stdout, reply.stderr)}")
    try:
        record = Would.from_json(read_json(reply.stdout, RECORD_MAX_BYTES))
    except (ValueError, LookupError, TypeError) as error:
        why = printable(f"{type(error).__name__}: {error}", 300)
        return NodeWould(node.name, None, f"{places.WOULD} cannot be read: {why}")
    silent = now - record.at
    if silent < -AHEAD_SECONDS:
        return NodeWould(
            node.name, record, f"its last pass is dated {length(-silent)} ahead of the local clock"
        )
    if silent > SILENT_SECONDS:
        return NodeWould(node.name, record, f"its last pass was {length(silent)} ago")
    return NodeWould(node.name, record)


def lasted(episode: Episode) -> float:
    """How long the node would have been out of service, up to the last known pass."""
    return (episode.until if episode.until is not None else episode.last) - episode.since


def length(seconds: float) -> str:
    """`2 d 3 h`, `35 min`."""
    minutes = round(seconds / 60)
    if minutes < 120:
        return f"{minutes} min"
    hours = round(minutes / 60)
    return f"{hours} h" if hours < 48 else f"{hours // 24} d {hours % 24} h"

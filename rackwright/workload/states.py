"""A node as any workload manager has it. Standard library only, Python 3.9: runs on nodes too."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum

ROLLOUT_PREFIX = "rackwright: "
"""Begins the reason of a drain by a run of `rackwright apply`; the run's name follows."""
HEALTH_PREFIX = "rackwright-health: "
"""Begins the reason of a drain by a node's health check."""


class NoAnswer(Exception):  # noqa: N818 - carried into the state as a reason
    """The workload manager did not answer or did not carry out the request; the text has the reason."""


class DrainedBy(str, Enum):  # noqa: UP042 - Python 3.9
    """Who took a node out of service."""

    HEALTH = "health"
    """The node's own health check."""
    ROLLOUT = "rollout"
    """A run of `rackwright apply`."""
    PERSON = "person"
    MANAGER = "manager"
    """The workload manager itself."""


@dataclass(frozen=True)
class NodeState:
    """One node. A node can be drained and down at once; in service it is neither."""

    text: str
    """As the manager prints it, e.g. `IDLE+DRAIN`."""
    words: frozenset[str]
    """The manager's words for the state, without markers."""
    drained: bool = False
    """Out of service by a decision: no new job starts there."""
    down: bool = False
    """Out of service because the manager finds the node broken or silent."""
    busy: bool = False
    """A job runs there, or may run there."""
    ready: bool = False
    """A job that needs the whole node could start there now."""
    rebooting: bool = False
    """A reboot through the manager is pending."""
    reason: str = ""
    by: str = ""
    """Who set the reason, and when: `root@2026-11-21T12:00:00`."""
    drained_by: DrainedBy | None = None
    """None: it is in service."""

    @property
    def in_service(self) -> bool:
        """Whether jobs may start there now or once it is free."""
        return not self.drained and not self.down

    @property
    def drained_by_health(self) -> bool:
        """Whether its own health check drained it."""
        return self.drained and self.drained_by is DrainedBy.HEALTH

    @property
    def run(self) -> str | None:
        """The run of rackwright that drained it, if one did."""
        return run_of(self.reason) if self.drained_by is DrainedBy.ROLLOUT else None


_RUN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


def run_of(reason: str) -> str | None:
    """The run that a reason names; None where it names none: operators copy it into commands."""
    name = reason[len(ROLLOUT_PREFIX) :].strip() if reason.startswith(ROLLOUT_PREFIX) else ""
    return name if _RUN.fullmatch(name) else None


@dataclass(frozen=True)
class DrainShare:
    """How many nodes of a group (Slurm: a partition) health checks have drained besides this one."""

    group: str
    nodes: int
    drained: int

    def allowed(self, percent: float) -> int:
        """How many they may drain, rounded down; always one, or a small group could not lose a broken node."""
        return max(1, int(self.nodes * percent / 100))

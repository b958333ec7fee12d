"""A drill and its result."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from rackwright.model.cluster import Cluster, Node


@dataclass(frozen=True)
class LabFault:
    """One of the lab's faults (`rackwright lab fault`); healed by `rackwright lab heal`, or by another fault's undoing."""

    kind: str
    args: tuple[str, ...] = ()
    then: str = ""
    """A command of root on the node after the fault, and again after it is healed, e.g. a check that would only run minutes
    later."""


@dataclass(frozen=True)
class Shell:
    """A fault made by a command of root on the node, and undone by another; both may be repeated."""

    make: str
    heal: str


Choice = Callable[[Cluster], Node | None]
"""Picks the node that is broken; None: the cluster has none that could be."""


@dataclass(frozen=True)
class Need:
    """What a drill cannot do without, and not every rack has."""

    path: str
    """Exists on the node."""
    missing: str
    """What it means that it does not, e.g. `the drift check is not installed`."""
    command: str
    """What brings it."""


@dataclass(frozen=True)
class Drill:
    """One fault, and the alert that has to fire."""

    alert: str
    fault: str
    """For the table, e.g. `slurmd is stopped`."""
    on: Choice
    act: LabFault | Shell
    labels: Mapping[str, str] = field(default_factory=dict)
    """Labels that the alert must have besides `node`."""
    names_node: bool = True
    """Whether the alert names the broken node."""
    lane: str | None = None
    """Drills of one lane run one after another; None: the lane of the node. Lanes run side by side."""
    alone: bool = False
    """Nothing else may be broken meanwhile: it runs after all lanes have ended."""
    also: Choice | None = None
    """Another node that is broken in the same way."""
    needs: Need | None = None
    """Where the node lacks it, the drill is skipped."""


class Outcome(StrEnum):
    """How a drill ended."""

    PASSED = "passed"
    NOT_FIRED = "not fired"
    NOT_RESOLVED = "not resolved"
    SKIPPED = "skipped"
    ERROR = "error"


@dataclass(frozen=True)
class DrillResult:
    """What was seen."""

    alert: str
    fault: str
    node: str | None
    outcome: Outcome
    fired_after: float | None = None
    """Seconds from the fault until the webhook had the alert."""
    resolved_after: float | None = None
    """Seconds from healing until the webhook had it resolved."""
    detail: str = ""

    def to_json(self) -> dict[str, Any]:
        """For --json."""
        return {
            "alert": self.alert,
            "fault": self.fault,
            "node": self.node,
            "outcome": self.outcome.value,
            "fired_after_seconds": self.fired_after,
            "resolved_after_seconds": self.resolved_after,
            "detail": self.detail,
        }

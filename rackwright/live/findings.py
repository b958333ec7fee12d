"""What each source can report of a node, and the levels that follow."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from rackwright.boundary import printable
from rackwright.drift.states import State

TEXT_MAX_CHARACTERS = 400


class Level(StrEnum):
    """The one word for a node, worst first."""

    DOWN = "down"
    """The workload manager finds it broken or silent."""
    FAILING = "failing"
    """Its health check asks for more than a look, or a critical alert fires."""
    DRAINED = "drained"
    """Out of service by a decision."""
    UNKNOWN = "unknown"
    """Something that should be known is not, and nothing known is worse."""
    WARNING = "warning"
    """In service; it drifted, a warning fires, or a health check fails that needs no drain."""
    BUSY = "busy"
    """In service with jobs; everything asked is known and good."""
    GOOD = "good"
    """In service; everything asked is known and good."""

    @property
    def rank(self) -> int:
        """0 is the worst."""
        return list(Level).index(self)


class Source(StrEnum):
    """Where facts come from."""

    SCHEDULER = "scheduler"
    HEALTH = "health"
    DRIFT = "drift"
    ALERTS = "alerts"


@dataclass(frozen=True)
class Failure:
    """A health check that fails or does not know."""

    check: str
    status: str
    """FAIL or UNKNOWN."""
    action: str
    """What it asks for, e.g. `drain`; see rackwright.health.verdict.Action."""
    evidence: str


@dataclass(frozen=True)
class LastHealth:
    """The last verdict of a node's own health check."""

    at: float
    """Seconds since the epoch, by the node's clock."""
    age_seconds: float
    """By the node's clock alone."""
    checks: int
    """How many results it has."""
    failures: tuple[Failure, ...] = ()
    """FAIL and UNKNOWN, in the order of the node."""
    alert: str | None = None
    """Why it may not act and asks for a person."""


@dataclass(frozen=True)
class LastDrift:
    """The last comparison with the cluster file."""

    state: State
    at: float
    """Seconds since the epoch, by the clock of the node that checked."""
    age_seconds: float
    scheduled: bool
    """Whether the scheduled check found it; False: `rackwright drift`, by hand."""


@dataclass(frozen=True)
class FiringAlert:
    """An alert that fires."""

    name: str
    severity: str
    """`critical`, `warning`, or another word of the site's own rules."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """What it is about: node, rack, leaf, gpu, ..."""

    @property
    def text(self) -> str:
        """In one line, e.g. `GpuHot (warning; gpu 3)`."""
        rest = [
            f"{name} {value}" for name, value in sorted(self.labels.items()) if name not in _ABOUT_THE_NODE
        ]
        return printable(f"{self.name} ({'; '.join([self.severity, *rest])})", TEXT_MAX_CHARACTERS)


_ABOUT_THE_NODE = frozenset({"node", "rack", "leaf", "cluster", "instance", "job", "role", "sku"})


@dataclass(frozen=True)
class Reason:
    """Why a node has its level."""

    level: Level
    source: Source
    text: str
    """One printable line."""

    def __post_init__(self) -> None:
        """It may hold words of nodes, users and alerts."""
        object.__setattr__(self, "text", printable(self.text, TEXT_MAX_CHARACTERS))

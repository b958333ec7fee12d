"""What is known of every node, as rows of text. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias, TypeVar

from rackwright.boundary import printable
from rackwright.live.facts import Absent, Fact, Unknown
from rackwright.live.findings import LastDrift, Level
from rackwright.live.node import Live, LiveNode
from rackwright.model.cluster import Cluster, Node
from rackwright.workload.protocol import Job
from rackwright.workload.states import NodeState

NOTHING = "-"
UNKNOWN = "UNKNOWN"
_JOBS_SHOWN = 2
_CELL_MAX = 160
_REASON_MAX = 1000
T = TypeVar("T")
Jobs: TypeAlias = Fact[Mapping[str, tuple[Job, ...]]]


@dataclass(frozen=True)
class View:
    """The cluster at one time."""

    live: Live
    jobs: Jobs
    """Running jobs by node."""
    slow_at: float | None = None
    """When health checks and drift were asked last, seconds since the epoch; None: never yet."""


@dataclass(frozen=True)
class Row:
    """One node; every text is printable, and `-` where there is nothing to know."""

    node: str
    rack: str
    level: Level
    state: str
    """As the workload manager prints it."""
    jobs: str
    drift: str
    alerts: str
    reason: str
    """The worst first; why something is UNKNOWN too."""
    drain_reason: str | None = None
    """Exactly the reason of its drain; None: it is in service, or not known."""

    def holds(self, words: Iterable[str]) -> bool:
        """Whether every word stands somewhere in it, in lower or upper case."""
        shown = (
            self.node,
            self.rack,
            self.level,
            self.state,
            self.jobs,
            self.drift,
            self.alerts,
            self.reason,
        )
        text = " ".join(shown).lower()
        return all(word.lower() in text for word in words)


@dataclass(frozen=True)
class Rack:
    """The nodes of one rack, counted."""

    name: str
    nodes: int
    counts: Mapping[Level, int] = field(default_factory=dict)

    @property
    def worst(self) -> Level:
        """The level of its worst node."""
        return next(level for level in Level if self.counts.get(level))


def rows(cluster: Cluster, view: View, chosen: Iterable[Node]) -> list[Row]:
    """A row for each chosen node, rack by rack, in file order."""
    nodes = sorted(chosen, key=lambda node: (node.rack is None, _natural(node.rack or "")))
    return [
        _row(node, view.live.nodes[node.name], view.jobs) for node in nodes if node.name in view.live.nodes
    ]


def racks(found: Iterable[Row]) -> Iterator[Rack]:
    """Each rack of the rows, in their order."""
    by_rack: dict[str, Counter[Level]] = {}
    for row in found:
        by_rack.setdefault(row.rack, Counter())[row.level] += 1
    for name, counts in by_rack.items():
        yield Rack(name, counts.total(), counts)


def _natural(text: str) -> list[tuple[int, str]]:
    """`r2` before `r10`."""
    pieces: list[str] = [""]
    for letter in text:
        if pieces[-1] and letter.isdecimal() == pieces[-1][-1].isdecimal():
            pieces[-1] += letter
        else:
            pieces.append(letter)
    return [(int(piece), "") if piece.isdecimal() else (-1, piece) for piece in pieces]


def _row(node: Node, live: LiveNode, jobs: Jobs) -> Row:
    state = live.scheduler
    reasons = [one.text for one in live.reasons]
    return Row(
        node=node.name,
        rack=node.rack or NOTHING,
        level=live.level,
        state=_text(state, lambda found: found.text),
        jobs=_jobs(node.name, jobs, state),
        drift=_text(live.drift, _drift),
        alerts=_text(live.alerts, lambda found: ", ".join(one.name for one in found) or NOTHING),
        reason=printable("; ".join(reasons), _REASON_MAX),
        drain_reason=state.reason if isinstance(state, NodeState) and not state.in_service else None,
    )


def _text(fact: Fact[T], shown: Callable[[T], str]) -> str:
    if isinstance(fact, Unknown):
        return UNKNOWN
    return NOTHING if isinstance(fact, Absent) else printable(shown(fact), _CELL_MAX)


def _drift(found: LastDrift) -> str:
    return found.state.value


def _jobs(node: str, jobs: Jobs, state: Fact[NodeState]) -> str:
    if isinstance(state, Absent) or isinstance(jobs, Absent):
        return NOTHING
    if isinstance(jobs, Unknown):
        return UNKNOWN
    found = jobs.get(node, ())
    shown = ", ".join(f"{one.id} {one.user}" for one in found[:_JOBS_SHOWN])
    more = f", {len(found) - _JOBS_SHOWN} more" if len(found) > _JOBS_SHOWN else ""
    return printable(f"{shown}{more}" or NOTHING, _CELL_MAX)

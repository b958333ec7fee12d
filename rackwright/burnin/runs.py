"""Data of the search for a culprit: runs, readings, culprits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Literal

from rackwright.burnin.pairs import Pair

Way = Literal["leaf", "spine"]
"""Whether the nodes of a pair are below the same leaves, or their traffic crosses the spines."""


@dataclass(frozen=True)
class Run:
    """One job: disjoint pairs in parallel."""

    kind: Literal["collective", "ports"]
    """`collective`: all-reduce within each pair, of which the slowest pair's figure comes back; `ports`: ib_write_bw on
    every rail of every pair, of which every figure comes back."""
    pairs: tuple[Pair, ...]
    way: Way

    @property
    def nodes(self) -> tuple[str, ...]:
        """All of them, pair by pair."""
        return tuple(node for pair in self.pairs for node in pair)


@dataclass(frozen=True)
class Reading:
    """The result of a run."""

    figure: float | None = None
    """GB/s of the slowest pair; None: no sound figure, which counts as slow."""
    ports: Mapping[tuple[Pair, int], float] = field(default_factory=dict)
    """Gb/s by pair and rail."""
    problem: str | None = None


@dataclass(frozen=True)
class Culprit:
    """The smallest set that explains the slow runs."""

    kind: Literal["node", "rail", "uplinks"]
    """`node`: none of its rails alone; `rail`: one port of a node with its cable; `uplinks`: between leaf and spines."""
    nodes: tuple[str, ...]
    """The node; two if no third node could isolate one. For `uplinks`, the nodes below the leaves."""
    rails: tuple[int, ...]
    """The slow rails; empty: of a node all or none, or not measured by rail."""
    reached: float | None
    """GB/s of the last collective with it; None: it gave no figure."""
    of: float
    """GB/s under which a run is slow."""
    units: tuple[int, ...] = ()
    """For `uplinks`: the units of the leaves; two if no third unit could isolate one."""
    by_rail: bool = False
    """Whether ib_write_bw gave figures of its rails."""


@dataclass(frozen=True)
class SearchStep:
    """One run of the search, as the document keeps it."""

    number: int
    round: int
    """Runs of one round are of disjoint nodes and run in parallel."""
    run: Run
    reading: Reading
    slow: bool


@dataclass(frozen=True)
class Found:
    """The result of a search."""

    culprits: tuple[Culprit, ...] = ()
    unresolved: tuple[tuple[str, ...], ...] = ()
    """Sets of nodes that were slow and that no further run divided."""
    steps: tuple[SearchStep, ...] = ()
    limit: float | None = None
    """GB/s under which a run is slow; None: not even the first runs gave a figure."""
    stopped: str = ""
    """Why it ended early."""


def slow_rails(
    ports: Mapping[tuple[Pair, int], float], of: Sequence[Pair], fraction: float
) -> tuple[int, ...]:
    """Rails of some pairs with a figure under this part of the median of all figures.

    The other pairs of the run are the control: without them all rails of a slow node would look alike.
    """
    others = [gbps for (pair, _), gbps in ports.items() if pair not in of]
    middle = median(others or ports.values()) if ports else 0.0
    return tuple(
        sorted({rail for (pair, rail), gbps in ports.items() if pair in of and gbps < fraction * middle})
    )

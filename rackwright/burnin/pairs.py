"""Finds the bad node with rounds of disjoint pairs in which every node has different partners. Pure."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

ROUNDS = 2
SLOW_FRACTION = 0.85
"""A pair this far under a good pair is slow. The handbook's own bound for node against fleet is
5 %; pairs also differ by where their switches stand, and one bad link costs far more than that."""

Pair = tuple[str, str]


@dataclass(frozen=True)
class PairFigure:
    """The result of a pair; None if its run gave no sound figure."""

    nodes: Pair
    busbw_gbs: float | None
    problem: str | None = None


@dataclass(frozen=True)
class Triage:
    """The verdict of the pair tests."""

    slowest: PairFigure | None
    """A pair without a figure counts as slower than any other."""
    slow_below_gbs: float | None
    slow: tuple[PairFigure, ...]
    suspects: tuple[str, ...]
    """Nodes slow with each of at least two different partners."""


def pair_rounds(nodes: Sequence[str], rounds: int = ROUNDS) -> list[list[Pair]]:
    """Rounds of disjoint pairs in which no pair comes twice (the circle method).

    Every node meets `rounds` different partners, or all others if there are fewer. With an odd
    number one node sits out each round, so one more round is played.
    """
    circle: list[str | None] = list(nodes)
    if len(circle) < 2:
        return []
    if len(circle) % 2:
        circle.append(None)
        rounds += 1
    played: list[list[Pair]] = []
    for _ in range(min(rounds, len(circle) - 1)):
        half = len(circle) // 2
        facing = zip(circle[:half], reversed(circle[half:]), strict=True)
        played.append([(one, two) for one, two in facing if one is not None and two is not None])
        circle = [circle[0], circle[-1], *circle[1:-1]]
    return played


def triage(figures: Sequence[PairFigure], floor_gbs: float | None = None) -> Triage:
    """Name the slowest pair, the slow ones and the nodes they have in common.

    Slow is: no figure, under `floor_gbs`, or under 85 % of the upper quartile of all pairs. The
    quartile, not the median: with three nodes one bad node makes two pairs of three slow.
    """
    known = sorted(figure.busbw_gbs for figure in figures if figure.busbw_gbs is not None)
    bounds = [floor_gbs] if floor_gbs is not None else []
    if len(known) > 1:
        bounds.append(SLOW_FRACTION * known[math.ceil(0.75 * len(known)) - 1])
    limit = max(bounds, default=None)

    def is_slow(figure: PairFigure) -> bool:
        return figure.busbw_gbs is None or (limit is not None and figure.busbw_gbs < limit)

    ranked = sorted(figures, key=lambda figure: (figure.busbw_gbs is not None, figure.busbw_gbs or 0.0))
    of_node: dict[str, list[PairFigure]] = defaultdict(list)
    for figure in figures:
        for node in figure.nodes:
            of_node[node].append(figure)
    suspects = [node for node, seen in of_node.items() if len(seen) >= 2 and all(map(is_slow, seen))]
    return Triage(
        slowest=ranked[0] if ranked else None,
        slow_below_gbs=limit,
        slow=tuple(figure for figure in ranked if is_slow(figure)),
        suspects=tuple(sorted(suspects)),
    )

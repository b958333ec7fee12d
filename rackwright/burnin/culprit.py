"""The smallest set of nodes, rails or uplinks that explains a slow stage. Pure: it requests runs and receives figures.

A run is one job; its figure is that of its slowest pair. Pairs below one leaf come first: a slow one has a bad node or a
bad rail. Then come pairs of sound nodes across the spines: a slow one has a fault between leaf and spine.

A slow set is halved. If one half is fast, the other has the fault and is not run again. The figure adds more: a half
that is slow, but faster than the whole, leaves a slower fault in the other half. To find the bad node of a remaining
pair, each is paired with a fast node, and one run of ib_write_bw shows whether the node or one rail is slow.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import replace

from rackwright.burnin.hunt import DOUBT, Hunt, Round, Task
from rackwright.burnin.pairs import Pair
from rackwright.burnin.runs import Culprit, Found, Reading, Run, SearchStep, slow_rails

RUNS_MAX = 40
SLOW_FRACTION = 0.85
"""Share of the fastest of a few pairs, if no floor of two nodes is known; as pairs.SLOW_FRACTION."""
FIRST_PAIRS, FIRST_PAIRS_OF_MANY, MANY = 3, 2, 64
"""Pairs that set the reference if no floor is known; the fastest counts. Among many nodes, two slow pairs are unlikely."""
PORT_FRACTION = 0.85
"""Share of the median of the ports of a run; a faulty port loses a lane or retransmits, which costs far more."""

Units = Sequence[Sequence[str]]


class Search:
    """One search. Get `next_round`, run it, pass the readings back; repeat until the round is empty."""

    def __init__(
        self,
        units: Units,
        *,
        limit: float | None,
        ports: bool = True,
        fraction: float = SLOW_FRACTION,
        most: int = RUNS_MAX,
    ) -> None:
        """`units`: sets of nodes below the same leaves; `limit`: GB/s that two sound nodes reach, None: `fraction` of the
        fastest of a few pairs; `ports`: whether ib_write_bw can run.
        """
        self._fraction = fraction
        self._units = [tuple(unit) for unit in units if unit]
        self._ports = ports
        self._most = most
        self._steps: list[SearchStep] = []
        self._culprits: list[Culprit] = []
        self._unresolved: list[tuple[str, ...]] = []
        self._stopped = ""
        self._rounds = 0
        self._hunt: Hunt | None = None
        self._limit = limit
        self._bad: set[str] = set()
        self._whole = self._search()
        self._asked: tuple[Run, ...] = next(self._whole, ())

    def next_round(self) -> tuple[Run, ...]:
        """Runs of disjoint nodes, to start in parallel; empty: the search has ended."""
        room = self._most - len(self._steps)
        if self._asked and room < len(self._asked):
            self._stop(f"the search ends after {self._most} runs")
        return self._asked

    def tell(self, readings: Sequence[Reading]) -> None:
        """Take the readings of the round's runs, in order."""
        self._rounds += 1
        for run, reading in zip(self._asked, readings, strict=True):
            slow = run.kind == "collective" and self._is_slow(reading)
            self._steps.append(SearchStep(len(self._steps) + 1, self._rounds, run, reading, slow))
        try:
            self._asked = self._whole.send(tuple(readings))
        except StopIteration:
            self._asked = ()

    @property
    def found(self) -> Found:
        """The result so far."""
        return Found(
            tuple(self._culprits), tuple(self._unresolved), tuple(self._steps), self._limit, self._stopped
        )

    def _stop(self, why: str) -> None:
        self._stopped = why
        if self._hunt is not None:
            self._unresolved += [self._names(group) for group in self._hunt.open]
        self._whole.close()
        self._asked = ()

    def _is_slow(self, reading: Reading) -> bool:
        return reading.figure is None or (self._limit is not None and reading.figure < self._limit)

    # the search as a whole: each yield is a round

    def _search(self) -> Round:
        compared = self._limit is None
        if compared and not (yield from self._what_is_usual()):
            return
        yield from self._below_leaves()
        while compared and self._was_too_low():
            self._culprits, self._unresolved, self._bad = [], [], set()
            yield from self._below_leaves()
        sound = [tuple(node for node in unit if node not in self._bad) for unit in self._units]
        if not self._unresolved and sum(map(bool, sound)) > 1:
            yield from self._across_spines(sound)

    def _what_is_usual(self) -> Generator[tuple[Run, ...], Sequence[Reading], bool]:
        pairs = [unit[n : n + 2] for unit in self._units for n in range(0, len(unit) - 1, 2)]
        first = FIRST_PAIRS if len(pairs) * 2 < MANY else FIRST_PAIRS_OF_MANY
        step = max(len(pairs) // first, 1)
        chosen = [(pair[0], pair[1]) for pair in pairs[::step][:first]]
        if not chosen:
            self._stopped = "no two nodes are below the same leaves, and no floor of two nodes is known"
            return False
        readings = yield tuple(Run("collective", (pair,), "leaf") for pair in chosen)
        if len(chosen) < first and (of_three := [unit for unit in self._units if len(unit) > 2]):
            # a single slow node is in every pair but one of three nodes
            one, two, three = of_three[0][:3]
            for pair in ((one, three), (two, three)):
                readings = [*readings, *(yield (Run("collective", (pair,), "leaf"),))]
        known = [reading.figure for reading in readings if reading.figure is not None]
        if not known:
            self._stopped = f"no figure of any of the first pairs: {readings[0].problem}"
            return False
        self._set_limit(self._fraction * max(known))
        return True

    def _set_limit(self, limit: float) -> None:
        self._limit = limit
        self._steps = [
            replace(step, slow=step.run.kind == "collective" and self._is_slow(step.reading))
            for step in self._steps
        ]

    def _was_too_low(self) -> bool:
        """Whether later runs show that the first pairs were slow ones."""
        mine = [
            step for step in self._steps if step.run.kind == "collective" and step.reading.figure is not None
        ]
        figures = [step.reading.figure or 0.0 for step in mine]
        limit = self._fraction * max(figures)
        passed = [figure for step, figure in zip(mine, figures, strict=True) if not step.slow]
        if self._limit is None or limit <= self._limit or all(one >= limit * (1 - DOUBT) for one in passed):
            return False
        self._set_limit(limit)
        return True

    def _below_leaves(self) -> Round:
        peers = {node: unit for unit in self._units for node in unit}
        hunt = self._hunt = Hunt(
            units=[list(unit) for unit in self._units],
            peers=lambda node: peers[node],
            pairs=lambda pair: (pair,),
            way="leaf",
            slow=self._is_slow,
            limit=self._limit or 0.0,
            accuse=self._accuse_node,
        )
        yield from hunt.run()
        self._unresolved += [self._names(group) for group in hunt.open]

    def _across_spines(self, sound: list[tuple[str, ...]]) -> Round:
        names = {f"unit {number}": nodes for number, nodes in enumerate(sound) if nodes}
        self._by_unit = names
        hunt = self._hunt = Hunt(
            units=[list(names)],
            peers=lambda unit: tuple(names),
            pairs=lambda pair: tuple(zip(names[pair[0]], names[pair[1]], strict=False)),
            way="spine",
            slow=self._is_slow,
            limit=self._limit or 0.0,
            accuse=self._accuse_unit,
        )
        yield from hunt.run()
        self._unresolved += [self._names(group) for group in hunt.open]

    def _names(self, group: Sequence[str]) -> tuple[str, ...]:
        if self._hunt is not None and self._hunt.way == "spine":
            return tuple(node for unit in group for node in self._by_unit[unit])
        return tuple(group)

    # what is accused, and by which rail

    def _accuse_node(self, accused: tuple[str, ...], helper: str | None, reached: float | None) -> Task:
        self._bad |= set(accused)
        rails: tuple[int, ...] = ()
        known = 0
        if self._ports:
            tested: Pair = (accused[0], helper if helper is not None else accused[1])
            control = self._hunt.sound_pair(helper) if self._hunt is not None else None
            run = Run("ports", (tested, control) if control is not None else (tested,), "leaf")
            reading = yield run
            rails = slow_rails(reading.ports, [tested], PORT_FRACTION)
            known = len({rail for _, rail in reading.ports})
        one = Culprit("node", accused, (), reached, self._limit or 0.0, by_rail=known > 0)
        if rails and (len(rails) <= known // 2 or known == 1):
            self._culprits += [replace(one, kind="rail", rails=(rail,)) for rail in rails]
        else:
            self._culprits.append(one)

    def _accuse_unit(self, accused: tuple[str, ...], helper: str | None, reached: float | None) -> Task:
        rails: tuple[int, ...] = ()
        known = 0
        names = self._by_unit
        if self._ports:
            other = names[helper if helper is not None else accused[1]]
            tested = tuple(zip(names[accused[0]], other, strict=False))
            reading = yield Run("ports", tested, "spine")
            rails = slow_rails(reading.ports, tested, PORT_FRACTION)
            known = len({rail for _, rail in reading.ports})
            rails = () if len(rails) == known else rails
        nodes = tuple(node for unit in accused for node in names[unit])
        units = tuple(int(unit.removeprefix("unit ")) for unit in accused)
        self._culprits.append(Culprit("uplinks", nodes, rails, reached, self._limit or 0.0, units, known > 0))

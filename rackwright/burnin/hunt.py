"""Halves slow sets in rounds of disjoint runs. Pure, see culprit.py.

The members are nodes (pairs below a leaf) or units (pairs across the spines); a hunt only knows their names.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import dataclass, field

from rackwright.burnin.pairs import Pair
from rackwright.burnin.runs import Reading, Run, Way

DOUBT = 0.03
"""A figure this close to the limit is measured again; runs of the same nodes vary by a few percent."""
FASTER = 1.12
"""Relative to the whole set: a half that is this much faster does not have the slowest fault."""

Task = Generator[Run, Reading, None]
Round = Generator[tuple[Run, ...], Sequence[Reading], None]
Accuse = Callable[[tuple[str, ...], str | None, float | None], Task]


@dataclass(eq=False)
class _Slow:
    """Pairs of which at least one is slow."""

    pairs: list[Pair]
    level: float | None
    """GB/s of the slowest fault in them; None: unknown."""
    seen: bool = True
    """Whether exactly these pairs were slow in a run; False: concluded from other runs."""
    far: bool = False
    """Whether members elsewhere may help, because everything closer has been measured."""
    task: Task = field(init=False)
    asks: Run | None = None


class Hunt:
    """Finds the slow members among some units of them."""

    def __init__(
        self,
        *,
        units: list[list[str]],
        peers: Callable[[str], Sequence[str]],
        pairs: Callable[[Pair], tuple[Pair, ...]],
        way: Way,
        slow: Callable[[Reading], bool],
        limit: float,
        accuse: Accuse,
    ) -> None:
        """`pairs`: the node pairs of a member pair; `peers`: members that may help to isolate one of two."""
        self._peers, self._pairs, self.way = peers, pairs, way
        self._slow, self._limit, self._accuse = slow, limit, accuse
        self._pool: list[Pair] = []
        """Neither known to be slow nor fast."""
        self._lone: list[str] = []
        self._good: dict[str, None] = {}
        self._active: list[_Slow] = []
        self._stuck: list[_Slow] = []
        """Single pairs that wait for a sound member."""
        self._members = [member for unit in units for member in unit]
        for unit in units:
            self._pool += [(unit[n], unit[n + 1]) for n in range(0, len(unit) - 1, 2)]
            self._lone += unit[-1:] if len(unit) % 2 else []

    @property
    def open(self) -> list[tuple[str, ...]]:
        """Slow sets that are not yet divided, and members that lack a sound peer for a run."""
        slow = [
            tuple(member for pair in one.pairs for member in pair) for one in (*self._active, *self._stuck)
        ]
        return slow + [(member,) for member in self._lone if len(self._members) > 1]

    def sound_pair(self, but: str | None) -> Pair | None:
        """Two sound members beside `but`, below the same leaves, as the control of a run."""
        for one in self._good:
            others = [two for two in self._peers(one) if two in self._good and two not in (one, but)]
            if one != but and others:
                return one, others[0]
        return None

    def run(self) -> Round:
        """Run until every member is sound, accused, or not separable."""
        while True:
            if self._active:
                yield from self._step()
            elif self._pool or self._pair_the_lone():
                yield from self._rest()
            elif self._stuck and self._good:
                again, self._stuck = self._stuck, []
                for slow in again:
                    self._follow(slow.pairs, slow.level, seen=slow.seen, far=True)
            elif self._stuck:
                yield from self._mix()
            else:
                return

    # rounds

    def _step(self) -> Round:
        """One run for each slow set whose nodes are disjoint from the others; the rest wait for the next round."""
        taken: set[str] = set()
        going = []
        for slow in self._active:
            if slow.asks is not None and not taken & set(slow.asks.nodes):
                taken |= set(slow.asks.nodes)
                going.append(slow)
        runs = tuple(slow.asks for slow in going if slow.asks is not None)
        readings = yield runs
        for slow, reading in zip(going, readings, strict=True):
            self._send(slow, reading)

    def _send(self, slow: _Slow, reading: Reading) -> None:
        try:
            slow.asks = slow.task.send(reading)
        except StopIteration:
            self._active.remove(slow)

    def _start(self, slow: _Slow, task: Task) -> None:
        slow.task = task
        slow.asks = next(task, None)
        if slow.asks is not None:
            self._active.append(slow)

    def _follow(self, pairs: list[Pair], level: float | None, *, seen: bool, far: bool = False) -> None:
        slow = _Slow(pairs, level, seen, far)
        self._start(slow, self._narrow(slow))

    def _rest(self) -> Round:
        """All unknown members in one run: usually they are sound."""
        pairs, self._pool = self._pool, []
        [reading] = yield (self._collective(pairs),)
        if self._doubted(reading):
            [again] = yield (self._collective(pairs),)
            reading = _both(reading, again)
        if self._slow(reading):
            self._follow(pairs, reading.figure, seen=True)
        else:
            self._clear(pairs)

    def _mix(self) -> Round:
        """Nothing has been fast yet: pair the members of a slow pair with others until two are; else it stays a pair."""
        slow = self._stuck[0]
        others = [*(member for one in self._stuck[1:2] for member in one.pairs[0]), *self._lone[:2]]
        for pair in ((mine, other) for mine in slow.pairs[0] for other in others):
            [reading] = yield (self._collective([pair]),)
            if not self._slow(reading):
                self._clear([pair])
                self._lone = [member for member in self._lone if member not in pair]
                return
        self._stuck.remove(slow)
        self._start(slow, self._accuse(slow.pairs[0], None, slow.level))

    # one slow set

    def _narrow(self, slow: _Slow) -> Task:
        while len(slow.pairs) > 1:
            half = len(slow.pairs) // 2
            left, right = slow.pairs[:half], slow.pairs[half:]
            reading = yield from self._measured(left)
            if not self._slow(reading):
                self._clear(left)
                slow.pairs, slow.seen = right, False
                continue
            whole, part = slow.level, reading.figure
            if whole is not None and part is not None and part > FASTER * whole:
                self._follow(right, whole, seen=False)
            elif whole is None and part is not None:
                self._follow(right, None, seen=False)
            else:
                self._pool += right
            slow.pairs, slow.level, slow.seen = left, part, True
        yield from self._isolated(slow)

    def _isolated(self, slow: _Slow) -> Task:
        """Find the bad member of a slow pair."""
        [pair] = slow.pairs
        first, second = reversed(pair) if pair[0] in self._good else pair
        if second in self._good and slow.seen:  # a lone member beside a sound one
            yield from self._accuse((first,), second, slow.level)
            return
        near, elsewhere = self._helper(pair, self._peers(first)), self._helper(pair, self._members)
        helper = elsewhere if near is None and slow.far else near
        if helper is None:
            self._stuck.append(_Slow([pair], slow.level, slow.seen))
            return
        reading = yield from self._measured([(first, helper)])
        if self._slow(reading) and near is not None:
            self._lone += [second] if second not in self._good else []
            yield from self._accuse((first,), helper, reading.figure)
            return
        one_is_slow = self._slow(reading)
        self._clear([] if one_is_slow else [(first, helper)])
        if one_is_slow or not slow.seen:
            reading = yield from self._measured([(second, helper)])
            both_are_slow = one_is_slow and self._slow(reading)
            if both_are_slow:  # across the spines: that path may be the slow one
                yield from self._accuse(pair, None, slow.level)
                return
            if not self._slow(reading):
                self._clear([(second, helper)])
            if not one_is_slow and not self._slow(reading):
                return
        yield from self._accuse((first,) if one_is_slow else (second,), helper, slow.level)

    def _measured(self, pairs: list[Pair]) -> Generator[Run, Reading, Reading]:
        reading = yield self._collective(pairs)
        if self._doubted(reading):
            again = yield self._collective(pairs)
            return _both(reading, again)
        return reading

    def _doubted(self, reading: Reading) -> bool:
        return reading.figure is not None and abs(reading.figure / self._limit - 1) < DOUBT

    def _collective(self, pairs: Iterable[Pair]) -> Run:
        return Run("collective", tuple(one for pair in pairs for one in self._pairs(pair)), self.way)

    # who is sound

    def _clear(self, pairs: Iterable[Pair]) -> None:
        self._good |= dict.fromkeys(member for pair in pairs for member in pair)

    def _helper(self, but: Iterable[str], among: Iterable[str]) -> str | None:
        """A sound member, except the given ones."""
        out = set(but)
        return next((member for member in among if member in self._good and member not in out), None)

    def _pair_the_lone(self) -> bool:
        """Give each lone member a sound peer; without one, a sound member elsewhere, or another lone member."""
        waiting, self._lone = self._lone, []
        taken: set[str] = set()
        for member in waiting:
            peers = self._peers(member)
            helper = self._helper((member, *taken), peers if len(peers) > 1 else self._members)
            if helper is not None:
                taken.add(helper)
                self._pool.append((member, helper))
            else:
                self._lone.append(member)
        if not self._pool:
            alone = [member for member in self._lone if len(self._peers(member)) == 1]
            self._pool = [(alone[n], alone[n + 1]) for n in range(0, len(alone) - 1, 2)]
            paired = {member for pair in self._pool for member in pair}
            self._lone = [member for member in self._lone if member not in paired]
        return bool(self._pool)


def _both(one: Reading, two: Reading) -> Reading:
    if one.figure is None or two.figure is None:
        return Reading(None, {}, one.problem or two.problem)
    return Reading((one.figure + two.figure) / 2)

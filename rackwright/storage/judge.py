"""Judges the answers of nodes: findings about a filesystem, figures and their floors. Pure.

FAIL means a filesystem fault: wrong data, an I/O error, a missed floor. UNKNOWN means not measured.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rackwright.burnin.finding import Finding
from rackwright.model.ranges import fold
from rackwright.model.storage import FLOORS, Filesystem
from rackwright.status import Status
from rackwright.storage.plan import SAVES_ON_DISK, Sizes
from rackwright.storage.received import Looked
from rackwright.storage.report import Figure, NodeRates

POSSIBLE_GBS = 2000.0
"""GB/s of one node; eight ports of 1.6 Tb/s carry 1,600. A node that answers more has not measured."""


@dataclass(frozen=True)
class Judged:
    """What one run came to."""

    rates: tuple[NodeRates, ...] = ()
    figures: tuple[Figure, ...] = ()
    findings: tuple[Finding, ...] = ()
    version: str | None = None
    """fio's."""
    hung: bool = False
    """Whether it timed out; then later stages would too."""

    @property
    def sound(self) -> bool:
        """Whether nothing failed and nothing is unknown."""
        return not any(found.status in (Status.FAIL, Status.UNKNOWN) for found in self.findings)


def judge_look(one: Filesystem, node: str, look: Looked) -> Finding | None:
    """Why a node cannot take part, or None."""
    if look.trouble is not None:
        return Finding(Status.UNKNOWN, f"{node}: {one.path}: {look.trouble}")
    if look.mounted is None:
        return Finding(
            Status.UNKNOWN, f"{node}: nothing is mounted on {one.path}: the bench would fill another disk"
        )
    return None


def judge_space(
    one: Filesystem, sizes: Sizes, nodes: int, save_bytes: int, look: Looked, node: str
) -> Finding | None:
    """Whether the bench would leave too little free space; `save_bytes`: size of one checkpoint, all ranks."""
    writers = nodes if one.kind.shared else 1
    needed = max(2 * sizes.size * sizes.jobs * writers, SAVES_ON_DISK * save_bytes)
    kept = int(look.size_bytes * one.min_free_percent / 100)
    if look.free_bytes - needed < kept:
        shown = (
            f"{node}: {one.path} has {_gib(look.free_bytes)} free; the bench needs {_gib(needed)}, and "
            f"{_gib(kept)} ({one.min_free_percent:g} %) must stay free: nothing was written"
        )
        return Finding(Status.UNKNOWN, f"{shown}; lower `bench.size_mib`, or run with --quick")
    made = (sizes.files + 4) * sizes.jobs * writers
    kept_files = int(look.files * one.min_free_files_percent / 100)
    if look.files and look.free_files - made < kept_files:
        shown = f"{node}: {one.path} has {look.free_files} free inodes; the bench makes {made}"
        return Finding(Status.UNKNOWN, f"{shown}, and {kept_files} must stay free: nothing was written")
    return None


def _gib(count: int) -> str:
    return f"{count / 2**30:.3g} GiB"


def alone_figures(one: Filesystem, rates: Sequence[NodeRates]) -> tuple[Figure, ...]:
    """The slowest node's rates."""
    found = []
    for key, name in (("read_gbs", "read, one node alone"), ("write_gbs", "write, one node alone")):
        known = [(value, each.node) for each in rates if (value := getattr(each, key)) is not None]
        if known:
            value, node = min(known)
            found.append(Figure(key, name, "GB/s", value, floor_of(one, key), node))
    return tuple(found)


def judge_floors(
    one: Filesystem, figures: Sequence[Figure], rates: Sequence[NodeRates]
) -> tuple[Finding, ...]:
    """FAIL for each figure below its floor, every node alone by name; WARN if no floor is declared at all."""
    source = f" ({one.floor.source.text})" if one.floor is not None and one.floor.source is not None else ""
    found = []
    for figure in figures:
        if not figure.under:
            continue
        bad: Mapping[str, float] = {}
        if figure.node is not None and figure.floor is not None:
            bad = {
                each.node: value
                for each in rates
                if (value := getattr(each, figure.key)) is not None and value < figure.floor
            }
        who = f"{fold(bad)}: " if bad else ""
        shown = f"{figure.value:.3g} {figure.unit} is below the floor of {figure.floor:g}{source}"
        found.append(Finding(Status.FAIL, f"{who}{figure.name}: {shown}"))
    if one.floor is None and figures:
        found.append(Finding(Status.WARN, f"{one.name}: measured, not judged: no floor is declared"))
    elif figures:
        missing = [
            key for key in FLOORS if floor_of(one, key) is not None and key not in {f.key for f in figures}
        ]
        if missing:
            found.append(
                Finding(
                    Status.UNKNOWN, f"a floor is declared for {', '.join(missing)}, but there is no figure"
                )
            )
    return tuple(found)


def floor_of(one: Filesystem, key: str) -> float | None:
    value = getattr(one.floor, key) if one.floor is not None else None
    return float(value) if value is not None else None

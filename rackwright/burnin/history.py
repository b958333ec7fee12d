"""Compares the last burn-in with earlier ones of the same nodes and versions, to find drops beyond noise. Pure.

Median and median absolute deviation (MAD) of the earlier runs, because a mean follows a single bad run, and hides the next.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any

from rackwright.boundary import printable
from rackwright.model.ranges import fold

RUNS = 20
"""Earlier runs to compare with."""
LEAST_RUNS = 4
"""Fewest earlier runs with a figure; with fewer, the spread is unknown."""
DEVIATIONS = 4.0
"""Standard deviations, estimated from the MAD; a run of a thousand nodes has thousands of figures, and all of them in
noise alone should pass."""
TO_SIGMA = 1.4826
"""The standard deviation of normal noise over its MAD."""
LEAST_PERCENT = 5.0
"""Of the median: a smaller change is not a regression, even if all earlier runs were identical; the handbook's bound of node against fleet."""

Figures = dict[str, float]


@dataclass(frozen=True)
class Point:
    """A figure of an earlier run."""

    started: str
    value: float


@dataclass(frozen=True)
class Series:
    """One figure of the last run and of earlier ones."""

    name: str
    """E.g. `all_reduce` or `ports: rail 3 of gpu017 -> gpu018 (host, leaf)`."""
    unit: str
    value: float
    earlier: tuple[Point, ...]
    middle: float | None = None
    """Median of the earlier runs; None: too few."""
    limit: float | None = None
    """A figure beyond this is a regression."""
    regressed: bool = False

    @property
    def change_percent(self) -> float | None:
        """Relative to the median."""
        return round(100 * (self.value / self.middle - 1), 1) if self.middle else None


@dataclass(frozen=True)
class Compared:
    """One group of nodes."""

    nodes: tuple[str, ...]
    engine: str
    versions: Mapping[str, str]
    started: str
    series: tuple[Series, ...]
    earlier_runs: int
    """Of the same nodes, engine and versions."""
    other_versions: int
    """Runs of the same nodes that are left out because a version differs."""

    @property
    def regressions(self) -> tuple[Series, ...]:
        """Worst first."""
        fallen = [one for one in self.series if one.regressed]
        return tuple(sorted(fallen, key=lambda one: -abs(one.change_percent or 0.0)))

    @property
    def judged(self) -> int:
        """Figures with enough earlier runs."""
        return sum(one.limit is not None for one in self.series)

    def to_json(self) -> dict[str, Any]:
        """As plain JSON data."""
        return {
            "nodes": list(self.nodes),
            "engine": self.engine,
            "versions": dict(self.versions),
            "started": self.started,
            "earlier_runs": self.earlier_runs,
            "other_versions": self.other_versions,
            "least_runs": LEAST_RUNS,
            "regressions": [one.name for one in self.regressions],
            "series": [{**asdict(one), "change_percent": one.change_percent} for one in self.series],
        }


def compare(documents: Sequence[Mapping[str, Any]], runs: int = RUNS) -> tuple[Compared, ...]:
    """Each group of the last document against at most `runs` earlier ones; `documents` are in the order of time."""
    if not documents:
        return ()
    *before, last = documents
    return tuple(_compared(group, str(last.get("started")), before, runs) for group in _groups(last))


def _compared(
    group: Mapping[str, Any], started: str, before: Sequence[Mapping[str, Any]], runs: int
) -> Compared:
    same: list[tuple[str, Mapping[str, Any]]] = []
    others = 0
    for document in reversed(before):
        for one in _groups(document):
            if _who(one) != _who(group) or len(same) >= runs:
                continue
            if one.get("versions") == group.get("versions"):
                same.append((str(document.get("started")), one))
            else:
                others += 1
    past = [(when, figures_of(one)) for when, one in reversed(same)]
    series = []
    for (name, unit), value in figures_of(group).items():
        points = tuple(Point(when, figures[name, unit]) for when, figures in past if (name, unit) in figures)
        series.append(judge(Series(name, unit, value, points)))
    versions = group.get("versions")
    named = (
        {str(key): printable(str(value), 80) for key, value in versions.items()}
        if isinstance(versions, dict)
        else {}
    )
    nodes, engine = _who(group)
    return Compared(nodes, engine, named, started, tuple(series), len(same), others)


def judge(series: Series) -> Series:
    """With the limit, where there are enough earlier runs; times may rise, all else may fall, by no more than noise."""
    values = [point.value for point in series.earlier]
    if len(values) < LEAST_RUNS:
        return series
    middle = median(values)
    spread = median(abs(value - middle) for value in values)
    room = max(DEVIATIONS * TO_SIGMA * spread, LEAST_PERCENT / 100 * middle)
    limit = middle + room if series.unit == "us" else middle - room
    regressed = series.value > limit if series.unit == "us" else series.value < limit
    return Series(series.name, series.unit, series.value, series.earlier, middle, limit, regressed)


def figures_of(group: Mapping[str, Any]) -> dict[tuple[str, str], float]:
    """Every figure that a stored group holds, by its name and unit."""
    found: dict[tuple[str, str], float] = {}
    for measured in _dicts(group, "measurements"):
        rows = [row for row in _dicts(measured, "rows") if isinstance(row.get("size"), int)]
        if rows:
            largest = max(rows, key=lambda row: int(row["size"]))
            sides = [_number(_dict(largest, side).get("busbw_gbs")) for side in ("out_of_place", "in_place")]
            known = [side for side in sides if side is not None]
            if known:
                found[f"{measured.get('collective')} at {largest['size']} B", "GB/s"] = min(known)
    for name, unit, value in _by_subject(group):
        if value is not None and value > 0:
            found[printable(name, 160), unit] = value
    return found


def _by_subject(group: Mapping[str, Any]) -> Iterator[tuple[str, str, float | None]]:
    for one in _dicts(group, "per_node"):
        yield f"{one.get('node')} alone at {one.get('size')} B", "GB/s", _number(one.get("busbw_gbs"))
    for one in _dicts(group, "loopback"):
        yield f"{one.get('node')} alone through its ports", "GB/s", _number(one.get("busbw_gbs"))
    for one in _dicts(group, "scopes"):
        name = f"{one.get('collective')} by {one.get('scope')} of {_nodes(one)} at {one.get('size')} B"
        yield name, "GB/s", _number(one.get("busbw_gbs"))
    for one in _dicts(group, "gemm"):
        yield f"gemm: GPU {one.get('gpu')} of {one.get('node')}", "TFLOPS", _number(one.get("tflops"))
    for one in _dicts(group, "copies"):
        yield f"{one.get('test')}: GPU {one.get('gpu')} of {one.get('node')}", "GB/s", _number(one.get("gbs"))
    for one in _dicts(group, "ports"):
        where = f"rail {one.get('rail')} of {_nodes(one, ' -> ')}"
        yield f"ports: {where} ({one.get('memory')}, {one.get('way')})", "Gb/s", _number(one.get("gbps"))
    for one in _dicts(group, "latencies"):
        where = f"rail {one.get('rail')} of {_nodes(one, ' -> ')}"
        yield f"read latency: {where} ({one.get('way')})", "us", _number(one.get("typical_us"))


def _nodes(one: Mapping[str, Any], between: str | None = None) -> str:
    names = one.get("nodes")
    listed = [str(name) for name in names] if isinstance(names, list) else []
    return between.join(listed) if between is not None else fold(listed)


def _who(group: Mapping[str, Any]) -> tuple[tuple[str, ...], str]:
    """The nodes that took part in the collectives, and the engine."""
    nodes, left_out = group.get("nodes"), group.get("left_out")
    out = set(left_out) if isinstance(left_out, list) else set()
    named = tuple(str(node) for node in nodes if node not in out) if isinstance(nodes, list) else ()
    return named, str(group.get("engine"))


def _groups(document: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return _dicts(document, "groups")


def _dicts(data: Mapping[str, Any], key: str) -> list[Mapping[str, Any]]:
    listed = data.get(key)
    return [one for one in listed if isinstance(one, dict)] if isinstance(listed, list) else []


def _dict(data: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    found = data.get(key)
    return found if isinstance(found, dict) else {}


def _number(value: object) -> float | None:
    known = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    return float(value) if known and isinstance(value, int | float) else None

"""Bus bandwidth over message size as points of an SVG drawing. Pure arithmetic, no text markup."""

from __future__ import annotations

import math
from dataclasses import dataclass

from rackwright.burnin.report import SkuGroup, bytes_text

WIDTH, HEIGHT = 640, 220
_LEFT, _RIGHT, _TOP, _BOTTOM = 56, 12, 14, 30


@dataclass(frozen=True)
class Tick:
    """A mark on an axis, in pixels, and its label."""

    at: float
    label: str


@dataclass(frozen=True)
class Chart:
    """Everything the template needs to draw; coordinates in pixels, y downwards."""

    width: int
    height: int
    left: int
    right: int
    top: int
    bottom: int
    out_of_place: str
    """Points of a polyline: "x,y x,y"."""
    in_place: str
    floor: float | None
    """y of the floor."""
    x_ticks: tuple[Tick, ...]
    y_ticks: tuple[Tick, ...]


def chart_of(group: SkuGroup) -> Chart | None:
    """The chart of a group's all-reduce; None with fewer than two sizes."""
    table = group.measurements[0].table if group.measurements else None
    rows = sorted(table.rows, key=lambda row: row.size) if table is not None else []
    rows = [row for row in rows if row.size > 0 and math.isfinite(row.busbw_gbs)]
    if len(rows) < 2:
        return None
    floor = group.floor.busbw_gbs if group.floor is not None else None
    reached = [side.busbw_gbs for row in rows for side in (row.out_of_place, row.in_place)]
    top = _nice(max([*reached, floor or 0.0, 1e-3]))
    first, last = math.log2(rows[0].size), math.log2(rows[-1].size)
    span = (last - first) or 1.0

    def x(size: int) -> float:
        return round(_LEFT + (math.log2(size) - first) / span * (WIDTH - _LEFT - _RIGHT), 1)

    def y(busbw: float) -> float:
        return round(HEIGHT - _BOTTOM - busbw / top * (HEIGHT - _TOP - _BOTTOM), 1)

    every = max(1, math.ceil(len(rows) / 8))
    return Chart(
        width=WIDTH,
        height=HEIGHT,
        left=_LEFT,
        right=WIDTH - _RIGHT,
        top=_TOP,
        bottom=HEIGHT - _BOTTOM,
        out_of_place=" ".join(f"{x(row.size)},{y(row.out_of_place.busbw_gbs)}" for row in rows),
        in_place=" ".join(f"{x(row.size)},{y(row.in_place.busbw_gbs)}" for row in rows),
        floor=y(floor) if floor is not None else None,
        x_ticks=tuple(Tick(x(row.size), bytes_text(row.size)) for row in reversed(rows[::-every])),
        y_ticks=tuple(Tick(y(top * step / 4), f"{top * step / 4:g}") for step in range(5)),
    )


def _nice(value: float) -> float:
    """The next 1, 2, 4, 5 or 10 times a power of ten: an axis whose quarters are short numbers."""
    power = 10.0 ** math.floor(math.log10(value))
    return next(factor * power for factor in (1, 2, 4, 5, 10) if factor * power >= value * 0.999999)

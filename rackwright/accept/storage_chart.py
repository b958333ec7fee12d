"""What a filesystem reached, as bars of an SVG drawing with its floors. Pure arithmetic, no text markup."""

from __future__ import annotations

from dataclasses import dataclass

from rackwright.storage.report import FilesystemResult

WIDTH, ROW, BAR = 640, 26, 14
_LEFT, _RIGHT, _TOP = 220, 90, 6


@dataclass(frozen=True)
class Bar:
    """One figure, in pixels."""

    label: str
    value: str
    y: float
    width: float
    floor: float | None
    """x of the floor."""
    under: bool


@dataclass(frozen=True)
class Bars:
    """Everything the template needs to draw; coordinates in pixels, y downwards."""

    width: int
    height: int
    left: int
    bar: int
    bars: tuple[Bar, ...]


def bars_of(result: FilesystemResult) -> Bars | None:
    """A bar for each figure, each unit on its own scale; None without figures."""
    if not result.figures:
        return None
    most: dict[str, float] = {}
    for one in result.figures:
        most[one.unit] = max(most.get(one.unit, 0.0), one.value, one.floor or 0.0)
    room = WIDTH - _LEFT - _RIGHT

    def span(unit: str, value: float) -> float:
        return round(room * value / most[unit], 1) if most[unit] > 0 else 0.0

    bars = tuple(
        Bar(
            label=one.name,
            value=f"{one.value:.3g} {one.unit}",
            y=_TOP + number * ROW,
            width=span(one.unit, one.value),
            floor=_LEFT + span(one.unit, one.floor) if one.floor is not None else None,
            under=one.under,
        )
        for number, one in enumerate(result.figures)
    )
    return Bars(WIDTH, _TOP + len(bars) * ROW, _LEFT, BAR, bars)

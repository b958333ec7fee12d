"""Where each box of a rack is drawn. Pure arithmetic; pixels, y downwards."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from rackwright.drawing.model import Box, Rack, Room

SMALL_FROM = 97
"""Number of boxes from which on racks are small multiples: in the order of their units, without empty ones."""
_GUTTER, _PAD, _GAP = 20, 4, 1.5
_LINE = 15.0
"""Height of a line of text with its margins."""
_TALL = 400.0
"""Racks of few units are drawn with more room for each."""
_SMALL_BOX, _SMALL_UNIT, _SMALL_BOX_MAX = 11.0, 1.5, 21.0
_NAME, _TAG, _TEXT, _SMALL_NAME = 7.1, 6.4, 5.4, 4.9
"""Width of a letter, on average of a wide font."""
_WIDTHS = ((4, 236), (6, 190), (12, 138))
"""Number of racks, and their width up to that number."""


@dataclass(frozen=True)
class Scale:
    """Sizes that all racks of a page share."""

    small: bool
    width: int
    unit: float
    """Height of one rack unit; of no meaning in small racks."""
    first: int
    """The lowest unit that is drawn."""
    units: int
    """How many are drawn."""
    gutter: int
    """Room for the numbers of units; 0: they are not drawn."""

    @property
    def inner(self) -> int:
        """Width that boxes share."""
        return self.width - self.gutter - 2 * _PAD


@dataclass(frozen=True)
class Place:
    """A box with its rectangle and the texts that fit into it; an empty text has no room."""

    box: Box
    x: float
    y: float
    width: float
    height: float
    name: str
    tag: str
    detail: str
    more: str


@dataclass(frozen=True)
class Elevation:
    """A rack, ready to be drawn."""

    rack: Rack
    height: float
    places: tuple[Place, ...]


@dataclass(frozen=True)
class Label:
    """The number of a rack unit and the middle of its line."""

    y: float
    text: str


@dataclass(frozen=True)
class _Span:
    """A box with the units that it takes, its lane, and how many lanes its neighbours share."""

    low: int
    high: int
    box: Box
    lane: int
    lanes: int
    row: int
    """Boxes that overlap are of one row."""


def scale_of(rooms: Iterable[Room]) -> Scale:
    """One scale for all racks, so that equal nodes look equal."""
    racks = [rack for room in rooms for rack in room.racks]
    boxes = [box for rack in racks for box in rack.boxes]
    spans = [span for rack in racks for span in _spans(rack.boxes)]
    first = min((span.low for span in spans), default=1)
    units = max((span.high for span in spans), default=1) - first + 1
    if len(boxes) >= SMALL_FROM:
        return Scale(True, 66, 0.0, first, units, 0)
    width = next((width for most, width in _WIDTHS if len(racks) <= most), _WIDTHS[-1][1])
    if all(box.unit is None for box in boxes):
        return Scale(False, width, 3.6 * _LINE if width > 150 else 2.4 * _LINE, first, units, 0)
    lowest = min(box.height for box in boxes)
    least = _LINE if lowest == 1 else max(2 * _LINE / lowest, 8.0)
    unit = max(least, min(_TALL / units, 3.6 * _LINE if width > 150 else 2.4 * _LINE))
    return Scale(False, width, unit, first, units, _GUTTER)


def elevation(rack: Rack, scale: Scale) -> Elevation:
    """Every box of a rack, once. Boxes that overlap share the width."""
    spans = _spans(rack.boxes)
    if scale.small:
        return _small(rack, spans, scale)
    height = scale.units * scale.unit + 2 * _PAD
    placed = [
        _place(span, _y(span.high, scale), (span.high - span.low + 1) * scale.unit, scale) for span in spans
    ]
    return Elevation(rack, round(height, 1), tuple(placed))


def labels(scale: Scale) -> list[Label]:
    """Every fifth unit, and the first."""
    if not scale.gutter:
        return []
    numbers = [n for n in range(scale.first, scale.first + scale.units) if n % 5 == 0 or n == 1]
    return [Label(round(_y(n, scale) + scale.unit / 2, 1), str(n)) for n in numbers]


def _small(rack: Rack, spans: Sequence[_Span], scale: Scale) -> Elevation:
    """Rows from the bottom up; boxes that overlap are side by side in one."""
    tall: dict[int, float] = {}
    for span in spans:
        own = min(_SMALL_BOX + _SMALL_UNIT * (span.box.height - 1), _SMALL_BOX_MAX)
        tall[span.row] = max(tall.get(span.row, 0.0), own)
    bottom, at = float(_PAD), dict[int, float]()
    for row in sorted(tall):
        bottom += tall[row]
        at[row] = bottom
    height = bottom + _PAD
    in_row: Counter[int] = Counter()
    shared, placed = Counter(span.row for span in spans), []
    for span in spans:
        beside = replace(span, lane=in_row[span.row], lanes=shared[span.row])
        placed.append(_place(beside, height - at[span.row], tall[span.row], scale))
        in_row[span.row] += 1
    return Elevation(rack, round(height, 1), tuple(placed))


def _spans(boxes: Sequence[Box]) -> list[_Span]:
    """By their lowest unit; boxes without a position follow above the others."""
    taken = [(box.unit, box.unit + box.height - 1, box) for box in boxes if box.unit is not None]
    top = max((high for _, high, _ in taken), default=0)
    for box in boxes:
        if box.unit is None:
            taken.append((top + 1, top + box.height, box))
            top += box.height
    rows: list[list[_Span]] = []
    ends: list[int] = []
    for low, high, box in sorted(taken, key=lambda one: one[0]):
        if not ends or low > max(ends):
            ends = []
            rows.append([])
        lane = next((lane for lane, end in enumerate(ends) if end < low), len(ends))
        ends[lane : lane + 1] = [high]
        rows[-1].append(_Span(low, high, box, lane, 0, len(rows)))
    return [
        _Span(one.low, one.high, one.box, one.lane, 1 + max(other.lane for other in row), one.row)
        for row in rows
        for one in row
    ]


def _y(unit: int, scale: Scale) -> float:
    """The upper edge of a unit; unit 1 is at the bottom."""
    return _PAD + (scale.first + scale.units - 1 - unit) * scale.unit


def _place(span: _Span, y: float, height: float, scale: Scale) -> Place:
    box, width = span.box, scale.inner / span.lanes
    side, letter = (12, _SMALL_NAME) if scale.small else (26, _NAME)
    height -= _GAP
    fits = max(int((width - side) / letter), 0)
    ends = 24 + len(box.name) * _NAME + len(box.tag) * _TAG + 9
    tag = box.tag if not scale.small and ends <= width else ""
    lines = 0 if scale.small else int((height + 4) / _LINE)
    room = int((width - 16) / _TEXT)
    why = box.lines[0] if box.anchor and box.lines else ""
    return Place(
        box,
        round(scale.gutter + _PAD + span.lane * width, 1),
        round(y + _GAP / 2, 1),
        round(width - (_GAP if span.lanes > 1 else 0), 1),
        round(height, 1),
        name=_middle_cut(box.name, max(fits, len(box.name) if tag else 0)) if fits >= 3 else "",
        tag=tag,
        detail=_end_cut(box.detail, room) if lines >= 2 else "",
        more=_end_cut(why, room) if lines >= 3 and room >= 24 else "",
    )


def _middle_cut(text: str, letters: int) -> str:
    """Names of neighbours differ at their end, so the middle goes."""
    if len(text) <= letters:
        return text
    tail = max(letters - 1, 1) * 2 // 3
    return f"{text[: max(letters - 1 - tail, 0)]}…{text[-tail:] if tail else ''}"


def _end_cut(text: str, letters: int) -> str:
    return text if len(text) <= letters else f"{text[: letters - 1].rstrip()}…"

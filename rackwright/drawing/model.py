"""What can be drawn. All texts are plain: they are escaped when they are drawn."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum


class Look(StrEnum):
    """How something looks: a colour and, for those who do not see it, a glyph."""

    GONE = "gone"
    """Inverse, arrow down."""
    FAILING = "failing"
    """Vermilion, cross."""
    PAUSED = "paused"
    """Orange, two bars."""
    UNKNOWN = "unknown"
    """Purple and hatched, question mark."""
    WARNING = "warning"
    """Yellow, exclamation mark."""
    BUSY = "busy"
    """Blue, triangle to the right."""
    GOOD = "good"
    """Green, check mark."""
    OUTSIDE = "outside"
    """Grey, ring."""
    NEUTRAL = "neutral"
    """Grey, no glyph: nothing is claimed."""


@dataclass(frozen=True)
class Mark:
    """A line of the legend."""

    look: Look
    label: str
    meaning: str
    count: int


@dataclass(frozen=True)
class Box:
    """One thing in a rack."""

    name: str
    look: Look
    state: str
    """The word for the look, e.g. `drained`; empty: none."""
    detail: str = ""
    """A second line where it fits, e.g. `dgx-h100, 10.2 kW`."""
    tag: str = ""
    """A short word of emphasis, e.g. `head`."""
    unit: int | None = None
    """The lowest rack unit it takes, counted from 1; None: not known."""
    height: int = 1
    """Rack units."""
    lines: tuple[str, ...] = ()
    """What hovering shows below its name."""
    anchor: str = ""
    """Id of the element of the page with more about it; empty: none."""


@dataclass(frozen=True)
class Rack:
    """Boxes by rack unit; those without one are stacked on top."""

    name: str
    boxes: tuple[Box, ...]
    note: str = ""
    """Below the name, e.g. `4 nodes, 40.8 kW`."""
    brief: str = ""
    """The same where there is little room, e.g. `40.8 kW`."""


@dataclass(frozen=True)
class Room:
    """Racks under one title; empty title: none is needed."""

    title: str
    racks: tuple[Rack, ...]


@dataclass(frozen=True)
class Switch:
    """A switch with what is written in it; `lines` shows on hovering."""

    name: str
    detail: str
    number: int
    """Its cables."""
    lines: tuple[str, ...] = ()


@dataclass(frozen=True)
class Row:
    """Switches of one kind, e.g. of one rail."""

    label: str
    switches: tuple[Switch, ...]


@dataclass(frozen=True)
class Net:
    """Switches of two levels and the number of cables between each pair."""

    title: str
    note: str
    spines: Row
    leaves: tuple[Row, ...]
    links: dict[tuple[str, str], int]
    """(leaf, spine) -> cables."""


@dataclass(frozen=True)
class Trouble:
    """What is wrong with some boxes, alike."""

    anchor: str
    look: Look
    state: str
    names: str
    """Folded, e.g. `gpu[1-3]`."""
    count: int
    reasons: tuple[tuple[str, str], ...]
    """Where it comes from, and a line of text."""


@dataclass(frozen=True)
class Picture:
    """A whole page."""

    title: str
    subtitle: str
    claim: str
    """What the colours claim, and when it was found out."""
    notes: tuple[str, ...]
    marks: tuple[Mark, ...]
    rooms: tuple[Room, ...]
    nets: tuple[Net, ...]
    troubles: tuple[Trouble, ...]
    others: tuple[tuple[Look, str], ...]
    """Further things that are wrong, of no box."""
    footer: tuple[str, ...]

    @property
    def boxes(self) -> Iterable[Box]:
        """Every box of the page."""
        return (box for room in self.rooms for rack in room.racks for box in rack.boxes)

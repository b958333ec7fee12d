"""Where switches and the cables between them are drawn. Pure arithmetic; pixels, y downwards."""

from __future__ import annotations

from dataclasses import dataclass

from rackwright.drawing.model import Net, Row, Switch

DRAWN_TO = 10
"""With more leaves or spines than that, a net is a table of small squares: lines would be a carpet."""
CARD_WIDTH, CARD_HEIGHT = 112, 46
_GAP, _BETWEEN, _PAD = 14, 96, 4


@dataclass(frozen=True)
class Card:
    """A switch with its upper left corner."""

    switch: Switch
    x: float
    y: float


@dataclass(frozen=True)
class Line:
    """Cables between two switches: a curve, its width, and what hovering shows."""

    path: str
    width: float
    text: str


@dataclass(frozen=True)
class Diagram:
    """Everything the template needs to draw."""

    width: float
    height: float
    cards: tuple[Card, ...]
    lines: tuple[Line, ...]
    caption: str


def diagram(net: Net) -> Diagram | None:
    """None where there are too many switches for lines, or no spine."""
    leaves = [switch for row in net.leaves for switch in row.switches]
    spines = net.spines.switches
    if not spines or not leaves or max(len(leaves), len(spines)) > DRAWN_TO:
        return None
    columns = max(len(leaves), len(spines))
    width = columns * (CARD_WIDTH + _GAP) - _GAP + 2 * _PAD
    above = _row(spines, width, _PAD)
    below = _row(leaves, width, _PAD + CARD_HEIGHT + _BETWEEN)
    at = {card.switch.name: card for card in (*above, *below)}
    most = max(net.links.values(), default=1)
    lines = tuple(
        Line(
            _curve(at[spine], at[leaf]),
            round(1 + 2 * cables / most, 2),
            f"{leaf} to {spine}: {_cables(cables)}",
        )
        for (leaf, spine), cables in net.links.items()
        if leaf in at and spine in at
    )
    return Diagram(width, 2 * CARD_HEIGHT + _BETWEEN + 2 * _PAD, (*above, *below), lines, caption(net))


def caption(net: Net) -> str:
    """How many cables there are between a leaf and a spine."""
    numbers = sorted(set(net.links.values()))
    if not numbers:
        return "No cable between leaves and spines is declared."
    between = f"{numbers[0]}" if len(numbers) == 1 else f"{numbers[0]} to {numbers[-1]}"
    pairs = len(net.links)
    word = "cable" if numbers == [1] else "cables"
    return f"{sum(net.links.values())} uplinks: {between} {word} from leaf to spine, {pairs} pairs."


def rows(net: Net) -> tuple[Row, ...]:
    """Spines, then leaves, for the table."""
    return tuple(row for row in (net.spines, *net.leaves) if row.switches)


def _row(switches: tuple[Switch, ...] | list[Switch], width: float, y: float) -> list[Card]:
    step = width / len(switches)
    return [Card(one, round((n + 0.5) * step - CARD_WIDTH / 2, 1), y) for n, one in enumerate(switches)]


def _curve(spine: Card, leaf: Card) -> str:
    x1, y1 = spine.x + CARD_WIDTH / 2, spine.y + CARD_HEIGHT
    x2, y2 = leaf.x + CARD_WIDTH / 2, leaf.y
    middle = (y1 + y2) / 2
    return f"M{x1:.1f} {y1:.1f}C{x1:.1f} {middle:.1f} {x2:.1f} {middle:.1f} {x2:.1f} {y2:.1f}"


def _cables(number: int) -> str:
    return f"{number} cable{'' if number == 1 else 's'}"

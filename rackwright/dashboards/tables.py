"""Tables: a row for each set of labels, a column for each expression."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from rackwright.dashboards.collect import Drawn, natural
from rackwright.dashboards.numbers import shown
from rackwright.prometheus.query import Series

ROWS = 200
_ORDERED = ("sort(", "sort_desc(", "topk(", "bottomk(")
Address = Callable[[str, str], str | None]


@dataclass(frozen=True)
class Column:
    """Head of a column."""

    title: str
    number: bool


@dataclass(frozen=True)
class Cell:
    """A label or a number."""

    text: str
    number: bool = False
    colour: str | None = None
    address: str | None = None


@dataclass(frozen=True)
class Table:
    """What is shown, and what was left out."""

    columns: tuple[Column, ...]
    cells: tuple[tuple[Cell, ...], ...]
    note: str


def table_of(drawn: Drawn, address: Address) -> Table:
    """`address`: the page for a label and its value, where there is one."""
    panel = drawn.panel
    columns = (
        *(Column(name, number=False) for name in panel.columns),
        *(Column(one.legend, number=True) for one in panel.expressions),
    )
    keys = _keys(drawn)
    values = [{_key(drawn, one): one.last for one in series} for series in drawn.series]
    cells = tuple(
        (*_labels(drawn, key, address), *_values(drawn, [found.get(key) for found in values]))
        for key in keys[:ROWS]
    )
    return Table(columns, cells, f"{ROWS} of {len(keys)} rows" if keys[ROWS:] else "")


def _key(drawn: Drawn, series: Series) -> tuple[str, ...]:
    return tuple(series.labels.get(name, "") for name in drawn.panel.columns)


def _keys(drawn: Drawn) -> list[tuple[str, ...]]:
    """In the order of the first expression where that has one, else by their labels."""
    keys = list(dict.fromkeys(_key(drawn, one) for series in drawn.series for one in series))
    if drawn.panel.expressions[0].text.startswith(_ORDERED):
        return keys
    return sorted(keys, key=lambda key: [natural(part) for part in key])


def _labels(drawn: Drawn, key: tuple[str, ...], address: Address) -> list[Cell]:
    return [
        Cell(value, address=address(name, value) if name in drawn.panel.leads_to else None)
        for name, value in zip(drawn.panel.columns, key, strict=True)
    ]


def _values(drawn: Drawn, values: list[float | None]) -> list[Cell]:
    panel, cells = drawn.panel, []
    for place, (expression, value) in enumerate(zip(panel.expressions, values, strict=True)):
        if value is None:
            cells.append(Cell("", number=True))
            continue
        judged = place == 0 and panel.thresholds is not None and not math.isnan(value)
        colour = str(panel.thresholds.colour(value)) if judged and panel.thresholds is not None else None
        cells.append(Cell(shown(expression.unit or panel.unit, value), number=True, colour=colour))
    return cells

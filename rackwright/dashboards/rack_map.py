"""The map of racks or leaves: a cell for each declared node, also for one without a figure."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import plotly.graph_objects as go

from rackwright.dashboards.charts import HEAT, Chart, Line, figure_of, steps, text
from rackwright.dashboards.collect import Drawn, natural
from rackwright.dashboards.model import Colour, Panel
from rackwright.dashboards.numbers import scale, shown
from rackwright.model.cluster import Cluster, Node

NO_PLACE = "not declared"
LEAST_COLUMNS = 3
"""A single rack is not drawn as wide as the panel."""
NAMED_CELLS = 120
"""With more cells than that, the names of nodes show on hovering alone."""


@dataclass(frozen=True)
class _Cell:
    node: str
    column: str
    row: int
    value: float | None
    """None: no figure."""


def rack_map(drawn: Drawn, cluster: Cluster, address: Callable[[str], str | None]) -> Chart:
    """`address`: the page of a node, where there is one."""
    panel = drawn.panel
    values = {
        one.labels["node"]: one.last
        for series in drawn.series
        for one in series
        if "node" in one.labels and not math.isnan(one.last)
    }
    cells = _cells(cluster, values, panel.by)
    columns = sorted({cell.column for cell in cells}, key=natural)
    rows = sorted({cell.row for cell in cells})
    known = [cell for cell in cells if cell.value is not None]
    traces = [_known(panel, known, columns, rows, address), _unknown(cells, columns, rows, address)]
    figure = figure_of(
        *(trace for trace in traces if trace is not None),
        xaxis={
            "type": "category",
            "categoryarray": columns,
            "categoryorder": "array",
            "showgrid": False,
            "range": [-0.5, max(len(columns), LEAST_COLUMNS) - 0.5],
        },
        yaxis={
            "type": "category",
            "categoryarray": [str(row) for row in rows],
            "categoryorder": "array",
            "showgrid": False,
            "automargin": True,
            "title": {"text": "position" if panel.by == "rack" else ""},
            "showticklabels": panel.by == "rack",
        },
    )
    silent = len(cells) - len(known)
    note = f"{silent} of {len(cells)} nodes without a figure (grey)" if silent else ""
    return Chart(figure, _legend(panel, drawn), note)


def _cells(cluster: Cluster, values: dict[str, float], by: str) -> list[_Cell]:
    """By rack, at the declared position; by leaf, one above the other. Nodes without a position follow on top."""
    used: dict[str, int] = {}
    cells = []
    for node in sorted(
        cluster.nodes, key=lambda node: (node.position is None, node.position or 0, natural(node.name))
    ):
        column = _column(node, by)
        row = node.position if by == "rack" and node.position is not None else used.get(column, 0) + 1
        used[column] = max(used.get(column, 0), row)
        cells.append(_Cell(node.name, column, row, values.get(node.name)))
    return cells


def _column(node: Node, by: str) -> str:
    return (node.rack if by == "rack" else node.switch) or NO_PLACE


def _legend(panel: Panel, drawn: Drawn) -> tuple[Line, ...]:
    seen = {one.last for series in drawn.series for one in series}
    return tuple(
        Line(name, str(colour), (), {}, "")
        for value, (name, colour) in sorted(panel.states.items())
        if value in seen
    )


def _known(
    panel: Panel,
    cells: list[_Cell],
    columns: list[str],
    rows: list[int],
    address: Callable[[str], str | None],
) -> go.Heatmap:
    values = [cell.value for cell in cells if cell.value is not None]
    by = scale(panel.unit, max((abs(value) for value in values), default=0.0))
    more: dict[str, Any]
    if panel.states:
        known = sorted(panel.states)
        more = {
            "colorscale": steps([panel.states[value][1] for value in known]),
            "zmin": -0.5,
            "zmax": len(known) - 0.5,
            "showscale": False,
        }

        def number(value: float) -> float | None:
            return known.index(value) if value in known else None
    else:
        more = {
            "colorscale": HEAT,
            "zmin": None if panel.low is None else panel.low / by.divisor,
            "zmax": None if panel.high is None else panel.high / by.divisor,
            "colorbar": {"ticksuffix": by.suffix, "thickness": 10, "outlinewidth": 0},
        }

        def number(value: float) -> float | None:
            return value / by.divisor if math.isfinite(value) else None

    def level(cell: _Cell) -> float | None:
        return None if cell.value is None else number(cell.value)

    return _heatmap(cells, columns, rows, address, level, lambda cell: _said(panel, cell), **more)


def _unknown(
    cells: list[_Cell], columns: list[str], rows: list[int], address: Callable[[str], str | None]
) -> go.Heatmap | None:
    silent = [cell for cell in cells if cell.value is None]
    if not silent:
        return None
    grey = [(0.0, str(Colour.OFF)), (1.0, str(Colour.OFF))]
    return _heatmap(
        silent,
        columns,
        rows,
        address,
        lambda cell: 0,
        lambda cell: "no data",
        colorscale=grey,
        showscale=False,
        opacity=0.45,
    )


def _said(panel: Panel, cell: _Cell) -> str:
    if cell.value is None:
        return "no data"
    return panel.states[cell.value][0] if cell.value in panel.states else shown(panel.unit, cell.value)


def _heatmap(
    cells: list[_Cell],
    columns: list[str],
    rows: list[int],
    address: Callable[[str], str | None],
    number: Callable[[_Cell], float | None],
    said: Callable[[_Cell], str],
    **more: Any,  # noqa: ANN401 - plotly's
) -> go.Heatmap:
    """One of the two layers: every cell of the grid that is not in it stays empty."""
    places = {(cell.row, cell.column): cell for cell in cells}
    grid = [[places.get((row, column)) for column in columns] for row in rows]
    named = len(columns) * len(rows) <= NAMED_CELLS
    return go.Heatmap(
        x=[text(column) for column in columns],
        y=[str(row) for row in rows],
        z=[[None if cell is None else number(cell) for cell in line] for line in grid],
        text=[["" if cell is None else text(cell.node) for cell in line] for line in grid],
        texttemplate="%{text}" if named else None,
        customdata=[
            [["", ""] if cell is None else [text(said(cell)), address(cell.node) or ""] for cell in line]
            for line in grid
        ],
        hovertemplate="%{text}: %{customdata[0]}<extra></extra>",
        hoverongaps=False,
        xgap=3,
        ygap=3,
        **more,
    )

"""Charts of panels as plotly draws them. Colours of text and grid are the page's, which knows light from dark."""

from __future__ import annotations

import html
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import plotly.graph_objects as go

from rackwright.dashboards.collect import Drawn, natural
from rackwright.dashboards.model import Colour, Kind, Panel
from rackwright.dashboards.numbers import Scale, rounded, scale, shown
from rackwright.prometheus.query import Series

SERIES = 40
"""Lines of a chart, and bars: the highest."""
ROWS = 400
"""Of a heat map or timeline."""
PALETTE = (
    "#3574c4", "#e2711d", "#2f9e62", "#8b62c9", "#d9a21b", "#2a9d9d", "#d1477f", "#7a8f2a", "#5b6fd6", "#a3632a",
    "#4aa3df", "#c0504d", "#6abf69", "#b08bdc", "#e0b84c", "#5fc0bf", "#e58bb0", "#a9bd55", "#94a2ea", "#cc9360",
)  # fmt: skip
HEAT = ((0.0, "#1d4f91"), (0.35, "#3fa7a0"), (0.6, "#f2d15c"), (0.8, "#e2711d"), (1.0, "#b3202c"))
"""From cold to hot; readable with every kind of colour vision, as lightness and hue both change."""
_LEGEND = re.compile(r"\{\{(\w+)\}\}")


@dataclass(frozen=True)
class Line:
    """One series as it is shown."""

    name: str
    colour: str
    points: tuple[tuple[float, float], ...]
    labels: Mapping[str, str]
    last: str


@dataclass(frozen=True)
class Chart:
    """A figure, what its colours mean, and what was left out of it."""

    figure: go.Figure
    lines: tuple[Line, ...] = ()
    note: str = ""


def name_of(legend: str, labels: Mapping[str, str]) -> str:
    """The name of a series."""
    return _LEGEND.sub(lambda found: labels.get(found[1], ""), legend).strip() or "value"


def lines_of(drawn: Drawn) -> list[Line]:
    """All series of a panel with a number, in the order of their expressions, then naturally by name."""
    panel, found = drawn.panel, []
    for expression, series in zip(panel.expressions, drawn.series, strict=True):
        named = [(name_of(expression.legend, one.labels), one) for one in series]
        found += sorted(named, key=lambda pair: natural(pair[0]))
    end = max((at for _, one in found for at, _ in one.points), default=0.0)
    free = [name for name, _ in found if name not in panel.colours]
    colours = {name: PALETTE[place % len(PALETTE)] for place, name in enumerate(dict.fromkeys(free))}
    return [
        Line(name, panel.colours.get(name) or colours[name], one.points, one.labels, _last(panel, one, end))
        for name, one in found
        if any(not math.isnan(value) for _, value in one.points)
    ]


def chart_of(drawn: Drawn, step: float, span: tuple[float, float] | None) -> Chart:
    """The chart of a panel over time, or of its bars; `span`: begin and end of what is shown."""
    lines = lines_of(drawn)
    if drawn.panel.stacked:  # a band of no height only takes room in the legend
        lines = [line for line in lines if any(value for _, value in line.points)] or lines
    draw = {Kind.TIME: _time, Kind.HEAT: _heat, Kind.STATES: _states, Kind.BARS: _bars}[drawn.panel.kind]
    chart = draw(drawn.panel, lines, step)
    if drawn.panel.kind.over_time and span is not None:
        chart.figure.update_xaxes(range=[_when(at) for at in span])
    return chart


def text(value: str) -> str:
    """A name as plotly shows it: it reads some HTML in every text."""
    return html.escape(value, quote=False)


def _last(panel: Panel, series: Series, end: float) -> str:
    """The newest value; None if the series ended before the others."""
    if series.points and series.points[-1][0] < end:
        return ""
    if series.last in panel.states:
        return panel.states[series.last][0]
    return shown(panel.unit, series.last)


def _scale(panel: Panel, lines: Iterable[Line]) -> Scale:
    sizes = [abs(value) for line in lines for _, value in line.points if math.isfinite(value)]
    return scale(panel.unit, max(sizes, default=0.0))


def _highest(lines: Sequence[Line], most: int, what: str) -> tuple[list[Line], str]:
    """The highest `most` of them, in order, with a note if any are left out."""
    if len(lines) <= most:
        return list(lines), ""
    peaks = sorted(
        lines, key=lambda line: max((abs(v) for _, v in line.points if not math.isnan(v)), default=0.0)
    )
    kept = {id(line) for line in peaks[-most:]}
    return [line for line in lines if id(line) in kept], f"{most} of {len(lines)} {what}: the highest"


def _when(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S")


def figure_of(*traces: Any, **layout: Any) -> go.Figure:  # noqa: ANN401 - plotly's
    """A figure without plotly's own look and legend."""
    base = {
        "margin": {"l": 8, "r": 8, "t": 8, "b": 40},
        "showlegend": False,
        "hovermode": "closest",
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "template": go.layout.Template(),
    }
    return go.Figure(data=traces, layout={**base, **layout})


def _time(panel: Panel, lines: Sequence[Line], step: float) -> Chart:
    kept, note = _highest(lines, SERIES, "series")
    by = _scale(panel, kept)
    at, rows = _grid(kept, step)
    traces = [_trace(panel, line, row, at, by) for line, row in zip(kept, rows, strict=True)]
    axis: dict[str, Any] = {"ticksuffix": by.suffix, "automargin": True, "rangemode": "normal"}
    if panel.low is not None and panel.high is not None:
        axis["range"] = [panel.low / by.divisor, panel.high / by.divisor * 1.02]
    elif panel.low is not None or panel.stacked:
        axis["rangemode"] = "tozero"
    margin = {"l": 56, "r": 12, "t": 8, "b": 40}
    figure = figure_of(*traces, yaxis=axis, xaxis={"type": "date"}, margin=margin, hovermode="x unified")
    if panel.thresholds is not None:
        top = max(
            (value / by.divisor for line in kept for _, value in line.points if math.isfinite(value)),
            default=0,
        )
        for value, colour in panel.thresholds.steps:
            if value / by.divisor <= top * 1.5:  # one far above all values would flatten them
                figure.add_hline(
                    y=value / by.divisor, line={"color": str(colour), "width": 1, "dash": "dash"}
                )
    return Chart(figure, tuple(kept), note)


def _trace(
    panel: Panel, line: Line, values: Sequence[float | None], at: Mapping[str, Any], by: Scale
) -> go.Scatter:
    few = sum(value is not None for value in values) < 4
    marked = few and not panel.stacked  # plotly would mark each gap of a band
    return go.Scatter(
        **at,
        y=[_short(value, by) for value in values],
        name=text(line.name),
        mode="lines+markers" if marked else "lines",
        line={"width": 0.5 if panel.stacked else 1.5, "color": line.colour},
        **({"stackgroup": "one"} if panel.stacked else {}),
        hovertemplate=f"%{{y:.3~g}}{by.suffix}",
    )


def _short(value: float | None, by: Scale) -> float | None:
    """A value rounded to what a chart can show: pages of a large cluster contain millions of numbers."""
    return None if value is None else float(f"{value / by.divisor:.4g}")


def _grid(lines: Sequence[Line], step: float) -> tuple[dict[str, Any], list[list[float | None]]]:
    """plotly's `x0` and `dx` of the points of all lines, and each line's values at them; None in a gap."""
    ends = [at for line in lines for at, _ in line.points]
    first, last = min(ends, default=0.0), max(ends, default=0.0)
    count = round((last - first) / step) + 1
    rows: list[list[float | None]] = []
    for line in lines:
        row: list[float | None] = [None] * count
        for at, value in line.points:
            row[round((at - first) / step)] = value if math.isfinite(value) else None
        rows.append(row)
    return {"x0": _when(first), "dx": step * 1000}, rows


def _heat(panel: Panel, lines: Sequence[Line], step: float) -> Chart:
    kept, note = _highest(lines, ROWS, "rows")
    by = _scale(panel, kept)
    at, rows = _grid(kept, step)
    trace = go.Heatmap(
        **at,
        y=[text(line.name) for line in kept],
        z=[[_short(value, by) for value in row] for row in rows],
        colorscale=HEAT,
        zmin=None if panel.low is None else panel.low / by.divisor,
        zmax=None if panel.high is None else panel.high / by.divisor,
        colorbar={"ticksuffix": by.suffix, "thickness": 10, "outlinewidth": 0},
        hovertemplate=f"%{{y}}, %{{x}}: %{{z:.3~g}}{by.suffix}<extra></extra>",
        ygap=1,
    )
    return Chart(_rows_figure(trace), note=note)


def _rows_figure(trace: go.Heatmap) -> go.Figure:
    return figure_of(
        trace,
        xaxis={"type": "date"},
        yaxis={"type": "category", "autorange": "reversed", "automargin": True},
    )


def _states(panel: Panel, lines: Sequence[Line], step: float) -> Chart:
    kept, note = _highest(lines, ROWS, "rows")
    at, rows = _grid(kept, step)
    known = sorted(panel.states)
    names: dict[float | None, str] = {value: name for value, (name, _) in panel.states.items()}
    levels: dict[float | None, int] = {value: level for level, value in enumerate(known)}
    trace = go.Heatmap(
        **at,
        y=[text(line.name) for line in kept],
        z=[[levels.get(value) for value in row] for row in rows],
        customdata=[[names.get(value, "") for value in row] for row in rows],
        colorscale=steps([panel.states[value][1] for value in known]),
        zmin=-0.5,
        zmax=len(known) - 0.5,
        showscale=False,
        hovertemplate="%{y}, %{x}: %{customdata}<extra></extra>",
        ygap=2,
    )
    legend = tuple(Line(name, str(colour), (), {}, "") for _, (name, colour) in sorted(panel.states.items()))
    return Chart(_rows_figure(trace), legend, note)


def steps(colours: Sequence[Colour]) -> list[tuple[float, str]]:
    """A scale of colours without anything between them."""
    count = len(colours)
    return [
        (place / count, str(colour))
        for number, colour in enumerate(colours)
        for place in (number, number + 1)
    ]


def _bars(panel: Panel, lines: Sequence[Line], step: float) -> Chart:
    finite = [line for line in lines if math.isfinite(line.points[-1][1])]
    kept, note = _highest(finite, SERIES, "bars")
    kept = sorted(kept, key=lambda line: line.points[-1][1])
    by = _scale(panel, kept)
    values = [line.points[-1][1] / by.divisor for line in kept]
    colours = [
        line.colour if panel.thresholds is None else str(panel.thresholds.colour(line.points[-1][1]))
        for line in kept
    ]
    trace = go.Bar(
        x=values,
        y=[text(line.name) for line in kept],
        orientation="h",
        marker={"color": colours if panel.thresholds is not None else PALETTE[0]},
        text=[f"{rounded(value)}{by.suffix}" for value in values],
        textposition="auto",
        hovertemplate="%{y}: %{text}<extra></extra>",
    )
    ends = None if panel.high is None else [(panel.low or 0) / by.divisor, panel.high / by.divisor]
    figure = figure_of(
        trace,
        xaxis={"ticksuffix": by.suffix, "range": ends},
        yaxis={"type": "category", "automargin": True},
        bargap=max(0.25, 1 - len(kept) / 8),  # a single bar is not too wide
    )
    return Chart(figure, note=note)

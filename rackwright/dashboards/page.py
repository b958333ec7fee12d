"""Pages of HTML that work without a server, a network and Grafana."""

from __future__ import annotations

import html
import json
import math
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from plotly.offline import get_plotlyjs

from rackwright.atomic_write import write_atomically
from rackwright.dashboards.charts import Chart, chart_of, name_of
from rackwright.dashboards.collect import Drawn, Page, State
from rackwright.dashboards.model import Kind, Panel
from rackwright.dashboards.numbers import shown
from rackwright.dashboards.rack_map import rack_map
from rackwright.dashboards.tables import table_of
from rackwright.errors import RackwrightError
from rackwright.model.cluster import Cluster
from rackwright.prometheus.query import Series
from rackwright.render import render

NUMBERS = 8
"""Series of a panel that shows numbers."""
_PIXELS = 30
_ASSETS = ("dashboards.css", "theme.js", "charts.js")
_SCRIPT_SAFE = str.maketrans(
    {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}
)


@dataclass(frozen=True)
class Site:
    """All pages of one rendering, so that they can lead to each other."""

    cluster: Cluster
    pages: Sequence[Page]
    made: datetime

    def address(self, label: str, value: str) -> str | None:
        """The page of a node or job, where there is one."""
        found = (page for page in self.pages if page.dashboard.name == label and page.value == value)
        return next((f"{page.name}.html" for page in found), None)

    def first(self, dashboard: str) -> str:
        """Where a dashboard begins."""
        return next(f"{page.name}.html" for page in self.pages if page.dashboard.name == dashboard)


def write(site: Site, folder: Path) -> Path:
    """Write all pages, what they load, and an index, whose path is returned; RackwrightError where that fails."""
    index = folder / "index.html"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for page in site.pages:
            write_atomically(folder / f"{page.name}.html", page_html(site, page), mode=0o644, durable=False)
        for name in _ASSETS:
            write_atomically(folder / name, render(f"dashboards/{name}.j2"), mode=0o644, durable=False)
        write_atomically(folder / "plotly.min.js", get_plotlyjs(), mode=0o644, durable=False)
        write_atomically(index, index_html(site), mode=0o644, durable=False)
    except OSError as error:
        raise RackwrightError(f"The pages cannot be written to {folder}: {error.strerror}.") from error
    return index


def index_html(site: Site) -> str:
    """The page that leads to the others."""
    pages: dict[str, list[Page]] = defaultdict(list)
    for page in site.pages:
        pages[page.dashboard.name].append(page)
    cards = [
        {
            "title": some[0].dashboard.title,
            "about": some[0].dashboard.about,
            "address": f"{some[0].name}.html",
            "pages": _links(some, None),
            "found": _found(some),
        }
        for some in pages.values()
    ]
    return render("dashboards/index.html.j2", cluster=site.cluster.name, made=_when(site.made), cards=cards)


def page_html(site: Site, page: Page) -> str:
    """One page, whole."""
    title = page.dashboard.title if page.value is None else f"{page.dashboard.title} {page.value}"
    siblings = [one for one in site.pages if one.dashboard.name == page.dashboard.name]
    return render(
        "dashboards/page.html.j2",
        cluster=site.cluster.name,
        title=title,
        about=page.dashboard.about,
        span=_span(page.span_seconds),
        made=_when(site.made),
        others=page.others,
        menu=_menu(site, page),
        siblings=_links(siblings, page),
        nothing=_nothing(page),
        rows=[
            {"title": name, "panels": [_panel(site, page, drawn) for drawn in row]} for name, row in page.rows
        ],
        left_out=_left_out(page.left_out),
    )


def _menu(site: Site, page: Page) -> list[dict[str, Any]]:
    names = dict.fromkeys(one.dashboard.name for one in site.pages)
    titles = {one.dashboard.name: one.dashboard.title for one in site.pages}
    return [
        {"title": titles[name], "address": site.first(name), "here": name == page.dashboard.name}
        for name in names
    ]


def _links(pages: Sequence[Page], here: Page | None) -> list[dict[str, Any]]:
    return [
        {"title": page.value, "address": f"{page.name}.html", "here": page is here}
        for page in pages
        if page.value is not None
    ]


def _nothing(page: Page) -> str | None:
    """Why there is nothing on the page at all."""
    if page.rows:
        return None
    subject = page.dashboard.subject
    if page.value is None and subject is not None and len(page.left_out) < len(tuple(page.dashboard.panels)):
        return f"There was no {subject.title.lower()} in the last {_span(page.span_seconds)}."
    return "This cluster has nothing of what this dashboard shows."


def _found(pages: Sequence[Page]) -> str:
    counts = {state: sum(page.count(state) for page in pages) for state in State}
    data = counts[State.DATA]
    words = [f"{data} panel{'' if data == 1 else 's'} with data"]
    words += [f"{counts[State.NOTHING]} with nothing to show"] if counts[State.NOTHING] else []
    bad = counts[State.NO_DATA] + counts[State.ERROR]
    words += [f"{bad} without data"] if bad else []
    words += [f"{len(pages[0].left_out)} not on this cluster"] if pages[0].left_out else []
    return ", ".join(words)


def _panel(site: Site, page: Page, drawn: Drawn) -> dict[str, Any]:
    panel = drawn.panel
    body, note = _body(site, page, drawn)
    return {
        "id": panel.name,
        "kind": panel.kind.value.replace(" ", "-"),
        "state": drawn.state.value.replace(" ", "-"),
        "width": panel.width,
        "height": (panel.height - 2) * _PIXELS,
        "title": panel.title,
        "description": _marked(panel.description),
        "body": body,
        "note": "; ".join(part for part in (note, drawn.reason if drawn.state is State.DATA else "") if part),
    }


def _marked(description: str) -> str:
    """HTML of a description, whose words between backticks are code."""
    return re.sub(r"`([^`]*)`", r"<code>\1</code>", html.escape(description, quote=False))


def _body(site: Site, page: Page, drawn: Drawn) -> tuple[str, str]:
    """HTML of what is drawn, and a note below it."""
    panel = drawn.panel
    if drawn.state is not State.DATA:
        reason = f"No answer: {drawn.reason}" if drawn.state is State.ERROR else drawn.reason
        return render("dashboards/_none.html.j2", reason=reason), ""
    if panel.kind is Kind.STAT:
        return _numbers(drawn)
    if panel.kind is Kind.TABLE:
        found = table_of(drawn, site.address)
        return render("dashboards/_table.html.j2", columns=found.columns, cells=found.cells), found.note
    if panel.kind is Kind.RACKS:
        chart = rack_map(drawn, site.cluster, lambda node: site.address("node", node))
    else:
        span = None if page.end is None else (page.end - page.span_seconds, page.end)
        chart = chart_of(drawn, page.step_seconds, span)
    return _chart(site, panel, chart), chart.note


def _numbers(drawn: Drawn) -> tuple[str, str]:
    panel = drawn.panel
    named = [
        (name_of(expression.legend, one.labels), one)
        for expression, series in zip(panel.expressions, drawn.series, strict=True)
        for one in series
        if not math.isnan(one.last)
    ]
    numbers = [
        {
            "name": name if len(panel.expressions) > 1 or len(named) > 1 else "",
            "text": _state_of(panel, one) or shown(panel.unit, one.last),
            "colour": _colour_of(panel, name, one),
        }
        for name, one in named
    ]
    note = f"{NUMBERS} of {len(numbers)} series" if numbers[NUMBERS:] else ""
    return render("dashboards/_numbers.html.j2", numbers=numbers[:NUMBERS]), note


def _state_of(panel: Panel, series: Series) -> str | None:
    return panel.states[series.last][0] if series.last in panel.states else None


def _colour_of(panel: Panel, name: str, series: Series) -> str | None:
    if series.last in panel.states:
        return str(panel.states[series.last][1])
    if panel.thresholds is not None:
        return str(panel.thresholds.colour(series.last))
    return str(panel.colours[name]) if name in panel.colours else None


def _chart(site: Site, panel: Panel, chart: Chart) -> str:
    figure = json.dumps(chart.figure.to_plotly_json(), allow_nan=False, separators=(",", ":"))
    lines = [
        {
            "name": line.name,
            "colour": line.colour,
            "last": line.last,
            "toggles": bool(line.points),
            "address": next(
                (
                    found
                    for label in panel.leads_to
                    if (found := site.address(label, line.labels.get(label, "")))
                ),
                None,
            ),
        }
        for line in chart.lines
    ]
    return render(
        "dashboards/_chart.html.j2", label=panel.title, figure=figure.translate(_SCRIPT_SAFE), lines=lines
    )


def _left_out(reasons: Mapping[str, str]) -> list[tuple[str, str]]:
    """Titles of panels by their common reason, which is HTML."""
    titles: dict[str, list[str]] = defaultdict(list)
    for title, reason in reasons.items():
        titles[reason].append(title)
    return [(_marked(reason), ", ".join(some)) for reason, some in titles.items()]


def _when(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%d %H:%M UTC")


def _span(seconds: int) -> str:
    for size, name in ((86400, "days"), (3600, "hours"), (60, "minutes")):
        if seconds % size == 0 and seconds >= size:
            count = seconds // size
            return f"{count} {name}" if count != 1 else name.removesuffix("s")
    return f"{seconds} seconds"

"""Generates the documentation of the dashboards from their model.

python -m rackwright.dashboards.markdown docs/dashboards
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from rackwright.dashboards.catalogue import DASHBOARDS
from rackwright.dashboards.model import Colour, Dashboard, Kind, Panel, Unit
from rackwright.dashboards.numbers import shown
from rackwright.dashboards.sources import comes_with

_WORDS = {
    Unit.NUMBER: "count",
    Unit.RATIO: "per cent",
    Unit.PERCENT: "per cent",
    Unit.BYTES: "bytes",
    Unit.BYTES_PER_SECOND: "bytes/s",
    Unit.GIGABYTES_PER_SECOND: "GB/s",
    Unit.WATTS: "W",
    Unit.KILOWATT_HOURS: "kWh",
    Unit.GRAMS: "g",
    Unit.CELSIUS: "°C",
    Unit.SECONDS: "time",
    Unit.PER_SECOND: "per second",
    Unit.MEGAHERTZ: "MHz",
    Unit.ROTATIONS_PER_MINUTE: "rpm",
    Unit.STATE: "state",
}


def table() -> str:
    """All dashboards, each with the questions that it answers."""
    lines = ["| dashboard | for |", "|---|---|"]
    lines += [f"| [{one.title}](dashboards/{one.name}.md) | {one.about} |" for one in DASHBOARDS]
    return "\n".join(lines) + "\n"


def page(dashboard: Dashboard) -> str:
    """The page of one dashboard."""
    return "\n".join(_lines(dashboard)) + "\n"


def pages() -> dict[str, str]:
    """Text by name of the file."""
    return {f"{one.name}.md": page(one) for one in DASHBOARDS}


def _lines(dashboard: Dashboard) -> Iterator[str]:
    yield f"# {dashboard.title}"
    yield ""
    yield "<!-- written by `python -m rackwright.dashboards.markdown docs/dashboards` -->"
    yield ""
    yield dashboard.about
    yield ""
    yield f"    rackwright dashboards render FILE --dashboard {dashboard.name}"
    yield ""
    yield from _use(dashboard)
    for row in dashboard.rows:
        yield f"## {row.title}"
        yield ""
        for panel in row.panels:
            yield from _panel(panel)


def _use(dashboard: Dashboard) -> Iterator[str]:
    subject = dashboard.subject
    if subject is not None:
        yield (
            f"A page for each {subject.title.lower()}; `--set {subject.name}=NAME` names one. In Grafana it is chosen at the "
            "top, or followed from another dashboard."
        )
        yield ""
    several = [variable for variable in dashboard.variables if variable.several]
    for variable in several:
        yield f"`--set {variable.name}=NAME`, also several times: shows these alone."
        yield ""
    yield f"It shows the last {dashboard.since} unless `--since` is given. Green is fine, yellow is worth a look, orange and red"
    yield "need action, grey is unknown or off."
    yield ""


def _panel(panel: Panel) -> Iterator[str]:
    yield f"### {panel.title}"
    yield ""
    yield panel.description
    yield ""
    yield f"{_capital(panel.kind.value)}, {_WORDS[panel.unit]}.{_thresholds(panel)}{_states(panel)}{_without(panel)}"
    yield ""
    yield "```promql"
    for one in panel.expressions:
        if len(panel.expressions) > 1 or panel.kind is Kind.TABLE:
            yield f"# {one.legend}"
        yield one.text
    yield "```"
    yield ""


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _name(colour: Colour) -> str:
    return {
        Colour.GOOD: "green",
        Colour.NOTICE: "yellow",
        Colour.WARN: "orange",
        Colour.BAD: "red",
        Colour.GONE: "dark red",
        Colour.BUSY: "blue",
        Colour.PARTLY: "teal",
        Colour.OFF: "grey",
        Colour.PLANNED: "purple",
    }[colour]


def _thresholds(panel: Panel) -> str:
    if panel.thresholds is None:
        return ""
    steps = [f"{_name(colour)} from {shown(panel.unit, value)}" for value, colour in panel.thresholds.steps]
    return f" {_capital(_name(panel.thresholds.base))}, {', '.join(steps)}."


def _states(panel: Panel) -> str:
    if not panel.states:
        return ""
    named = [f"`{name}` {_name(colour)}" for _, (name, colour) in sorted(panel.states.items())]
    return f" {', '.join(named)}."


def _without(panel: Panel) -> str:
    made_by = comes_with(panel)
    found = f" Without any series: {panel.empty}" if panel.empty is not None else ""
    return f"{found} Its figures come with {made_by}." if made_by is not None else found


def main(folder: str) -> None:
    """Write all pages."""
    place = Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    for name, text in pages().items():
        (place / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1])

"""What `rackwright top` writes: cells, the line of racks, and the line with the age of the view."""

from __future__ import annotations

import time
from collections.abc import Iterable

from rich.text import Text

from rackwright.durations import duration
from rackwright.live.facts import Unknown
from rackwright.live.findings import Level
from rackwright.top.view import UNKNOWN, Rack, Row, View

COLUMNS: tuple[tuple[str, int | None], ...] = (
    ("rack", None),
    ("node", None),
    ("is", 8),
    ("scheduler", None),
    ("jobs", None),
    ("drift", None),
    ("alerts", None),
    ("reason", None),
)
"""Name and width; None: as wide as its widest cell."""
_STYLES = {
    Level.DOWN: "bold red",
    Level.FAILING: "red",
    Level.DRAINED: "yellow",
    Level.UNKNOWN: "bold magenta",
    Level.WARNING: "yellow",
    Level.BUSY: "cyan",
    Level.GOOD: "green",
}
_REASON_MAX = 120
"""Characters in the list; below it, the chosen node has all of it."""
_STALE_AFTER = 3
"""Intervals without an answer after which the view is called stale."""
_LEAST_STALE_SECONDS = 15.0
_SLOW_STALE_SECONDS = 180.0


def cells(row: Row) -> tuple[Text, ...]:
    """One line of the list, in the order of COLUMNS. Text: what a node wrote is never read as markup."""
    return (
        Text(row.rack),
        Text(row.node, style="bold"),
        Text(row.level.upper() if row.level is Level.UNKNOWN else row.level, style=_STYLES[row.level]),
        *(_known(text) for text in (row.state, row.jobs, row.drift, row.alerts)),
        Text(row.reason if len(row.reason) <= _REASON_MAX else f"{row.reason[: _REASON_MAX - 3]}..."),
    )


def _known(text: str) -> Text:
    return Text(text, style=_STYLES[Level.UNKNOWN] if text == UNKNOWN else "")


def rack_line(racks: Iterable[Rack]) -> Text:
    """Each rack with the number of its nodes and of those that need a look, e.g. `r1 40  r2 40: 1 down, 2 drained`."""
    line = Text()
    for rack in racks:
        line.append(f"{rack.name} ", style="bold")
        line.append(str(rack.nodes), style=_STYLES[rack.worst])
        bad = [
            f"{count} {level}"
            for level, count in sorted(rack.counts.items(), key=lambda item: item[0].rank)
            if level not in (Level.GOOD, Level.BUSY)
        ]
        line.append(f": {', '.join(bad)}   " if bad else "   ", style=_STYLES[rack.worst] if bad else "")
    return line


def status_line(
    cluster: str, view: View | None, age: float, every: float, problem: str | None, asking: bool
) -> Text:
    """The cluster's counts, when it was asked, and whether that is too long ago."""
    line = Text(f"{cluster}  ", style="bold")
    if view is None:
        line.append(
            "no answer yet" if problem is None else f"UNKNOWN: {problem}", style=_STYLES[Level.UNKNOWN]
        )
        return line.append(f"  asking for {duration(age)}" if asking else "")
    live = view.live
    line.append(f"{len(live.nodes)} nodes", style="")
    for level, count in live.counts.items():
        if count:
            line.append(f"  {count} {level}", style=_STYLES[level])
    if age > max(_LEAST_STALE_SECONDS, _STALE_AFTER * every):
        line.append(f"  STALE: {duration(age)} old", style="bold reverse red")
    else:
        line.append(f"  {duration(age)} old", style="dim")
    if problem is not None:
        line.append(f"\nUNKNOWN since then: {problem}", style=_STYLES[Level.UNKNOWN])
    if isinstance(view.jobs, Unknown):
        line.append(f"\njobs UNKNOWN: {view.jobs.reason}", style=_STYLES[Level.UNKNOWN])
    if view.slow_at is not None and (slow := time.time() - view.slow_at) > _SLOW_STALE_SECONDS:
        line.append(f"\nhealth and drift are {duration(slow)} old", style=_STYLES[Level.UNKNOWN])
    for alert in live.alerts[:2]:
        line.append(f"\n{alert.text}", style=_STYLES[Level.WARNING])
    return line

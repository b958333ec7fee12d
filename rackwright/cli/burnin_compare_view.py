"""A comparison of burn-ins on a terminal: a plot of each collective over the runs, and what fell."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from rackwright.burnin.history import LEAST_RUNS, Compared, Series
from rackwright.cli.terminal import STYLES
from rackwright.model.ranges import fold
from rackwright.status import Status

WIDTH = 48
"""Columns of a plot."""
REGRESSIONS_SHOWN = 40


def show_compared(groups: tuple[Compared, ...], console: Console) -> None:
    """Print each group: versions, a plot for each collective over all nodes, regressions."""
    for group in groups:
        heading = f"  {group.engine}, {group.earlier_runs} earlier runs with the same versions"
        console.print(Text.assemble((fold(group.nodes), "bold"), heading))
        if group.other_versions:
            console.print(
                Text(f"  {group.other_versions} runs with other versions are left out", style="dim")
            )
        for series in group.series:
            if _of_all(series):
                _show_plot(series, group.started, console)
        for series in group.regressions[:REGRESSIONS_SHOWN]:
            console.print(Text(f"  FAIL: {sentence(series)}", style=STYLES[Status.FAIL]))
        more = len(group.regressions) - REGRESSIONS_SHOWN
        if more > 0:
            console.print(Text(f"  and {more} more, see --json", style=STYLES[Status.FAIL]))
        left = len(group.series) - group.judged
        judged = f"  {group.judged} figures compared, {len(group.regressions)} fell by more than noise"
        few = f"; {left} have fewer than {LEAST_RUNS} earlier runs" if left else ""
        console.print(Text(judged + few))


def sentence(series: Series) -> str:
    """A regression as a sentence."""
    word = "above" if series.unit == "us" else "below"
    return (
        f"{series.name}: {series.value:g} {series.unit}, {abs(series.change_percent or 0):g} % {word} the median of "
        f"{len(series.earlier)} earlier runs ({series.middle:g}); noise reaches to {series.limit:.4g}"
    )


def plot(series: Series, started: str) -> list[str]:
    """One line a run: `o` its figure, `|` the median and `:` the limit of noise, between the ends of the axis."""
    points = [(point.started, point.value) for point in series.earlier] + [(started, series.value)]
    marks = [mark for mark in (series.middle, series.limit) if mark is not None]
    low, high = min([*(value for _, value in points), *marks]), max([*(value for _, value in points), *marks])

    def column(value: float) -> int:
        return round((value - low) / (high - low) * (WIDTH - 1)) if high > low else WIDTH // 2

    lines = []
    for when, value in points:
        cells = [" "] * WIDTH
        for mark, sign in ((series.limit, ":"), (series.middle, "|")):
            if mark is not None:
                cells[column(mark)] = sign
        cells[column(value)] = "o"
        lines.append(f"{when[:16].replace('T', ' '):16} {value:10.4g} {''.join(cells).rstrip()}")
    return [*lines, f"{'':27} {low:<{WIDTH - 10}.4g}{high:>10.4g}"]


def _of_all(series: Series) -> bool:
    """A collective over all nodes: those have a size and no subject."""
    return series.name.endswith(" B") and " of " not in series.name and " alone " not in series.name


def _show_plot(series: Series, started: str, console: Console) -> None:
    console.print(Text(f"  {series.name}, {series.unit}", style="bold"))
    *lines, axis = plot(series, started)
    for number, line in enumerate(lines):
        last = number == len(lines) - 1
        style = STYLES[Status.FAIL] if last and series.regressed else ("bold" if last else "")
        console.print(Text(f"    {line}", style=style), soft_wrap=True)
    console.print(Text(f"    {axis}", style="dim"), soft_wrap=True)

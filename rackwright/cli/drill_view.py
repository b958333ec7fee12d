"""What a terminal shows of drills."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table
from rich.text import Text

from rackwright.cli.terminal import Console, wide_console
from rackwright.drill.model import DrillResult, Outcome

_STYLES = {Outcome.PASSED: "green", Outcome.SKIPPED: "dim"}


def show_result(console: Console, one: DrillResult) -> None:
    """One drill, as it ends."""
    console.print(
        Text.assemble(
            (f"{one.outcome:<13}", _STYLES.get(one.outcome, "bold red")), f"{one.alert}: {one.fault}"
        )
    )


def show_table(results: Sequence[DrillResult], undrilled: Sequence[str]) -> None:
    """All of them, and the rules that no fault of the lab can trigger."""
    console = wide_console()
    table = Table("alert", "fault", "node", "fired after", "resolved after", "", box=None, pad_edge=False)
    for one in results:
        style = _STYLES.get(one.outcome, "bold red")
        table.add_row(
            one.alert,
            one.fault,
            one.node or "-",
            _seconds(one.fired_after),
            _seconds(one.resolved_after),
            Text(f"{one.outcome}{': ' if one.detail else ''}{one.detail}", style=style),
        )
    console.print(table)
    passed = sum(one.outcome is Outcome.PASSED for one in results)
    console.print(f"{passed} of {len(results)} alerts fired and resolved")
    if undrilled:
        console.print(Text(f"without a drill: {', '.join(undrilled)}", style="dim"))


def _seconds(value: float | None) -> str:
    return "-" if value is None else f"{value:.0f} s"

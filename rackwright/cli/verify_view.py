"""A verify report on a terminal: what is wrong first, what passes as a number."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from rackwright.claims.check import CheckResult
from rackwright.cli.terminal import STYLES
from rackwright.status import Status
from rackwright.verify.report import SEVERITY, VerifyReport, folded


def show_verify(report: VerifyReport, console: Console, *, verbose: bool = False) -> None:
    """Print the report: a table per role, what is out of scope, and the verdict line."""
    roles: dict[str, list[CheckResult]] = defaultdict(list)
    for result in report.results:
        if result.status is not Status.OUT_OF_SCOPE:
            roles[result.role].append(result)
    for role in sorted(roles, key=lambda role: (_worst_first(roles[role]), role)):
        _show_role(role, roles[role], console, verbose=verbose)
    beyond = [result for result in report.results if result.status is Status.OUT_OF_SCOPE]
    if beyond:
        _show_out_of_scope(beyond, console)
    for name in report.left_out:
        console.print(Text(f"not run, the primary head is not selected: {name}", style="dim"))
    console.print(Text(report.verdict, style=STYLES[report.status]), soft_wrap=True)


def _worst_first(results: Sequence[CheckResult]) -> int:
    return min(SEVERITY.index(result.status) for result in results)


def _show_role(role: str, results: Sequence[CheckResult], console: Console, *, verbose: bool) -> None:
    passes = sum(result.status is Status.PASS for result in results)
    console.print(Text.assemble((role, "bold"), f"  {passes} of {len(results)} pass"))
    shown = [result for result in results if verbose or result.status is not Status.PASS]
    if not shown:
        return
    table = Table(box=None, show_header=False, padding=(0, 1, 0, 1), pad_edge=True)
    table.add_column(no_wrap=True)
    table.add_column(max_width=24, overflow="fold")
    table.add_column(ratio=2, overflow="fold")
    table.add_column(ratio=3, overflow="fold")
    ranked = sorted(folded(shown), key=lambda row: SEVERITY.index(row[0].status))
    for result, nodes in ranked:
        table.add_row(
            Text(result.status.value, style=STYLES[result.status]),
            Text(nodes),
            Text(result.check),
            Text(result.evidence, style="dim" if result.status is Status.PASS else ""),
        )
    console.print(table)


def _show_out_of_scope(results: Sequence[CheckResult], console: Console) -> None:
    """Each reason once, and under it the checks by name with their nodes."""
    console.print(Text.assemble(("out of scope", "bold"), f"  {len(results)} by declaration of the platform"))
    reasons: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for result, nodes in folded(results):
        reasons[result.evidence].append((f"{result.role} ({nodes})", result.check))
    for reason, named in reasons.items():
        console.print(Text(f" {reason}:", style="dim"), soft_wrap=True)
        places: dict[str, list[str]] = defaultdict(list)
        for place, check in named:
            places[place].append(check)
        for place, checks in places.items():
            console.print(Padding(Text(f"{place}: {'; '.join(checks)}", style="dim"), (0, 0, 0, 3)))

"""How the terminal shows firmware: differences, plans, outcomes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from rich.table import Table
from rich.text import Text

from rackwright.cli.lines import say
from rackwright.cli.terminal import STYLES, Console
from rackwright.firmware.compare import Line, NodeReport, Verdict
from rackwright.firmware.maintenance import Outcome
from rackwright.firmware.run import Situation
from rackwright.model.ranges import fold

_STYLES = {
    Verdict.AS_DECLARED: STYLES["PASS"],
    Verdict.DIFFERS: STYLES["FAIL"],
    Verdict.NOT_DECLARED: "dim",
    Verdict.UNKNOWN: STYLES["UNKNOWN"],
    Verdict.OUT_OF_SCOPE: STYLES["OUT OF SCOPE"],
}
_SHOWN_ALWAYS = (Verdict.DIFFERS, Verdict.UNKNOWN)


def show_reports(reports: Sequence[NodeReport], console: Console, *, verbose: bool) -> None:
    """What differs and what is not known, equal lines once; then a line for each verdict."""
    same: dict[Line, list[str]] = defaultdict(list)
    for one in reports:
        for line in one.lines:
            if verbose or line.verdict in _SHOWN_ALWAYS:
                same[line].append(one.node)
    if same:
        table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
        for title in ("nodes", "what", "verdict", "found", "declared", ""):
            table.add_column(title, overflow="fold")
        for line, nodes in same.items():
            verdict = Text(line.verdict.value, style=_STYLES[line.verdict])
            values = [_shown(line.found), _shown(line.declared), line.reason or ""]
            table.add_row(fold(nodes), line.what, verdict, *values)
        console.print(table)
    _show_verdicts(reports, console)


def _show_verdicts(reports: Sequence[NodeReport], console: Console) -> None:
    by_verdict: dict[tuple[Verdict, str], list[str]] = defaultdict(list)
    hints: dict[str, str] = {}
    for one in reports:
        reason = one.reason or ""
        by_verdict[one.verdict, reason].append(one.node)
        if one.hint is not None:
            hints[reason] = one.hint
    for (verdict, reason), nodes in by_verdict.items():
        line = Text.assemble((verdict.value, _STYLES[verdict]), "  ", fold(nodes))
        console.print(line.append(f"  {reason}" if reason else ""), soft_wrap=True)
        if reason in hints:
            console.print(Text(f"      hint: {hints[reason]}"), soft_wrap=True)


def show_out_of_scope(reports: Iterable[NodeReport]) -> None:
    """Nodes that were chosen and that nothing can be done to."""
    same: dict[str, list[str]] = defaultdict(list)
    for one in reports:
        if not one.lines and one.reason is not None:
            same[one.reason].append(one.node)
    for reason, nodes in same.items():
        say(f"out of scope, {reason}: {fold(nodes)}", err=True)


def show_not_updated(lines: Mapping[str, Sequence[Line]]) -> None:
    """What differs and has no image, and what is not known."""
    same: dict[str, list[str]] = defaultdict(list)
    for node, of_node in lines.items():
        for line in of_node:
            text = (
                f"{line.what} is UNKNOWN: {line.reason}"
                if line.verdict is Verdict.UNKNOWN
                else f"{line.what} is {line.found}, declared is {line.declared}, and no image is declared"
            )
            same[text].append(node)
    for text, nodes in same.items():
        say(f"{fold(nodes)}: not updated: {text}", err=True)


def show_plan(plan: Mapping[str, Sequence[str]], known: Situation, off: Sequence[str]) -> None:
    """What will be done to each node, and what prevents it; nodes that are alike share a row."""
    same: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for node, texts in plan.items():
        if texts:
            same[tuple(texts)].append(node)
    for lines, nodes in same.items():
        for text in lines:
            say(f"{fold(nodes)}: {text}")
    for node, jobs in known.jobs.items():
        more = f" and {len(jobs) - 5} more" if len(jobs) > 5 else ""
        say(f"{node} runs {', '.join(map(str, jobs[:5]))}{more}: it is waited for")
    for node, run in known.left.items():
        say(f"{node}: left drained by {run}: put back once as declared and passing its checks")
    if off:
        say(f"{fold(off)}: off; switched on where a boot is needed, and left on")


def show_outcomes(outcomes: Sequence[Outcome], file: Path) -> None:
    """A line for each node, and the next step of those that need one."""
    show_each(outcomes, "as declared")
    if not all(one.ok for one in outcomes):
        good = sum(one.ok for one in outcomes)
        say(
            f"{good} of {len(outcomes)} nodes are as declared; see: rackwright firmware check {file}",
            err=True,
        )


def show_each(outcomes: Sequence[Outcome], good: str) -> None:
    """A line for each node; `good`: what those are that came through."""
    for one in outcomes:
        done = f": {', '.join(one.changed)}" if one.changed else ""
        text = f"{good}{done}" if one.ok else one.error or "failed"
        say(f"{one.node}: {text}", err=not one.ok)
        if one.hint is not None:
            say(f"hint: {one.hint}", err=True)
        if one.resume is not None:
            say(f"{one.node}: left drained; `{one.resume}` puts it back without checks", err=True)


def _shown(value: object | None) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return "" if value is None else str(value)

"""Health on a terminal: what is wrong first, equal findings of several nodes as one."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from rackwright.cli.terminal import STYLES
from rackwright.health.judge import hardest
from rackwright.health.run import FleetHealth, NodeHealth
from rackwright.health.verdict import SEVERITY, Action, HealthResult
from rackwright.model.ranges import fold
from rackwright.status import Status

TROUBLE = (Status.FAIL, Status.UNKNOWN, Status.WARN)


def show_health(fleet: FleetHealth, console: Console, *, verbose: bool = False) -> None:
    """Print a line per group of like nodes, the findings, what was left out, and the verdict."""
    _show_nodes(fleet.nodes, console)
    _show_findings(fleet.results, console, verbose=verbose)
    _show_left_out(fleet.results, console)
    console.print(Text(fleet.verdict, style=STYLES[fleet.status]), soft_wrap=True)


def _show_nodes(nodes: Sequence[NodeHealth], console: Console) -> None:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    for title in ("nodes", "status", "action", "fail", "unknown", "warn", "pass"):
        table.add_column(title, justify="left" if title in ("nodes", "status", "action") else "right")
    groups: dict[tuple[Status, Action, tuple[int, ...]], list[str]] = defaultdict(list)
    for node in nodes:
        counts = Counter(one.status for one in node.results)
        kinds = (*TROUBLE, Status.PASS)
        groups[(node.status, node.action, tuple(counts[kind] for kind in kinds))].append(node.node)
    for (status, action, counted), names in sorted(
        groups.items(), key=lambda item: SEVERITY.index(item[0][0])
    ):
        table.add_row(fold(names), Text(status.value, style=STYLES[status]), action.value, *map(str, counted))
    console.print(table)


def _show_findings(results: Sequence[HealthResult], console: Console, *, verbose: bool) -> None:
    """Equal findings once; checks that are UNKNOWN for the same reason are listed under it."""
    shown = [one for one in results if one.status in TROUBLE or (verbose and one.status is Status.PASS)]
    groups: dict[tuple[Status, str, str], list[HealthResult]] = defaultdict(list)
    for one in shown:
        check = "" if one.status is Status.UNKNOWN else one.check
        groups[(one.status, check, one.evidence)].append(one)
    ranked = sorted(
        groups.items(), key=lambda item: (SEVERITY.index(item[0][0]), -hardest(item[1]).rank, item[0][1])
    )
    for (status, _, evidence), same in ranked:
        checks = list(dict.fromkeys(one.check for one in same))
        line = Text.assemble(
            (status.value, STYLES[status]),
            "  ",
            fold(one.node for one in same),
            "  ",
            (", ".join(checks), "bold"),
            "  ",
            evidence,
        )
        console.print(line, soft_wrap=True)
        if status is not Status.PASS and len(checks) == 1:
            _show_remedy(same[0], console)


def _show_remedy(result: HealthResult, console: Console) -> None:
    action = f"{result.action.value}: " if result.action is not Action.NONE else ""
    console.print(Text(f"      should hold: {result.claim}", style="dim"), soft_wrap=True)
    console.print(Text(f"      do: {action}{result.remedy}"), soft_wrap=True)


def _show_left_out(results: Sequence[HealthResult], console: Console) -> None:
    for status, title in ((Status.DISABLED, "switched off"), (Status.OUT_OF_SCOPE, "out of scope")):
        reasons: dict[str, set[str]] = defaultdict(set)
        for one in results:
            if one.status is status:
                reasons[one.evidence].add(one.check)
        for reason, checks in sorted(reasons.items()):
            console.print(
                Text(f"{title}: {reason}: {', '.join(sorted(checks))}", style="dim"), soft_wrap=True
            )

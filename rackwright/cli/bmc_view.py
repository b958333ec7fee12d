"""How the terminal shows what BMCs report."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from rich.table import Table
from rich.text import Text

from rackwright.bmc.interface import BmcHealth, Condition, LogEntry, Part
from rackwright.bmc.status import FleetStatus, NodeStatus
from rackwright.cli.lines import say
from rackwright.cli.terminal import STYLES, Console
from rackwright.errors import BmcError
from rackwright.model.ranges import fold
from rackwright.status import Status

_CONDITION_STYLES = {
    Condition.CRITICAL: STYLES["FAIL"],
    Condition.WARNING: STYLES["WARN"],
    Condition.UNKNOWN: STYLES["UNKNOWN"],
    Condition.OK: STYLES["PASS"],
    Condition.ABSENT: "dim",
}
_COLUMNS = (
    "node",
    "status",
    "power",
    "watts",
    "supplies",
    "fans",
    "hottest",
    "bios",
    "bmc",
    "log",
    "last critical event",
)


def show_status(fleet: FleetStatus, console: Console, *, verbose: bool) -> None:
    """A row for each node, then what was found, equal findings once."""
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    for title in _COLUMNS:
        table.add_column(title, justify="right" if title in ("watts", "hottest", "log") else "left")
    for one in fleet.nodes:
        if one.status is not Status.OUT_OF_SCOPE:
            table.add_row(one.node, Text(one.status.value, style=STYLES[one.status.value]), *_cells(one))
    console.print(table)
    _show_findings(fleet, console)
    if verbose:
        for one in fleet.nodes:
            _show_parts(one, console)


def show_log(logs: Mapping[str, Sequence[LogEntry]], console: Console) -> None:
    """Entries of each node."""
    for node, entries in logs.items():
        console.print(Text(node if entries else f"{node}: the event log is empty", style="bold"))
        for one in entries:
            sensor = f"{one.sensor}: " if one.sensor is not None else ""
            console.print(
                Text.assemble(
                    "  ",
                    _time(one),
                    "  ",
                    (f"{one.severity.value:8}", _CONDITION_STYLES[one.severity]),
                    "  ",
                    sensor + one.message,
                ),
                soft_wrap=True,
            )


def show_answers(answers: Mapping[str, str]) -> None:
    """A line for each answer, with the nodes that gave it."""
    same: dict[str, list[str]] = defaultdict(list)
    for node, text in answers.items():
        same[text].append(node)
    for text, nodes in same.items():
        say(f"{fold(nodes)}: {text}")


def show_failures(answers: Mapping[str, object]) -> None:
    """Errors of BMCs, each with its hint."""
    for one in answers.values():
        if isinstance(one, BmcError):
            say(f"error: {one.message}", err=True)
            if one.hint is not None:
                say(f"hint: {one.hint}", err=True)


def show_out_of_scope(nodes: Iterable[str]) -> None:
    """Nodes that have no BMC."""
    if nodes := list(nodes):
        say(f"out of scope, no `bmc` is declared: {fold(nodes)}", err=True)


def _cells(one: NodeStatus) -> list[str]:
    if one.reading is None:
        return ["", "", "", "", "", "", "", "", ""]
    health, identity = one.reading.health, one.reading.identity
    event = one.reading.last_critical
    return [
        one.reading.power.value,
        "" if health.power_watts is None else f"{health.power_watts:.0f}",
        _counted(health.power_supplies),
        _counted(health.fans),
        _hottest(health),
        identity.bios or "",
        identity.bmc_firmware or "",
        "" if health.sel_full is None else f"{health.sel_full} %",
        "" if event is None else f"{_time(event)} {event.message}",
    ]


def _counted(parts: Sequence[Part]) -> str:
    """`2 ok`, or what is wrong: `1 ok, 1 critical`."""
    counts = [(state, sum(part.state is state for part in parts)) for state in Condition]
    return ", ".join(
        f"{count} {state.value}" for state, count in counts if count and state is not Condition.ABSENT
    )


def _hottest(health: BmcHealth) -> str:
    values = [
        one.value
        for one in health.temperatures
        if one.value is not None and one.state is not Condition.ABSENT
    ]
    return f"{max(values):.0f} C" if values else ""


def _show_findings(fleet: FleetStatus, console: Console) -> None:
    same: dict[tuple[Status, str], list[str]] = defaultdict(list)
    hints: dict[str, str] = {}
    for node in fleet.nodes:
        for finding in node.findings:
            same[(finding.status, finding.text)].append(node.node)
            if node.hint is not None:
                hints[finding.text] = node.hint
    for (status, text), nodes in same.items():
        line = Text.assemble((status.value, STYLES[status.value]), "  ", fold(nodes), "  ", text)
        console.print(line, soft_wrap=True)
        if text in hints:
            console.print(Text(f"      hint: {hints[text]}"), soft_wrap=True)


def _show_parts(one: NodeStatus, console: Console) -> None:
    if one.reading is None:
        return
    console.print(Text(one.node, style="bold"))
    for part in one.reading.health.parts:
        value = "" if part.value is None else f"{part.value:g} {part.unit}"
        console.print(
            Text.assemble(
                "  ", (f"{part.state.value:8}", _CONDITION_STYLES[part.state]), f"  {part.name}  {value}"
            ),
            soft_wrap=True,
        )


def _time(entry: LogEntry) -> str:
    return entry.when.strftime("%Y-%m-%d %H:%M:%SZ") if entry.when is not None else "(no clock)          "

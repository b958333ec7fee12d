"""A fabric on a terminal: switches as a table, differences as lines."""

from __future__ import annotations

from rich.table import Table
from rich.text import Text

from rackwright.cli.lines import say
from rackwright.cli.terminal import STYLES, Console, wide_console
from rackwright.fabric.check import FabricReport
from rackwright.fabric.identify import Found
from rackwright.fabric.shown import ranges, switch_lines
from rackwright.model.fabric import Fabric
from rackwright.model.ranges import fold


def show_fabric(fabric: Fabric, found: Found | None, *, cables: bool) -> None:
    """Print one declared fabric."""
    lines = switch_lines(fabric, found)
    counts = (
        _counted(fabric.rails, "rail"),
        _counted(len(fabric.leaves), "leaf", "leaves"),
        _counted(len(fabric.spines), "spine"),
        _counted(len(fabric.cables), "cable"),
    )
    say(f"{fabric.network}: {fabric.kind}, {', '.join(counts)}")
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="")
    for heading in ("SWITCH", "LEVEL", "RAIL", "NODES", "PORTS TO NODES", "PORTS TO SWITCHES"):
        table.add_column(heading, overflow="fold")
    if found is not None:
        table.add_column("IN PLACE")
    for line in lines:
        others = ", ".join(f"{ranges(own)} {name}" for name, own in line.others.items())
        state = () if line.up is None else (f"{line.up}/{line.cables}",)
        nodes = fold(line.nodes) if line.nodes else "-"
        table.add_row(
            line.name, line.level, ranges(line.rails), nodes, ranges(line.node_ports), others or "-", *state
        )
    wide_console().print(table)
    if cables:
        for cable in fabric.cables:
            speed = f"  {cable.speed_gbps:g} Gb/s" if cable.speed_gbps is not None else ""
            lanes = f"  {_counted(cable.lanes, 'lane')}" if cable.lanes is not None else ""
            label = f"  {cable.label}" if cable.label else ""
            say(f"{cable.near} -> {cable.far}{speed}{lanes}{label}  # {cable.origin}")


def _counted(number: int, one: str, more: str | None = None) -> str:
    return f"{number} {one if number == 1 else more or f'{one}s'}"


def show_check(report: FabricReport, console: Console) -> None:
    """Print every finding, the worst first."""
    for one in report.fabrics:
        console.print(Text.assemble((one.network, "bold"), f"  {one.intact} of {one.cables} cables in place"))
        if not one.findings:
            continue
        table = Table(box=None, show_header=False, padding=(0, 1, 0, 1), pad_edge=True)
        table.add_column(no_wrap=True)
        table.add_column(no_wrap=True)
        table.add_column(ratio=1, overflow="fold")
        for finding in one.findings:
            status = finding.status.value
            table.add_row(Text(status, style=STYLES[status]), Text(finding.kind.value), Text(finding.text))
        console.print(table)

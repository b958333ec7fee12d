"""A burn-in report on a terminal."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table
from rich.text import Text

from rackwright.boundary import printable
from rackwright.burnin.measurement import Measurement
from rackwright.burnin.port_output import LatencyFigure, PortFigure
from rackwright.burnin.report import BurninReport, SkuGroup, bytes_text
from rackwright.cli.terminal import STYLES
from rackwright.model.ranges import fold


def show_burnin(report: BurninReport, console: Console) -> None:
    """Print each group's figures, what was found against it, its pairs, and the verdict line."""
    for group in report.groups:
        _show_group(group, console)
    console.print(Text(report.verdict, style=STYLES[report.status]), soft_wrap=True)


def _show_group(group: SkuGroup, console: Console) -> None:
    heading = f"  {group.engine}, {len(group.nodes)} nodes, {group.ranks} ranks"
    console.print(Text.assemble((f"{fold(group.nodes)} ({group.sku})", "bold"), heading))
    _show_nodes(group, console)
    for measured in group.measurements:
        _show_measurement(measured, console)
    _show_soak(group, console)
    for finding in group.all_findings:
        console.print(Text(f"  {finding.status.value}: {finding.text}", style=STYLES[finding.status]))
    if group.gemm:
        slow, fast = (choose(group.gemm, key=lambda one: one.tflops) for choose in (min, max))
        spread = f"  gemm: {slow.tflops:.1f} (GPU {slow.gpu} of {slow.node}) to {fast.tflops:.1f} TFLOPS"
        console.print(Text(spread))
    if group.floor is not None:
        console.print(Text(f"  floor {group.floor.busbw_gbs:g} GB/s: {group.floor.source}", style="dim"))
    if group.previous is not None:
        before = group.previous
        console.print(
            Text(f"  {before.change_percent:+g} % against {before.busbw_gbs:g} GB/s of {before.started}")
        )
    _show_pairs(group, console)
    _show_search(group, console)
    versions = ", ".join(f"{name} {version}" for name, version in sorted(group.versions.items()))
    console.print(Text(f"  {versions}", style="dim"))


def _show_nodes(group: SkuGroup, console: Console) -> None:
    """The range of what every node, GPU or port reached by itself; those that fail are among the findings."""
    alone = [(figure.busbw_gbs, figure.node) for figure in group.per_node if figure.busbw_gbs is not None]
    copies = [(one.gbs, f"{one.test} of GPU {one.gpu} of {one.node}") for one in group.copies]
    loop = [(figure.busbw_gbs, figure.node) for figure in group.loopback if figure.busbw_gbs is not None]
    ranges = [
        ("nodes alone", alone, "GB/s"),
        ("through their ports", loop, "GB/s"),
        ("host copies", copies, "GB/s"),
    ]
    for way, words in (("leaf", "below a leaf"), ("spine", "across the spines")):
        ports = [(one.gbps, _rail(one)) for one in group.ports if one.way == way]
        times = [(one.typical_us, _rail(one)) for one in group.latencies if one.way == way]
        ranges += [(f"ports {words}", ports, "Gb/s"), (f"read latency {words}", times, "us")]
    for collective in dict.fromkeys(one.collective for one in group.scopes):
        for scope, words in (("unit", "by unit"), ("leaf", "by rail of a unit")):
            mine = [
                (one.busbw_gbs, fold(one.nodes))
                for one in group.scopes
                if one.scope == scope and one.collective == collective and one.busbw_gbs is not None
            ]
            ranges.append((f"{collective} {words}", mine, "GB/s"))
    for what, figures, unit in ranges:
        if figures:
            (slow, where), (fast, _) = min(figures), max(figures)
            console.print(Text(f"  {what}: {slow:g} ({where}) to {fast:g} {unit}"))


def _rail(one: PortFigure | LatencyFigure) -> str:
    return f"rail {one.rail} of {one.nodes[0]} -> {one.nodes[1]}"


def _show_soak(group: SkuGroup, console: Console) -> None:
    soak = group.soak
    if soak is None:
        return
    known = [sample.busbw_gbs for sample in soak.samples if sample.busbw_gbs is not None]
    span = f", {min(known):g} to {max(known):g} GB/s" if known else ""
    drift = f", drift {soak.drift_percent:+g} %" if soak.drift_percent is not None else ""
    rounds = f"  soak: {soak.hours:g} of {soak.hours_asked:g} hours, {len(soak.samples)} rounds{span}{drift}"
    heat = max(
        ((one.hottest_c, one.hottest) for one in soak.readings if one.hottest_c is not None), default=None
    )
    shown = f", hottest {heat[0]:g} C ({heat[1]})" if heat is not None else ""
    console.print(Text(f"{rounds}; {len(soak.readings)} readings of the health probe{shown}"))


def _show_measurement(measured: Measurement, console: Console) -> None:
    if measured.table is None or not measured.table.rows:
        return
    table = Table(
        box=None, padding=(0, 2, 0, 0), title=measured.collective, title_justify="left", title_style=""
    )
    for name in (
        "size",
        "time us",
        "algbw",
        "busbw GB/s",
        "wrong",
        "in place: time us",
        "algbw",
        "busbw",
        "wrong",
    ):
        table.add_column(name, justify="right")
    for row in measured.table.rows:
        cells = [bytes_text(row.size)]
        for side in (row.out_of_place, row.in_place):
            wrong = "N/A" if side.wrong is None else str(side.wrong)
            cells += [f"{side.time_us:.1f}", f"{side.algbw_gbs:.2f}", f"{side.busbw_gbs:.2f}", wrong]
        table.add_row(*cells)
    console.print(table)


def _show_pairs(group: SkuGroup, console: Console) -> None:
    if group.triage is None:
        return
    for figure in group.pairs:
        reached = (
            f"{figure.busbw_gbs:g} GB/s" if figure.busbw_gbs is not None else f"no figure: {figure.problem}"
        )
        console.print(
            Text(
                f"  pair {fold(figure.nodes)}: {reached}", style="red" if figure in group.triage.slow else ""
            )
        )
    slowest = group.triage.slowest
    if slowest is not None:
        console.print(Text(f"  slowest pair: {fold(slowest.nodes)}", style="bold"))
    suspects = (
        fold(group.triage.suspects) if group.triage.suspects else "none: no node is slow with two partners"
    )
    console.print(Text(f"  suspects: {suspects}", style="bold"))


def _show_search(group: SkuGroup, console: Console) -> None:
    """Every run of the search for a culprit; what it found is among the findings."""
    if group.chased is None:
        return
    found = group.chased.found
    limit = f", slow under {found.limit:.4g} GB/s" if found.limit is not None else ""
    rounds = len({step.round for step in found.steps})
    console.print(Text(f"  search: {len(found.steps)} runs in {rounds} rounds{limit}", style="bold"))
    for step in found.steps:
        way = "pairs below a leaf" if step.run.way == "leaf" else "pairs across the spines"
        if step.run.kind == "ports":
            figures = step.reading.ports.values()
            reached = f"{min(figures):.4g} to {max(figures):.4g} Gb/s" if figures else "no figure"
        else:
            reached = f"{step.reading.figure:.4g} GB/s" if step.reading.figure is not None else "no figure"
        result = f" ({printable(step.reading.problem, 120)})" if step.reading.problem else ""
        text = f"    {step.number}. {step.run.kind}, {way}, {fold(step.run.nodes)}: {reached}{result}"
        console.print(Text(text, style="red" if step.slow else "dim"))

"""Filesystems and a storage bench on a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from rackwright.cli.terminal import STYLES
from rackwright.model.cluster import Cluster
from rackwright.model.ranges import fold
from rackwright.model.storage import FLOORS, Filesystem
from rackwright.status import Status
from rackwright.storage.plan import out_of_scope
from rackwright.storage.report import BenchReport, CheckpointResult, FilesystemResult

SEVERITY = (Status.FAIL, Status.UNKNOWN, Status.WARN, Status.PASS, Status.OUT_OF_SCOPE)


def show_filesystems(cluster: Cluster, filesystems: Sequence[Filesystem], console: Console) -> None:
    """Print one line for each declared filesystem, then floors and what is not measured."""
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="")
    for heading in ("NAME", "KIND", "PURPOSE", "PATH", "SERVERS", "MOUNTED BY", "FLOORS"):
        table.add_column(heading, overflow="fold")
    for one in filesystems:
        servers = ", ".join(
            server.name if server.name == server.address else f"{server.name} ({server.address})"
            for server in one.servers
        )
        users = [name for name in one.nodes if name not in one.server_nodes]
        table.add_row(
            one.name,
            f"{one.kind.value}{', RDMA' if one.rdma else ''}",
            f"{one.purpose.value}{', read-only' if one.read_only else ''}",
            one.path,
            servers or "-",
            fold(users) if users else "-",
            ", ".join(_floors(one)) or "-",
        )
    console.print(table)
    for one in filesystems:
        if (why := out_of_scope(cluster, one)) is not None:
            console.print(Text(f"  {one.name} is not measured: {why}", style=STYLES[Status.OUT_OF_SCOPE]))


def _floors(one: Filesystem) -> list[str]:
    known = [(key, getattr(one.floor, key)) for key in FLOORS] if one.floor is not None else []
    return [f"{key} {value:g}" for key, value in known if value is not None]


def show_bench(report: BenchReport, console: Console) -> None:
    """Print each filesystem's figures, what was found against it, and the verdict line."""
    for result in report.results:
        _show_result(result, console)
    console.print(Text(report.verdict, style=STYLES[report.status]), soft_wrap=True)


def _show_result(result: FilesystemResult, console: Console) -> None:
    where = f"  {result.path}, {result.kind}, {result.purpose}"
    who = f", {fold(result.nodes)}" if result.nodes else ""
    console.print(Text.assemble((result.name, "bold"), f"{where}{who}"))
    if result.figures:
        table = Table(box=None, padding=(0, 2, 0, 0), header_style="", pad_edge=True)
        table.add_column("  MEASURED")
        table.add_column("RATE", justify="right")
        table.add_column("FLOOR", justify="right")
        table.add_column("SLOWEST")
        for figure in result.figures:
            style = STYLES[Status.FAIL] if figure.under else ""
            floor = f"{figure.floor:g}" if figure.floor is not None else "-"
            table.add_row(
                f"  {figure.name}", f"{figure.value:.4g} {figure.unit}", floor, figure.node or "", style=style
            )
        console.print(table)
    if result.checkpoint is not None:
        console.print(Text(f"  {checkpoint_line(result.checkpoint)}"))
    for finding in sorted(result.findings, key=lambda found: SEVERITY.index(found.status)):
        console.print(Text(f"  {finding.status.value}: {finding.text}", style=STYLES[finding.status]))
    versions = ", ".join(f"{name} {version}" for name, version in sorted(result.versions.items()))
    if versions or result.mounted:
        console.print(Text(f"  {', '.join(filter(None, (result.mounted, versions)))}", style="dim"))


def checkpoint_line(one: CheckpointResult) -> str:
    """The checkpoint stage in one line."""
    who = f"checkpoint: {one.ranks} ranks on {fold(one.nodes)}, {one.rank_bytes / 2**20:g} MiB each"
    if one.seconds is None or one.percent is None or one.save_gbs is None:
        return f"{who}: no save was timed"
    loaded = f"; {one.loaded} loaded in {one.load_seconds:.3g} s" if one.load_seconds is not None else ""
    share = f"{one.percent:.3g} % of the {one.interval_seconds:g} s between two saves"
    return f"{who}: a save takes {one.seconds:.3g} s ({one.save_gbs:.3g} GB/s), {share}{loaded}"

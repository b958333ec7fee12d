"""rackwright accept: everything, one verdict, a report."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from rackwright.accept import accept
from rackwright.accept.write import default_folder, write_report
from rackwright.cli.accept_view import Acceptance, show_verdict
from rackwright.cli.arguments import ClusterFile
from rackwright.cli.terminal import Console
from rackwright.clusterfile.load import load_cluster
from rackwright.errors import RackwrightError
from rackwright.model.cluster import Cluster
from rackwright.model.monitoring import CollectsMetrics

_DRAWN = ("overview", "racks", "gpu", "queue", "health", "power")
"""Dashboards in a report: those of the cluster as a whole."""
_SINCE = "30m"


def accept_command(
    file: ClusterFile,
    report: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Where to write the report; default reports/<cluster>-<UTC time>."),
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Apply without asking for confirmation.")] = False,
) -> None:
    """Validate, apply, plan again, verify, measure storage and burn in; one verdict and a report.

    Exit status: 0 ACCEPTED, 3 REJECTED, 4 UNDECIDED (something is UNKNOWN), 1 the cluster file is
    wrong.
    """
    cluster = load_cluster(file)
    if not yes and not sys.stdin.isatty():
        raise RackwrightError(
            "accept asks for confirmation, and standard input is not a terminal.",
            hint="review `rackwright plan`, then run again with --yes",
        )
    out = Console(soft_wrap=True)
    acceptance = Acceptance(cluster, out, yes=yes)
    found = accept(cluster, acceptance.stages(), progress=acceptance.show_stage)
    folder = report if report is not None else default_folder(found)
    _, page = write_report(found, cluster, folder, metrics=_draw(cluster, folder, out))
    show_verdict(found, out)
    out.print(Text(f"report: {page}"))
    raise typer.Exit(int(found.exit_code))


def _draw(cluster: Cluster, folder: Path, out: Console) -> str | None:
    """The dashboards beside the report, where the cluster has a Prometheus; the report does without where it is silent."""
    if not any(node.offers(CollectsMetrics) for node in cluster.nodes):
        return None
    if find_spec("plotly") is None:
        out.print(Text("metrics are not drawn: pip install 'rackwright[dashboards]'"))
        return None
    # 0.4 s, of an extra, for what most commands have no use for
    from rackwright.dashboards.catalogue import BY_NAME
    from rackwright.dashboards.collect import collect
    from rackwright.dashboards.page import Site, write
    from rackwright.prometheus.query import run_queries

    try:
        chosen = tuple(BY_NAME[name] for name in _DRAWN)
        pages = collect(
            cluster, chosen, lambda queries: run_queries(cluster, queries), since=_SINCE, chosen={}
        )
        write(Site(cluster, pages, datetime.now(UTC)), folder / "metrics")
    except RackwrightError as error:
        out.print(Text(f"metrics are not drawn: {error.message}"))
        return None
    return "metrics/overview.html"

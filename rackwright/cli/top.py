"""rackwright top: the cluster live, in the whole terminal."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from rackwright.cli.arguments import ClusterFile, Limit
from rackwright.clusterfile.load import load_cluster
from rackwright.errors import RackwrightError
from rackwright.model.selection import pick


def top_command(
    file: ClusterFile,
    limit: Limit = None,
    every: Annotated[
        float, typer.Option(metavar="SECONDS", min=1, max=3600, help="How often to ask again.")
    ] = 5,
) -> None:
    """Show the nodes live: racks, states of the workload manager, jobs, drains, drift, alerts; `?` shows the keys.

    Asks the workload manager and Prometheus every few seconds, health checks and drift every minute. What is not known
    is UNKNOWN, with the reason. Nothing changes without a confirmation.
    """
    cluster = load_cluster(file, locked=False)
    nodes = pick(cluster, limit)
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise RackwrightError(
            "top needs a terminal.",
            hint=f"rackwright map {file} writes a page, rackwright why {file} NODE a text",
        )
    from rackwright.cli.top_app import TopApp  # textual, which --help does not need
    from rackwright.ssh import Pool
    from rackwright.top.source import ClusterSource

    with Pool(cluster) as pool:
        TopApp(cluster, nodes, ClusterSource(cluster, pool), every_seconds=every).run()

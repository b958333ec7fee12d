"""rackwright fabric: the declared fabric, and how the one that is there differs."""

from __future__ import annotations

from typing import Annotated

import typer

from rackwright.cli.arguments import AsJson, ClusterFile, Limit
from rackwright.cli.fabric_view import show_check, show_fabric
from rackwright.cli.json_output import print_document
from rackwright.cli.lines import say
from rackwright.cli.terminal import Console, wide_console
from rackwright.clusterfile.load import load_cluster
from rackwright.errors import ExitCode
from rackwright.fabric.check import check, fabrics_of
from rackwright.fabric.shown import show_json

fabric_app = typer.Typer(
    help="Leaves, spines and cables: as declared, and compared with what is there.",
)

Network = Annotated[
    str | None, typer.Option(metavar="NETWORK", help="Only this network's fabric; all of them if left out.")
]


@fabric_app.command("show")
def show_command(
    file: ClusterFile,
    network: Network = None,
    cables: Annotated[bool, typer.Option("--cables", help="List every cable.")] = False,
    live: Annotated[
        bool, typer.Option("--live", help="Ask the nodes, and count the cables that are in place.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Show the declared leaves and spines, the rails and nodes of each, and its ports.

    With --live the exit status is that of `fabric check`.
    """
    cluster = load_cluster(file, locked=False)
    fabrics = fabrics_of(cluster, network)
    found, status = {}, ExitCode.CLEAN
    if live:
        with Console(stderr=True).status(f"asking the nodes of {cluster.name} ..."):
            report = check(cluster, network=network)
        found, status = {one.network: one.found for one in report.fabrics}, report.exit_code
    pairs = [(fabric, found.get(fabric.network)) for fabric in fabrics]
    if as_json:
        print_document("fabric", show_json(cluster.name, pairs))
    else:
        for fabric, one in pairs:
            show_fabric(fabric, one, cables=cables)
    raise typer.Exit(int(status))


@fabric_app.command("check")
def check_command(
    file: ClusterFile, network: Network = None, limit: Limit = None, as_json: AsJson = False
) -> None:
    """Compare the cabling with the declaration: by InfiniBand discovery, or by LLDP on every node.

    With --limit only cables of these nodes are compared. Exit status 0: as declared, 3: something differs, 4: something
    is UNKNOWN.
    """
    cluster = load_cluster(file, locked=False)
    with Console(stderr=True).status(f"asking the nodes of {cluster.name} ...") as status:
        report = check(cluster, network=network, limit=limit, progress=lambda text: status.update(text))
    if as_json:
        print_document("fabric.check", report.to_json())
    else:
        show_check(report, wide_console())
        say(f"fabric: {report.verdict}")
    raise typer.Exit(int(report.exit_code))

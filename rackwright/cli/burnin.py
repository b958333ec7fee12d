"""rackwright burnin: the workers alone, in pairs and together, judged."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from rackwright.burnin import burnin
from rackwright.burnin.profiles import Profile
from rackwright.cli.arguments import ClusterFile
from rackwright.cli.burnin_view import show_burnin
from rackwright.cli.terminal import Console, wide_console
from rackwright.clusterfile.load import load_cluster
from rackwright.errors import BurninError


def burnin_command(
    file: ClusterFile,
    nodes: Annotated[
        str | None, typer.Option(metavar="NODESET", help="Only these workers, e.g. gpu[001-016].")
    ] = None,
    pairs: Annotated[
        bool, typer.Option("--pairs", help="Test pairs of nodes too, even if no floor is missed.")
    ] = False,
    ranks_per_node: Annotated[int, typer.Option(min=1, help="Ranks on each node, for the mpi engine.")] = 1,
    profile: Annotated[
        Profile | None,
        typer.Option(help="quick: minutes; acceptance: GPUs, ports, all collectives; soak: hours of load."),
    ] = None,
    hours: Annotated[
        float | None, typer.Option(min=0.01, max=336, help="Hours of --profile soak, e.g. 24.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the JSON document.")] = False,
) -> None:
    """Measure the workers alone and together through the workload manager and judge them against the floors.

    Exit status: 0 the floor is reached, 3 it is not or values are wrong, 4 something is UNKNOWN.
    """
    cluster = load_cluster(file)
    if hours is not None and (profile or cluster.burnin.profile) != "soak":
        raise BurninError("--hours is for a soak alone.", hint="add --profile soak")
    with Console(stderr=True).status("burn-in ...") as status:
        report = burnin(
            cluster,
            nodes=nodes,
            pairs=pairs,
            ranks_per_node=ranks_per_node,
            profile=profile,
            hours=hours,
            progress=lambda text: status.update(f"burn-in: {text} ..."),
        )
    if as_json:
        typer.echo(json.dumps(report.to_json(), indent=2))
    else:
        show_burnin(report, wide_console())
    raise typer.Exit(int(report.exit_code))

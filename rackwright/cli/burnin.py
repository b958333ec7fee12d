"""rackwright burnin: the workers alone, by unit and together, judged; and compared with earlier runs."""

from __future__ import annotations

from typing import Annotated

import typer

from rackwright.burnin import burnin
from rackwright.burnin.history import LEAST_RUNS, RUNS, compare
from rackwright.burnin.profiles import Profile
from rackwright.burnin.store import RESULTS
from rackwright.cli.arguments import ClusterFile
from rackwright.cli.burnin_compare_view import show_compared
from rackwright.cli.burnin_view import show_burnin
from rackwright.cli.groups import with_default
from rackwright.cli.json_output import print_document
from rackwright.cli.progress import Waiting
from rackwright.cli.terminal import Console, wide_console
from rackwright.clusterfile.load import load_cluster
from rackwright.durations import Durations
from rackwright.errors import BurninError, ExitCode
from rackwright.model.cluster import Cluster
from rackwright.model.ranges import fold
from rackwright.model.types import NodeRole

burnin_app = typer.Typer(
    cls=with_default("run"),
    help="Measure the workers and judge them against floors (`burnin FILE`, options: `burnin run --help`), or against "
    "earlier runs (`burnin compare FILE`).",
)


@burnin_app.command("run")
def burnin_command(
    file: ClusterFile,
    nodes: Annotated[
        str | None, typer.Option(metavar="NODESET", help="Only these workers, e.g. gpu[001-016].")
    ] = None,
    pairs: Annotated[
        bool,
        typer.Option("--pairs", help="Measure every node with two others too, even if no floor is missed."),
    ] = False,
    ranks_per_node: Annotated[
        int, typer.Option(min=1, help="Ranks on each node, where CPUs are measured.")
    ] = 1,
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
    with Waiting(Console(stderr=True), Durations(cluster.name, "burnin")) as waiting:
        waiting.begin("all", *_whole(cluster, nodes, profile or cluster.burnin.profile, hours))
        report = burnin(
            cluster,
            nodes=nodes,
            pairs=pairs,
            ranks_per_node=ranks_per_node,
            profile=profile,
            hours=hours,
            progress=waiting.step,
        )
    if as_json:
        print_document("burnin", report.to_json())
    else:
        show_burnin(report, wide_console())
    raise typer.Exit(int(report.exit_code))


def _whole(cluster: Cluster, nodes: str | None, profile: str | None, hours: float | None) -> tuple[str, str]:
    """What is waited for, and the step of the history: a burn-in of the same nodes by the same profile and hours."""
    chosen = nodes or fold(node.name for node in cluster.holding(NodeRole.WORKER))
    text = " ".join(filter(None, ("burn-in of", chosen, profile and f"({profile})")))
    return (f"{text}, {hours:g} h of load" if hours is not None else text), f"{text} {hours or ''}"


@burnin_app.command("compare")
def compare_command(
    file: ClusterFile,
    runs: Annotated[
        int, typer.Option(min=LEAST_RUNS, max=1000, help="Earlier runs that are looked at.")
    ] = RUNS,
    as_json: Annotated[bool, typer.Option("--json", help="Print the JSON document.")] = False,
) -> None:
    """Compare the last burn-in with earlier ones of the same nodes and versions. Runs nothing.

    Exit status: 0 nothing fell, 3 a figure fell by more than noise, 4 there are too few earlier runs for a comparison.
    """
    cluster = load_cluster(file)
    groups = compare(RESULTS.all(cluster.name), runs)
    if not groups:
        raise BurninError(
            f"No burn-in of cluster {cluster.name} is stored on this host.", hint=f"rackwright burnin {file}"
        )
    if as_json:
        compared = [group.to_json() for group in groups]
        print_document("burnin.compare", {"cluster": cluster.name, "groups": compared})
    else:
        show_compared(groups, wide_console())
    if any(group.regressions for group in groups):
        raise typer.Exit(int(ExitCode.CHECK_FAILED))
    if any(not group.judged for group in groups):
        raise typer.Exit(int(ExitCode.UNKNOWN))

"""rackwright provision: from racked machines to an accepted cluster."""

from __future__ import annotations

from typing import Annotated

import typer

from rackwright.cli.accept import accept_command
from rackwright.cli.arguments import ClusterFile
from rackwright.cli.install import Confirm, Reinstall, carry_out, typed_serials
from rackwright.cli.lines import say
from rackwright.clusterfile.load import load_cluster
from rackwright.model.cluster import Cluster, Node


def provision_command(
    file: ClusterFile,
    confirm: Confirm = None,
    reinstall: Reinstall = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Apply without asking for confirmation.")] = False,
) -> None:
    """Install the nodes that declare it and are not ready, then apply, verify and burn in the whole cluster.

    Run again, it installs nothing that is ready, and changes nothing that is as declared.

    Exit status: 0 ACCEPTED, 3 REJECTED or a node was left alone, 4 UNDECIDED, 1 a node failed.
    """
    cluster = load_cluster(file)
    declared = [node for node in cluster.nodes if node.install is not None]
    serials = typed_serials(cluster, reinstall, declared)
    if missing := _missing(cluster, serials):
        code = carry_out(cluster, missing, confirm, serials)
        if code != 0:
            raise typer.Exit(code)
    else:
        say("every node that declares an installation is ready", err=True)
    accept_command(file, report=None, yes=yes)


def _missing(cluster: Cluster, serials: dict[str, str]) -> list[Node]:
    """Nodes to install: those whose disks do not hold what a ready run wrote, and those to be reinstalled."""
    from rackwright.install.record import read

    return [
        node
        for node in cluster.nodes
        if node.install is not None and (node.name in serials or not read(cluster.name, node.name).stands)
    ]

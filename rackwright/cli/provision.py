"""rackwright provision: from racked machines to an accepted cluster."""

from __future__ import annotations

from typing import Annotated

import typer

from rackwright.cli.accept import accept_command
from rackwright.cli.arguments import ClusterFile
from rackwright.cli.install import Confirm, Reinstall, carry_out_missing, typed_serials
from rackwright.clusterfile.load import load_cluster


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
    code = carry_out_missing(cluster, confirm, typed_serials(cluster, reinstall, cluster.nodes))
    if code != 0:
        raise typer.Exit(code)
    accept_command(file, report=None, yes=yes)

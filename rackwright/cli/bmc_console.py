"""rackwright bmc console: a node's serial console, in this terminal."""

from __future__ import annotations

import os
import subprocess
from typing import Annotated

import typer

from rackwright.bmc.fleet import passwords_of
from rackwright.bmc.open import connector, open_bmc
from rackwright.cli.arguments import ClusterFile
from rackwright.cli.lines import say
from rackwright.clusterfile.load import load_cluster
from rackwright.documents.nearest import suggest
from rackwright.errors import BmcError, RackwrightError


def console_command(
    file: ClusterFile, node: Annotated[str, typer.Argument(metavar="NODE", help="The node's name.")]
) -> None:
    """Open a node's serial console, through the ssh of its BMC or IPMI's Serial over LAN."""
    cluster = load_cluster(file, locked=False)
    if node not in cluster.by_name:
        raise RackwrightError(
            f"{file} declares no node {node}.", hint=suggest(node, cluster.by_name, what="nodes")
        )
    declared = cluster.by_name[node]
    if declared.bmc is None:
        raise BmcError(f"{node} has no BMC declared.", hint="declare `bmc` for its group: docs/bmc.md")
    client = open_bmc(declared, passwords_of(cluster, [declared])[node], connector(cluster, declared))
    try:
        command = client.console_command()
        if command is None:
            raise BmcError(
                f"The BMC of {node} offers no serial console over ssh.",
                hint="enable it on the BMC, or declare `protocol: ipmi` for Serial over LAN",
            )
        say(f"+ {' '.join(command)}", err=True)
        raise typer.Exit(_run(command))
    finally:
        client.close()


def _run(command: list[str]) -> int:
    """Run a console in this terminal."""
    try:
        return subprocess.run(command, check=False, env={**os.environ, "LC_ALL": "C"}).returncode
    except FileNotFoundError:
        raise RackwrightError(f"The program {command[0]} is not installed.") from None

"""rackwright why: who drained a node, what is wrong with it, what changed, and what to do."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.text import Text

from rackwright.cli.arguments import ClusterFile
from rackwright.cli.json_output import print_document
from rackwright.cli.terminal import STYLES, Console
from rackwright.clusterfile.load import load_cluster
from rackwright.documents.nearest import suggest
from rackwright.errors import ExitCode, RackwrightError
from rackwright.why.ask import why

_TITLES = {
    "scheduler": "in the scheduler",
    "health": "health checks, now",
    "bmc": "reported by its BMC",
    "declaration": "differs from the cluster file",
    "changes": "changed by rackwright",
    "kernel": "logged by the kernel",
}


def why_command(
    file: ClusterFile,
    node: Annotated[str, typer.Argument(metavar="NODE", help="The node's name.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print the JSON document.")] = False,
) -> None:
    """Explain the state of a node. Changes nothing.

    In this order: who drained it and why, failed health checks with what they saw, what its BMC reports
    if the node does not answer, what differs from the cluster file, what rackwright changed last, what the
    kernel logged, and what to do next.
    Exit status 0: all parts are known, 4: a part is UNKNOWN.
    """
    cluster = load_cluster(file)
    if node not in cluster.by_name:
        raise RackwrightError(
            f"{file} declares no node {node}.", hint=suggest(node, cluster.by_name, what="nodes")
        )
    with Console(stderr=True).status(f"asking about {node} ..."):
        found = why(cluster, cluster.by_name[node], file)
    if as_json:
        print_document("why", found.to_json())
    else:
        console = Console(highlight=False, soft_wrap=True)
        for part in found.parts:
            console.print(Text(_TITLES[part.name], style="bold"))
            for line in part.lines:
                mark = Text("UNKNOWN ", style="bold magenta") if part.unknown else Text("")
                console.print(Text.assemble("  ", mark, line))
            for line in part.unread:
                console.print(Text.assemble("  ", ("UNKNOWN ", STYLES["UNKNOWN"]), line))
        console.print(Text.assemble(("next: ", "bold"), found.next_step))
    raise typer.Exit(int(ExitCode.UNKNOWN if found.unknown else ExitCode.CLEAN))

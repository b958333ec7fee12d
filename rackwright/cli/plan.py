"""rackwright plan: what an apply would change on every node now."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from rackwright.cli.arguments import ClusterFile, Limit, Role, Verbose
from rackwright.cli.plan_view import show_plan
from rackwright.cli.progress import Progress
from rackwright.cli.terminal import Console
from rackwright.clusterfile.load import load_cluster
from rackwright.engine.run import plan
from rackwright.model.selection import pick


def plan_command(
    file: ClusterFile,
    limit: Limit = None,
    role: Role = None,
    out: Annotated[Path | None, typer.Option(help="Write the plan as JSON to this file.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the plan as JSON.")] = False,
    full: Annotated[bool, typer.Option("--full", help="Ignore cached results.")] = False,
    verbose: Verbose = False,
) -> None:
    """Show what apply would change on each node. Changes nothing.

    Exit status: 0 nothing to change, 2 changes pending, 4 a node is unreachable, 1 error.
    """
    cluster = load_cluster(file)
    roles = frozenset(role) if role else None
    with Progress(len(pick(cluster, limit)), Console(stderr=True)) as progress:
        result = plan(cluster, limit=limit, roles=roles, watch=progress, full=full)
    if out is not None:
        out.write_text(json.dumps(result.to_json(), indent=2) + "\n")
    if as_json:
        typer.echo(json.dumps(result.to_json(), indent=2))
    else:
        show_plan(result, Console(soft_wrap=True), verbose=verbose)
    raise typer.Exit(result.exit_code)

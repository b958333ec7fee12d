"""rackwright schema: the JSON Schemas of the cluster file and of plans."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from rackwright.clusterfile.json_schema import cluster_schema
from rackwright.clusterfile.load import load
from rackwright.plan.document import plan_schema


def schema_command(
    file: Annotated[
        Path | None, typer.Argument(metavar="[FILE]", help="A cluster file: with the roles of its site.")
    ] = None,
    plan: Annotated[bool, typer.Option("--plan", help="Of plan.json instead of the cluster file.")] = False,
) -> None:
    """Print the JSON Schema of the cluster file, every role's options included.

    Editors complete and check from it: save it beside your cluster files and start each file with
    `# yaml-language-server: $schema=cluster.schema.json`.
    """
    known = load(file, locked=False).known if file is not None else None
    schema = plan_schema() if plan else cluster_schema(known)
    typer.echo(json.dumps(schema, indent=2))

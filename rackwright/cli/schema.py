"""rackwright schema: the JSON Schemas of the cluster file and of everything that `--json` prints."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from rackwright.cli.lines import say
from rackwright.clusterfile.json_schema import cluster_schema
from rackwright.clusterfile.load import load
from rackwright.documents.nearest import suggest
from rackwright.errors import RackwrightError


def schema_command(
    name: Annotated[
        str | None, typer.Argument(metavar="[NAME]", help="Of this document; default: the cluster file.")
    ] = None,
    listed: Annotated[
        bool, typer.Option("--list", help="List the documents, each with the command that prints it.")
    ] = False,
    plan: Annotated[bool, typer.Option("--plan", help="As `schema plan`.")] = False,
    site: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Of the cluster file, with the roles of this file's site."),
    ] = None,
) -> None:
    """Print the JSON Schema of the cluster file, every role's options included, or of a document of `--json`.

    Editors complete and check from it: save it beside your cluster files and start each file with
    `# yaml-language-server: $schema=cluster.schema.json`.
    """
    if site is not None:
        typer.echo(json.dumps(cluster_schema(load(site, locked=False).known), indent=2))
        return
    from rackwright.schemas.known import names, schema  # it loads the models of all documents

    known = names()
    if listed:
        width = max(map(len, known))
        say("\n".join(f"{each:<{width}}  {command}" for each, command in known.items()))
        return
    chosen = "plan" if plan else name or "cluster"
    if chosen not in known:
        raise RackwrightError(
            f"No document is named {chosen}.", hint=suggest(chosen, known, what="documents")
        )
    typer.echo(json.dumps(schema(chosen), indent=2))

"""rackwright validate: every mistake of a cluster file at once, offline."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Annotated

import typer

from rackwright.cli.arguments import ClusterFile
from rackwright.clusterfile.load import load_cluster
from rackwright.errors import ClusterFileError, ExitCode

JSON_VERSION = 1


def validate_command(
    file: ClusterFile,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON, for programs.")] = False,
) -> None:
    """Check a cluster file: every mistake at once, with its place and a hint.

    Works offline and reads nothing but the file. The JSON has `version` (1), `file`, `valid` and
    `problems`, in file order, each with `file`, `line` and `column` (from 1), `path`, `value`,
    `message` and `hint`; `path` is empty for the file as a whole, and `value` and `hint` may be null.

    Exit status: 0 the file is correct, 1 it is not.
    """
    try:
        cluster = load_cluster(file)
    except ClusterFileError as error:
        if as_json:
            problems = [asdict(problem) for problem in error.problems]
            _print_json({"file": str(file), "valid": False, "problems": problems})
        else:
            typer.echo("\n\n".join(str(problem) for problem in error.problems))
            count = len(error.problems)
            typer.echo(f"\n{file}: {count} mistake{'' if count == 1 else 's'}", err=True)
        raise typer.Exit(int(ExitCode.ERROR)) from None
    if as_json:
        _print_json({"file": str(file), "valid": True, "problems": []})
    else:
        nodes = f"{len(cluster.nodes)} node{'' if len(cluster.nodes) == 1 else 's'}"
        typer.echo(f"{file}: correct, {nodes}")


def _print_json(content: dict[str, object]) -> None:
    typer.echo(json.dumps({"version": JSON_VERSION, **content}, indent=2))

"""rackwright validate: every mistake of a cluster file at once, offline."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from rackwright.cli.arguments import ClusterFile
from rackwright.cli.json_output import print_document
from rackwright.cli.lines import say
from rackwright.clusterfile.load import load
from rackwright.errors import ClusterFileError, ExitCode, Problem


def validate_command(
    file: ClusterFile,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON, for programs.")] = False,
    strict: Annotated[bool, typer.Option("--strict", help="Fail on warnings too.")] = False,
) -> None:
    """Check a cluster file: every mistake at once, with its place and a hint, then warnings.

    A mistake is refused by every command; a warning is about what is allowed and rarely meant.

    Works offline; reads the file, the lock next to it and the key files it names. The JSON has `file`, `valid` and
    `problems` and `warnings`, each in file order with `file`, `line` and `column` (from 1), `path`, `value`,
    `message` and `hint`; `path` is empty for the file as a whole, and `value` and `hint` may be null.

    Exit status: 0 the file is correct, 1 it is not, or with --strict: there are warnings.
    """
    nodes = 0
    problems: tuple[Problem, ...] = ()
    try:
        loaded = load(file, warn=True)
        nodes, warnings = len(loaded.cluster.nodes), loaded.warnings
    except ClusterFileError as error:
        problems, warnings = error.problems, error.warnings
    if as_json:
        _print_json(file, problems, warnings)
    else:
        blocks = [str(problem) for problem in problems] + [f"warning: {warning}" for warning in warnings]
        if blocks:
            say("\n\n".join(blocks))
        say(_summary(file, nodes, len(problems), len(warnings)), err=bool(problems))
    if problems or (strict and warnings):
        raise typer.Exit(int(ExitCode.ERROR))


def _summary(file: Path, nodes: int, mistakes: int, warnings: int) -> str:
    verdict = _count(mistakes, "mistake") if mistakes else f"correct, {_count(nodes, 'node')}"
    more = f", {_count(warnings, 'warning')}" if warnings else ""
    return ("\n" if mistakes or warnings else "") + f"{file}: {verdict}{more}"


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def _print_json(file: Path, problems: Sequence[Problem], warnings: Sequence[Problem]) -> None:
    content = {
        "file": str(file),
        "valid": not problems,
        "problems": [asdict(problem) for problem in problems],
        "warnings": [asdict(warning) for warning in warnings],
    }
    print_document("validate", content)

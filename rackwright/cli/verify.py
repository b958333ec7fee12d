"""rackwright verify: run the checks of every role on its nodes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rackwright.cli.arguments import ClusterFile, Limit, Role
from rackwright.cli.json_output import print_document
from rackwright.cli.lines import say
from rackwright.cli.terminal import Console, wide_console
from rackwright.cli.verify_view import show_verify
from rackwright.clusterfile.load import load_cluster
from rackwright.verify import verify
from rackwright.verify.junit import write_junit


def verify_command(
    file: ClusterFile,
    limit: Limit = None,
    role: Role = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the JSON document.")] = False,
    junit: Annotated[Path | None, typer.Option(metavar="FILE", help="Also write JUnit XML.")] = None,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Show what passes too.")] = False,
) -> None:
    """Verify nodes against the declaration: run the checks of every role.

    Exit status 0: nothing failed and nothing is unknown, 3: a check failed, 4: something is
    UNKNOWN.
    """
    cluster = load_cluster(file)
    with Console(stderr=True).status(f"asking the nodes of {cluster.name} ..."):
        report = verify(cluster, limit=limit, roles=frozenset(role) if role else None)
    if limit is None and not role and (problem := report.remember()) is not None:
        say(problem, err=True)
    if junit is not None:
        write_junit(report, junit)
    if as_json:
        print_document("verify", report.to_json())
    else:
        show_verify(report, wide_console(), verbose=verbose)
    raise typer.Exit(int(report.exit_code))

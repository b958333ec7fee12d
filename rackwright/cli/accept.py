"""rackwright accept: everything, one verdict, a report."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from rackwright.accept import accept
from rackwright.accept.write import default_folder, write_report
from rackwright.cli.accept_view import Acceptance, show_verdict
from rackwright.cli.arguments import ClusterFile
from rackwright.cli.terminal import Console
from rackwright.clusterfile.load import load_cluster
from rackwright.errors import RackwrightError


def accept_command(
    file: ClusterFile,
    report: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Where to write the report; default reports/<cluster>-<UTC time>."),
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Apply without asking for confirmation.")] = False,
) -> None:
    """Validate, apply, plan again, verify, measure storage and burn in; one verdict and a report.

    Exit status: 0 ACCEPTED, 3 REJECTED, 4 UNDECIDED (something is UNKNOWN), 1 the cluster file is
    wrong.
    """
    cluster = load_cluster(file)
    if not yes and not sys.stdin.isatty():
        raise RackwrightError(
            "accept asks for confirmation, and standard input is not a terminal.",
            hint="review `rackwright plan`, then run again with --yes",
        )
    out = Console(soft_wrap=True)
    acceptance = Acceptance(cluster, out, yes=yes)
    found = accept(cluster, acceptance.stages(), progress=acceptance.show_stage)
    _, page = write_report(found, report if report is not None else default_folder(found))
    show_verdict(found, out)
    out.print(Text(f"report: {page}"))
    raise typer.Exit(int(found.exit_code))

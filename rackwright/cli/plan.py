"""rackwright plan: what an apply would change on every node now."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from rackwright.atomic_write import write_atomically
from rackwright.cli.arguments import Limit, Role, Verbose
from rackwright.cli.lines import say
from rackwright.cli.plan_view import show_plan
from rackwright.cli.progress import Progress
from rackwright.cli.terminal import Console
from rackwright.clusterfile.load import load_cluster
from rackwright.engine.run import plan
from rackwright.errors import ExitCode, RackwrightError
from rackwright.model.selection import pick
from rackwright.plan.document import read_plan
from rackwright.plan.node_plan import PlanResult

_HINT = "e.g. rackwright plan inventory/lab.yaml, or rackwright plan --from plan.json --html plan.html"


class UsageError(RackwrightError):
    """The arguments do not go together."""

    exit_code = ExitCode.USAGE


def plan_command(
    file: Annotated[
        Path | None, typer.Argument(metavar="FILE", help="The cluster file, e.g. inventory/lab.yaml.")
    ] = None,
    limit: Limit = None,
    role: Role = None,
    out: Annotated[Path | None, typer.Option(help="Write the plan as JSON to this file.")] = None,
    html: Annotated[
        Path | None, typer.Option(help="Write the plan to this file as a page of HTML, for reviewers.")
    ] = None,
    stored: Annotated[
        Path | None,
        typer.Option("--from", metavar="PLAN", help="Show a plan of `plan --out`; no node is asked."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the plan as JSON.")] = False,
    full: Annotated[bool, typer.Option("--full", help="Ignore cached results.")] = False,
    verbose: Verbose = False,
) -> None:
    """Show what apply would change on each node. Changes nothing.

    A large plan is folded to two screens; what interrupts a service, erases a disk, reboots or fails is always named.

    Exit status: 0 nothing to change, 2 changes pending, 4 a node is unreachable, 1 error.
    """
    result, written = (
        _plan(file, limit, role, full) if stored is None else _stored(file, stored, limit, role, full)
    )
    if out is not None:
        out.write_text(json.dumps(result.to_json(), indent=2) + "\n")
    if html is not None:
        _write_page(html, result, written)
    if as_json:
        typer.echo(json.dumps(result.to_json(), indent=2))
    else:
        show_plan(result, Console(soft_wrap=True), verbose=verbose, more="-v, or a page of --html FILE,")
    raise typer.Exit(result.exit_code)


def _plan(
    file: Path | None, limit: str | None, role: list[str] | None, full: bool
) -> tuple[PlanResult, datetime]:
    if file is None:
        raise UsageError("plan needs a cluster file or --from PLAN.", hint=_HINT)
    cluster = load_cluster(file)
    roles = frozenset(role) if role else None
    with Progress(len(pick(cluster, limit)), Console(stderr=True)) as progress:
        return plan(cluster, limit=limit, roles=roles, watch=progress, full=full), datetime.now(UTC)


def _stored(
    file: Path | None, stored: Path, limit: str | None, role: list[str] | None, full: bool
) -> tuple[PlanResult, datetime]:
    if file is not None or limit is not None or role or full:
        raise UsageError(
            "--from shows a plan as it was made: leave out FILE, --limit, --role and --full.", hint=_HINT
        )
    return read_plan(stored), datetime.fromtimestamp(stored.stat().st_mtime, UTC)


def _write_page(path: Path, result: PlanResult, written: datetime) -> None:
    from rackwright.plan.page import plan_page  # it loads jinja2, which most plans do not need

    try:
        write_atomically(path, plan_page(result, written), mode=0o644, durable=False)
    except OSError as error:
        raise RackwrightError(f"The page {path} cannot be written: {error.strerror}.") from error
    say(f"{path} has the plan as a page", err=True)

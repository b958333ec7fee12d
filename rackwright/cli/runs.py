"""rackwright runs: earlier runs, their time and their user."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Annotated, Any

import typer
from rich.table import Table

from rackwright.cli.terminal import Console
from rackwright.engine.journal import Run, read_run, runs
from rackwright.model.ranges import fold


def runs_command(
    run: Annotated[
        str | None, typer.Argument(metavar="ID", help="Show this run; without it, list all.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """List the runs that changed something, or show one of them."""
    if run is not None:
        _show(read_run(run), as_json)
    elif as_json:
        typer.echo(json.dumps([_summary(known) for known in runs()], indent=2))
    else:
        table = Table("run", "cluster", "state", "nodes", "by", "command", box=None)
        for known in runs():
            summary = _summary(known)
            table.add_row(
                summary["run"],
                summary["cluster"],
                summary["state"],
                str(summary["nodes"]),
                summary["by"],
                summary["command"],
            )
        Console(soft_wrap=True).print(table)


def _summary(run: Run) -> dict[str, Any]:
    return {
        "run": run.run,
        "cluster": run.begin.get("cluster", "?"),
        "state": run.state,
        "nodes": len(run.nodes),
        "failed": sorted(name for name, node in run.nodes.items() if not node["ok"]),
        "by": f"{run.begin.get('user', '?')}@{run.begin.get('host', '?')}",
        "command": run.begin.get("command", "?"),
    }


def _show(run: Run, as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps({**_summary(run), "events": run.events}, indent=2))
        return
    summary = _summary(run)
    typer.echo(
        f"run {run.run} of {summary['cluster']}: {run.state}, by {summary['by']}: {summary['command']}"
    )
    for event in run.events:
        at = datetime.fromtimestamp(event["at"], UTC).strftime("%H:%M:%S")
        if event["event"] == "finish":
            typer.echo(f"{at} {event['node']}: {event['role']}: {event['name']}: {event['outcome']}")
        elif event["event"] == "node":
            state = "done" if event["ok"] else f"failed: {event['error']}"
            typer.echo(f"{at} {event['node']}: {state}")
    for event in run.open_operations:
        typer.echo(f"not known to have ended: {event['node']}: {event['role']}: {event['name']}")
    if summary["failed"]:
        typer.echo(f"failed: {fold(summary['failed'])}")
    if run.begin and run.state in ("interrupted", "failed"):  # else it had not begun
        typer.echo(f"hint: rackwright resume {run.run}")

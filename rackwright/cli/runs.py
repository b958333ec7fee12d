"""rackwright runs: earlier runs, their time and their user."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from rackwright.boundary import printable
from rackwright.cli.json_output import print_document
from rackwright.cli.lines import say
from rackwright.cli.terminal import Console
from rackwright.clusterfile.load import load_cluster
from rackwright.engine.head_runs import all_runs, run_of_others
from rackwright.engine.journal import known_run, read_run, runs
from rackwright.engine.journal_lines import Run
from rackwright.model.ranges import fold


def runs_command(
    run: Annotated[
        str | None,
        typer.Argument(
            metavar="[ID|FILE]", help="Show this run; without it, list all of this user on this machine."
        ),
    ] = None,
    file: Annotated[
        Path | None,
        typer.Argument(
            metavar="[FILE]", help="A cluster file: the runs of all its operators, as its head has them."
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """List the runs that changed something, or show one of them.

    `rackwright runs FILE` lists those of every operator of that cluster, `rackwright runs ID FILE` shows one.
    """
    if run is not None and file is None and known_run(run) is None and Path(run).is_file():
        file = Path(run)
        run = None
    if run is not None:
        known = read_run(run) if file is None or known_run(run) else run_of_others(load_cluster(file), run)
        _show(known, as_json, file)
        return
    found, problem = runs(), None
    if file is not None:
        others = all_runs(load_cluster(file))
        found, problem = others.runs, others.problem
    if as_json:
        print_document("runs", {"runs": [_summary(known) for known in found]})
    else:
        _list(found)
        for known in found if file is not None else []:
            if known.left_drained and known.state != "running":
                nodes = printable(fold(known.left_drained), 400)
                say(f"{nodes}: left drained by run {known.run}; put back by: {_resume(known, file)}")
    if problem is not None:
        say(printable(problem), err=True)


def _list(found: list[Run]) -> None:
    table = Table("run", "cluster", "state", "nodes", "by", "command", box=None)
    for known in found:
        summary = _summary(known)
        cells = (summary[key] for key in ("run", "cluster", "state", "nodes", "by", "command"))
        table.add_row(*(printable(str(cell), 200).replace("[", r"\[") for cell in cells))
    Console(soft_wrap=True).print(table)


def _resume(known: Run, file: Path | None) -> str:
    own = file is None or known_run(known.run) is not None
    return f"rackwright resume {known.run}" + ("" if own else f" {file}")


def _summary(run: Run) -> dict[str, Any]:
    return {
        "run": run.run,
        "cluster": run.begin.get("cluster", "?"),
        "state": run.state,
        "nodes": len(run.nodes),
        "failed": sorted(name for name, node in run.nodes.items() if not node["ok"]),
        "left_drained": run.left_drained,
        "by": run.by,
        "command": run.begin.get("command", "?"),
    }


def _show(run: Run, as_json: bool, file: Path | None) -> None:
    if as_json:
        print_document("run", {**_summary(run), "events": run.events})
        return
    summary = _summary(run)
    _say(f"run {run.run} of {summary['cluster']}: {run.state}, by {summary['by']}: {summary['command']}")
    for event in run.events:
        at = datetime.fromtimestamp(event["at"], UTC).strftime("%H:%M:%S")
        if event["event"] == "finish":
            _say(f"{at} {event['node']}: {event['role']}: {event['name']}: {event['outcome']}")
        elif event["event"] == "node":
            state = "done" if event["ok"] else f"failed: {event.get('error')}"
            _say(f"{at} {event['node']}: {state}")
    for event in run.open_operations:
        _say(f"not known to have ended: {event['node']}: {event['role']}: {event['name']}")
    if summary["failed"]:
        _say(f"failed: {fold(summary['failed'])}")
    if run.left_drained and run.state != "running":
        _say(f"left drained: {fold(run.left_drained)}")
    if run.begin and run.state in ("interrupted", "failed"):  # else it had not begun
        _say(f"hint: {_resume(run, file)}")


def _say(text: str) -> None:
    """What a head has of a run is printed as any other answer of a node is."""
    say(printable(text))

"""rackwright drift: which nodes no longer match the cluster file; now, or on a schedule."""

from __future__ import annotations

import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from rackwright.atomic_write import write_atomically
from rackwright.cli.arguments import ClusterFile, Limit, Verbose
from rackwright.cli.groups import with_default
from rackwright.cli.json_output import print_document
from rackwright.cli.lines import say
from rackwright.cli.plan_view import show_outcome, show_plan, summary
from rackwright.cli.progress import Progress
from rackwright.cli.terminal import Console
from rackwright.clusterfile.load import load_cluster
from rackwright.drift.declaration import Declaration, read_declaration, seconds_of
from rackwright.drift.install import Done, Operations, install, uninstall
from rackwright.drift.notify import read_urls
from rackwright.drift.repair import refuse_read_only, repair
from rackwright.drift.report import LastInSync, document, remember
from rackwright.engine.run import plan
from rackwright.errors import RackwrightError
from rackwright.model.cluster import Cluster
from rackwright.model.ranges import fold
from rackwright.model.selection import pick
from rackwright.plan.node_plan import PlanResult
from rackwright.state_folder import state_folder
from rackwright.textfiles import TEXTFILES

Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")]


drift_app = typer.Typer(
    cls=with_default("check"),
    help="Report nodes that no longer match the cluster file: now (`drift FILE`) or on a schedule (`install`).",
)


@drift_app.command("check")
def check_command(
    file: ClusterFile,
    limit: Limit = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
    textfile: Annotated[
        Path | None, typer.Option(help="Write metrics for node_exporter's textfile collector.")
    ] = None,
    full: Annotated[bool, typer.Option("--full", help="Ignore cached results.")] = False,
    repair: Annotated[
        bool, typer.Option("--repair", help="Repair roles with `drift: repair`, by nothing disruptive.")
    ] = False,
) -> None:
    """Compare every node with the cluster file. Changes nothing without --repair.

    Exit status: 0 in sync, 2 drift, 4 a node is unreachable, 1 error.
    """
    cluster = load_cluster(file)
    began = time.monotonic()
    repaired = None
    with Progress(len(pick(cluster, limit)), Console(stderr=True)) as progress:
        result = plan(cluster, limit=limit, watch=progress, full=full)
        if repair:
            result, repaired = _repair(cluster, result)
    seconds, now = time.monotonic() - began, time.time()
    memory = state_folder(cluster.name) / "in-sync.json"
    last_in_sync = LastInSync.read(memory).updated(result, now)
    try:
        last_in_sync.write(memory)
    except OSError as error:
        say(f"{memory} cannot be written, the result is not remembered: {error.strerror}", err=True)
    if limit is None and (problem := remember(result, now)) is not None:
        say(problem, err=True)
    if textfile is not None:
        from rackwright.drift.prometheus import plan_metrics  # loads prometheus_client: 14 ms

        metrics = plan_metrics(result, seconds, last_in_sync, now)
        write_atomically(textfile, metrics, mode=0o644, durable=False)
    if as_json:
        report = document(result, seconds, last_in_sync)
        print_document("drift", report if repaired is None else {**report, "repair": repaired})
    else:
        out = Console(soft_wrap=True)
        for name, count in (repaired or {}).get("repaired", {}).items():
            out.print(f"{name}: {count} repaired", highlight=False)
        for name, why in (repaired or {}).get("left", {}).items():
            out.print(f"{name}: not repaired: {why}", highlight=False, markup=False)
        show_plan(result, out, more=f"rackwright plan {file} -v")
    raise typer.Exit(result.exit_code)


def _repair(cluster: Cluster, found: PlanResult) -> tuple[PlanResult, dict[str, Any]]:
    """The plan after the repair, and what was repaired."""
    refuse_read_only(cluster)
    done = repair(cluster, found)
    if done.done:
        again = plan(cluster, limit=fold(done.done))
        found = replace(found, nodes={**found.nodes, **again.nodes})
    return found, {"repaired": done.done, "left": done.left}


@drift_app.command("install")
def install_command(
    file: ClusterFile,
    every: Annotated[str, typer.Option(metavar="TIME", help="How often: 30m, 2h, 1d.")],
    on: Annotated[
        Literal["head", "here"], typer.Option(help="Which machine checks the nodes (push mode).")
    ] = "here",
    mode: Annotated[
        Literal["push", "pull"],
        typer.Option(help="push: one machine checks all nodes; pull: each node checks itself."),
    ] = "push",
    notify: Annotated[
        list[str] | None,
        typer.Option(
            metavar="URL",
            help="Notify of changes of state (apprise). @FILE (mode 0600) or - (stdin) hold URLs, one a line; "
            "one with a credential is not taken from the command line. Several times, or none.",
        ),
    ] = None,
    textfiles: Annotated[
        str, typer.Option(metavar="FOLDER", help="node_exporter's textfile folder.")
    ] = TEXTFILES,
    limit: Limit = None,
    yes: Yes = False,
    verbose: Verbose = False,
) -> None:
    """Check for drift on a schedule, declared in a file beside the cluster file.

    Exit status: 0 installed, 2 declined, 4 a node was unreachable, 1 error.
    """
    cluster = load_cluster(file)
    if mode == "pull" and notify:
        raise RackwrightError(
            "--notify needs push mode: in pull mode no machine sees the states of all nodes.",
            hint="alert on rackwright_drift_drifted in Prometheus, or use push mode",
        )
    declared = Declaration(every_seconds=seconds_of(every), mode=mode, on=on, textfiles=textfiles)
    urls = read_urls(notify) if notify is not None else None
    _end_install(install(cluster, declared, urls=urls, limit=limit, agree=_agree(yes, verbose)))


def install_as_declared(file: Path, limit: str | None, yes: bool) -> None:
    """Finish an interrupted installation, by the declaration beside the cluster file."""
    cluster = load_cluster(file)
    declared = read_declaration(cluster.path)
    if declared is None:
        raise RackwrightError(
            f"The declaration of the drift check beside {file} is gone.",
            hint=f"install it again: rackwright drift install {file} --every 30m",
        )
    _end_install(install(cluster, declared, limit=limit, agree=_agree(yes, verbose=False)))


def _end_install(done: Done) -> None:
    _show(done)
    if done.without and done.agreed:
        say(
            f"never seen in sync, so unknown until an apply: {fold(done.without)}",
            err=True,
        )
    raise typer.Exit(done.exit_code)


@drift_app.command("uninstall")
def uninstall_command(
    file: ClusterFile, limit: Limit = None, yes: Yes = False, verbose: Verbose = False
) -> None:
    """Remove the scheduled check from the nodes and from this machine.

    Exit status: 0 removed, 2 declined, 4 a node was unreachable, 1 error.
    """
    done = uninstall(load_cluster(file), limit=limit, agree=_agree(yes, verbose))
    _show(done)
    raise typer.Exit(done.exit_code)


def _agree(yes: bool, verbose: bool) -> Any:  # noqa: ANN401 - rackwright.drift.install.Agree
    def agree(plan: PlanResult | None, here: Operations) -> bool:
        out = Console(soft_wrap=True)
        if plan is not None:
            show_plan(plan, out, verbose=verbose)
        for operation in here:
            out.print(f"here: {operation.name}", highlight=False, markup=False)
        if yes:
            return True
        if not sys.stdin.isatty():
            raise RackwrightError(
                "drift asks for confirmation, and standard input is not a terminal.",
                hint="review the plan above and run again with --yes",
            )
        return typer.confirm("Continue?", default=False)

    return agree


def _show(done: Done) -> None:
    out = Console(soft_wrap=True)
    if done.result is not None:
        show_outcome(done.result, out)
    elif not done.plan.changes:
        out.print(summary(done.plan), highlight=False)

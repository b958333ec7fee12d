"""rackwright secrets rotate: replace a secret in the store and on the nodes."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from rackwright.cli.arguments import ClusterFile, Verbose
from rackwright.cli.lines import say
from rackwright.cli.plan_view import show_plan
from rackwright.cli.progress import Progress
from rackwright.cli.terminal import Console
from rackwright.clusterfile.load import load_cluster
from rackwright.drift.install import update_digests
from rackwright.drift.paths import KEY_SECRET
from rackwright.errors import ExitCode, RackwrightError
from rackwright.rotation.rotate import Rotation, rotate


def rotate_command(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The secret's name, e.g. munge_key.")],
    file: ClusterFile,
    without: Annotated[
        str | None,
        typer.Option(
            metavar="NODESET", help="Nodes that are down; they get the new value by the next apply."
        ),
    ] = None,
    confirm: Annotated[
        str | None, typer.Option(metavar="CLUSTER", help="The cluster's name, instead of typing it.")
    ] = None,
    verbose: Verbose = False,
) -> None:
    """Generate a new value, and put it on every node that uses it.

    Shows what changes on which node and in which order, and asks for the name of the cluster. Safe to interrupt: run
    it again, and it goes on where it was.

    Exit status: 0 done, 2 declined, 1 a node failed: run it again.
    """
    cluster = load_cluster(file)
    progress = Progress(len(cluster.nodes), Console(stderr=True))

    def agree(rotation: Rotation) -> bool:
        progress.pause()
        _show(rotation, verbose=verbose)
        agreed = _confirmed(cluster.name, confirm)
        progress.resume()
        return agreed

    def notice(text: str) -> None:
        progress.pause()
        say(text, err=True)
        progress.resume()

    with progress:
        done = rotate(cluster, name, without=without, agree=agree, watch=progress, notice=notice)
        note = update_digests(cluster, done) if done is not None else None
    if done is None:
        raise typer.Exit(ExitCode.CHANGES_PENDING)
    if note is not None:
        say(note, err=True)
    say(f"{name} is rotated" + (f", except on {without}" if without else ""))
    if name == KEY_SECRET:
        say(f"put the new key on the nodes: rackwright drift install {file} --every TIME")


def _show(rotation: Rotation, *, verbose: bool) -> None:
    out = Console(soft_wrap=True)
    if rotation.plan is not None:
        show_plan(rotation.plan, out, verbose=verbose)
    if rotation.unfinished:
        say(f"An earlier rotation of {rotation.name} was interrupted and is finished now.")
    say(f"Rotation of {rotation.name}:")
    for number, step in enumerate(rotation.steps(), 1):
        say(f"  {number}. {step}")


def _confirmed(cluster: str, given: str | None) -> bool:
    if given is None and not sys.stdin.isatty():
        raise RackwrightError(
            "rotate asks for confirmation, and standard input is not a terminal.",
            hint=f"review the plan above and run again with --confirm {cluster}",
        )
    answer = typer.prompt("Type the name of the cluster to go on", default="") if given is None else given
    if answer != cluster:
        say(f"`{answer}` is not the name of the cluster, which is {cluster}; nothing was changed", err=True)
    return answer == cluster

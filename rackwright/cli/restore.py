"""rackwright restore: put the backup of a head back."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from rackwright.backup.catalogue import made
from rackwright.boundary import printable
from rackwright.cli.arguments import ClusterFile
from rackwright.cli.lines import say
from rackwright.clusterfile.load import load_cluster
from rackwright.errors import ExitCode, RackwrightError
from rackwright.model.cluster import Cluster, Node
from rackwright.model.ranges import fold
from rackwright.model.selection import pick
from rackwright.restore.run import available, fetch_backup, restore
from rackwright.restore.targets import Restoring, heads_with_state

Source = Annotated[
    str | None,
    typer.Option(
        "--from",
        metavar="BACKUP",
        help="Name of a backup, or path of a folder that --fetch made. Default: the newest.",
    ),
]
Fetch = Annotated[
    Path | None,
    typer.Option(metavar="FOLDER", help="Copy the backup, still encrypted, to this folder and stop."),
]
Confirm = Annotated[
    str | None,
    typer.Option(
        metavar="CLUSTER", help="The cluster's name, instead of a prompt, if the restore destroys state."
    ),
]


def restore_command(
    file: ClusterFile,
    source: Source = None,
    node: Annotated[
        str | None, typer.Option(metavar="HEAD", help="Only this head. Default: all heads that have backups.")
    ] = None,
    listed: Annotated[bool, typer.Option("--list", help="Only list the head's backups.")] = False,
    fetch: Fetch = None,
    yes: Annotated[
        bool,
        typer.Option(
            "--yes", "-y", help="Do not ask for confirmation; not enough if the restore destroys state."
        ),
    ] = False,
    confirm: Confirm = None,
) -> None:
    """Restore what the cluster file cannot rebuild on a head: job history, accounts, the queue, all that its roles back up.

    Apply first, so that the programs are there. On a head with a queue, job history or undeclared accounts it asks for the
    cluster's name. Safe to interrupt: run it again.

    Exit status: 0 done, 2 declined, 1 failed: run it again.
    """
    cluster = load_cluster(file)
    heads = _heads(cluster, node)
    if listed:
        for head in heads:
            _list(cluster, head)
        return
    if fetch is not None:
        _fetch(cluster, heads, source, fetch)
        return
    done = restore(
        cluster, heads, source, agree=lambda restoring: _agree(restoring, yes, confirm), notice=_notice
    )
    if done is None:
        raise typer.Exit(ExitCode.CHANGES_PENDING)
    for line in done.lines:
        say(line)
    say(f"next: rackwright verify {file}")


def _notice(text: str) -> None:
    say(text, err=True)


def _heads(cluster: Cluster, limit: str | None) -> tuple[Node, ...]:
    """Those that are put back: all that have something, or the named ones of them."""
    heads = heads_with_state(cluster)
    asked = pick(cluster, limit) if limit is not None else heads
    names = ", ".join(head.name for head in heads)
    others = [node.name for node in asked if node not in heads]
    if others or not asked:
        raise RackwrightError(
            f"{fold(others) or 'This cluster'} has nothing to restore.",
            hint=f"one of: {names}" if heads else "no role of this cluster backs anything up",
        )
    return tuple(asked)


def _fetch(cluster: Cluster, heads: tuple[Node, ...], name: str | None, into: Path) -> None:
    if name is not None and ("/" in name or len(heads) > 1):
        raise RackwrightError(
            "--from names one backup in the place of one head.",
            hint=f"e.g. --node {heads[0].name} --from NAME",
        )
    for head in heads:
        say(str(fetch_backup(cluster, head, name, into, _notice)))


def _list(cluster: Cluster, head: Node) -> None:
    listing = available(cluster, head)
    for manifest in listing.backups:
        say(_line(manifest))
    for broken in listing.broken:
        say(f"not usable: {broken}", err=True)
    if not listing.backups:
        say(f"{listing.place} of {head.name} has no backup", err=True)


def _line(manifest: dict[str, Any]) -> str:
    size = sum(part["size"] for part in manifest["parts"])
    parts = ", ".join(part["name"] for part in manifest["parts"])
    when = datetime.fromtimestamp(made(manifest["name"]), UTC)
    return f"{manifest['name']}  {when:%Y-%m-%d %H:%M} UTC  {size} bytes  {parts}"


def _agree(restoring: Restoring, yes: bool, confirm: str | None) -> bool:
    _show(restoring)
    if restoring.needs_typing:
        _typed(restoring.cluster, confirm)
        return True
    if yes:
        return True
    if not sys.stdin.isatty():
        raise RackwrightError(
            "restore asks for confirmation, and standard input is not a terminal.",
            hint="read the lines above and run again with --yes",
        )
    return typer.confirm("Finish it?" if restoring.finishes else "Restore that?", default=False)


def _show(restoring: Restoring) -> None:
    if restoring.finishes:
        names = ", ".join(target.backup for target in restoring.targets)
        units = ", ".join(f"{unit} on {node}" for node, unit in restoring.stopped)
        say(f"an interrupted restore has put back all of {names}; nothing is overwritten", err=True)
        say(f"left to do: start {units or 'no unit'}", err=True)
        return
    for target in restoring.targets:
        parts = ", ".join(part.about for part in target.parts)
        say(f"restore {target.backup} to {target.node.name}: {parts}", err=True)
    if restoring.stopped:
        say(
            "stopped meanwhile: " + ", ".join(f"{unit} on {node}" for node, unit in restoring.stopped),
            err=True,
        )
    for node in restoring.unfinished:
        say(f"{node} has an unfinished restore, which this one replaces", err=True)
    for node, lines in restoring.destroyed.items():
        for line in lines:
            say(f"{node}: destroyed: {line}", err=True)
    for node, lines in restoring.unknown.items():
        for line in lines:
            say(f"{node}: it is not known whether anything would be destroyed: {line}", err=True)


def _typed(cluster: Cluster, confirm: str | None) -> None:
    """RackwrightError unless the cluster's name was typed: --yes is not enough."""
    if confirm is None and not sys.stdin.isatty():
        raise RackwrightError(
            "restore asks for the cluster's name, and standard input is not a terminal.",
            hint=f"look at what is destroyed above and run again with --confirm {cluster.name}",
        )
    typed = (
        confirm
        if confirm is not None
        else typer.prompt(
            f"Type the cluster's name, {cluster.name}, to destroy that",
            default="",
            show_default=False,
            err=True,
        )
    )
    if typed.strip() != cluster.name:
        raise RackwrightError(
            f"{printable(typed, 60)!r} is not the cluster's name; nothing was changed.",
            hint=f"destroy what is listed above with: --confirm {cluster.name}",
        )

"""The typed confirmation before nodes lose power."""

from __future__ import annotations

import socket
import sys
from collections.abc import Sequence

import typer

from rackwright.bmc.interface import PowerAction
from rackwright.boundary import printable
from rackwright.cli.lines import say
from rackwright.engine.reboots import jobs_on
from rackwright.errors import RackwrightError
from rackwright.model.cluster import Cluster, Node
from rackwright.model.ranges import fold
from rackwright.ssh.side_by_side import side_by_side

_SSH_SECONDS = 2.0
_AT_ONCE = 64
_EFFECT = {
    PowerAction.OFF: "cuts the power of",
    PowerAction.SOFT: "shuts down",
    PowerAction.CYCLE: "cuts the power of, and switches on again,",
    PowerAction.RESET: "resets",
}


def agree(cluster: Cluster, nodes: Sequence[Node], action: PowerAction, confirm: str | None) -> None:
    """Print what is lost and have the nodes typed; RackwrightError where they are not."""
    names = fold(node.name for node in nodes)
    say(f"power {action.value} {_EFFECT[action]} {names}, {len(nodes)} in all", err=True)
    if alive := answering(cluster, nodes):
        say(f"running, since ssh answers: {fold(alive)}", err=True)
    for line in _jobs(cluster, nodes):
        say(line, err=True)
    typed = confirm if confirm is not None else _typed(names)
    if typed.strip() != names:
        raise RackwrightError(
            f"{printable(typed, 60)!r} is not {names}; nothing was changed.",
            hint=f"confirm these nodes with: --confirm {names}",
        )


def answering(cluster: Cluster, nodes: Sequence[Node]) -> list[str]:
    """Those of the nodes whose ssh answers."""
    with side_by_side(min(_AT_ONCE, len(nodes))) as threads:
        return [
            node.name
            for node, alive in zip(
                nodes, threads.map(lambda node: _ssh_answers(cluster, node), nodes), strict=True
            )
            if alive
        ]


def _ssh_answers(cluster: Cluster, node: Node) -> bool:
    address = str(cluster.management_address(node))
    if node.lab is not None:
        from rackwright.lab import netns  # a real site never loads the lab

        if netns.rack_is_up(cluster.name):
            return netns.ssh_answers(cluster.name, address, cluster.ssh.port, _SSH_SECONDS)
    try:
        with socket.create_connection((address, cluster.ssh.port), _SSH_SECONDS) as opened:
            opened.settimeout(_SSH_SECONDS)
            return opened.recv(4) == b"SSH-"
    except OSError:
        return False


def _jobs(cluster: Cluster, nodes: Sequence[Node]) -> list[str]:
    """The jobs that end with their nodes, or that it is not known."""
    try:
        running = jobs_on(cluster, [node.name for node in nodes])
    except RackwrightError as error:
        return [f"jobs on these nodes: UNKNOWN: {error.message}"]
    return [f"{name} runs {', '.join(map(str, jobs))}" for name, jobs in running.items()]


def _typed(names: str) -> str:
    if not sys.stdin.isatty():
        raise RackwrightError(
            "The nodes must be typed to confirm, and standard input is not a terminal.",
            hint=f"look at the nodes above and run again with --confirm {names}",
        )
    typed: str = typer.prompt(f"Type {names} to confirm", default="", show_default=False, err=True)
    return typed

"""rackwright install: an operating system on machines that have none, through their BMCs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer

from rackwright.boundary import printable
from rackwright.cli.arguments import ClusterFile, Limit
from rackwright.cli.lines import say
from rackwright.cli.machines_view import Steps, exit_code, show_outcomes, show_plan
from rackwright.cli.nodes_consent import agree_to_nodes
from rackwright.cli.terminal import Console
from rackwright.clusterfile.load import load_cluster
from rackwright.durations import Durations
from rackwright.errors import RackwrightError
from rackwright.install.states import State
from rackwright.model.cluster import Cluster, Node
from rackwright.model.selection import pick

Reinstall = Annotated[
    list[str] | None,
    typer.Option(metavar="NODE=SERIAL", help="Erase a node that was ready before: its serial number, typed."),
]
Confirm = Annotated[
    str | None, typer.Option(metavar="NODESET", help="What the confirmation asks you to type: the nodes.")
]


def install_command(
    file: ClusterFile,
    limit: Limit = None,
    confirm: Confirm = None,
    reinstall: Reinstall = None,
    erase: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NODE=SERIAL",
            help="Let a running installation erase a disk of a held node: the disk's serial number, typed. Installs nothing.",
        ),
    ] = None,
) -> None:
    """Install nodes: boot an agent through their BMCs, write the declared image to the declared disk, log in.
    Where an installer is declared, it boots after the agent and writes the disk.

    A machine that is on, that answers ssh, or whose BMC is another machine's, is left alone. A disk that holds anything is
    held until its serial number is typed. Run again to go on with what was interrupted; without --limit, nodes that are
    ready are left out.

    Exit status: 0 every node is ready, 1 a node failed, 3 a node was left alone.
    """
    cluster = load_cluster(file, locked=False)
    if erase:
        _erase(cluster, erase)
        return
    if limit is not None:
        nodes = list(pick(cluster, limit))
        raise typer.Exit(carry_out(cluster, nodes, confirm, typed_serials(cluster, reinstall, nodes)))
    serials = typed_serials(cluster, reinstall, cluster.nodes)
    raise typer.Exit(carry_out_missing(cluster, confirm, serials))


def carry_out_missing(cluster: Cluster, confirm: str | None, serials: dict[str, str]) -> int:
    """Install the nodes whose disks do not hold what a finished run wrote, and those to be reinstalled; the exit status."""
    from rackwright.install.record import read  # with its room's modules, which --help does not need

    declared = [node for node in cluster.nodes if node.install is not None]
    missing = [node for node in declared if node.name in serials or not read(cluster.name, node.name).stands]
    if declared and not missing:
        say("every node that declares an installation is ready", err=True)
        return 0
    return carry_out(cluster, missing, confirm, serials)


def carry_out(cluster: Cluster, nodes: Sequence[Node], confirm: str | None, serials: dict[str, str]) -> int:
    """Show what would be done, ask, and do it; the exit status."""
    from rackwright.bmc.open import opener  # loads the client of the BMCs
    from rackwright.install.run import Asked, Installation

    if not nodes:
        raise RackwrightError(
            "No node declares an installation.",
            hint="e.g. `install: {image: images/worker, ...}` in its group",
        )
    console = Console(stderr=True)
    steps = Steps(console, Durations(cluster.name, "install"))
    installation = Installation(cluster, Asked("install", tuple(nodes), serials), opener(cluster), steps)
    show_plan(console, nodes, "installed: what is on the declared disks is lost")
    agree_to_nodes([node.name for node in nodes], confirm)
    installation.prepare(lambda text: say(text, err=True))
    with steps.live():
        outcomes = installation.run()
    show_outcomes(Console(), outcomes)
    return int(exit_code(outcomes, State.READY))


def typed_pairs(cluster: Cluster, pairs: Sequence[str] | None, option: str) -> list[tuple[str, str]]:
    """Each NODE=SERIAL as given to an option; a node with two disks is given twice to --erase."""
    found = []
    for pair in pairs or ():
        name, equals, serial = pair.partition("=")
        if not equals or not serial or name not in cluster.by_name:
            raise RackwrightError(
                f"{option} takes NODE=SERIAL, and {printable(pair, 60)!r} is not that, or names no node of {cluster.name}.",
                hint=f"e.g. {option} {cluster.nodes[-1].name}=CZJ0420G3K",
            )
        found.append((name, serial))
    return found


def typed_serials(
    cluster: Cluster, pairs: Sequence[str] | None, nodes: Sequence[Node], option: str = "--reinstall"
) -> dict[str, str]:
    """Node to the serial number that was typed to agree to what the option is for; each is one of these nodes."""
    serials: dict[str, str] = {}
    for name, serial in typed_pairs(cluster, pairs, option):
        if name not in {node.name for node in nodes}:
            raise RackwrightError(
                f"{option} names {name}, which is not among the nodes of this run.",
                hint="remove it, or choose the node with --limit",
            )
        if serials.setdefault(name, serial) != serial:
            raise RackwrightError(f"{option} gives {name} two serial numbers.", hint="keep one of them")
    return serials


def _erase(cluster: Cluster, pairs: Sequence[str]) -> None:
    from rackwright.install.run import confirm

    for name, serial in typed_pairs(cluster, pairs, "--erase"):
        signs = confirm(cluster, cluster.by_name[name], serial)
        say(f"{name}: disk {serial} may be erased in this run; it holds {', '.join(signs)}")

"""rackwright decommission: all disks of machines that are to go are erased, through their BMCs, and a certificate is kept."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import typer

from rackwright.cli.arguments import ClusterFile, Limit
from rackwright.cli.install import typed_pairs, typed_serials
from rackwright.cli.json_output import print_document
from rackwright.cli.lines import say
from rackwright.cli.machines_view import Steps, exit_code, show_outcomes, show_plan
from rackwright.cli.terminal import Console
from rackwright.clusterfile.load import load_cluster
from rackwright.errors import ExitCode, RackwrightError
from rackwright.install.states import State
from rackwright.model.cluster import Cluster, Node
from rackwright.model.selection import pick

Serial = Annotated[
    list[str] | None,
    typer.Option(metavar="NODE=SERIAL", help="The machine's serial number, typed: needed for every node."),
]


def decommission_command(
    file: ClusterFile,
    limit: Limit = None,
    serial: Serial = None,
    erase: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NODE=SERIAL",
            help="Agree to what a running `decommission` lists for a held node: the machine's serial number, typed again.",
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the certificates.")] = False,
) -> None:
    """Erase ALL disks of nodes, verify it, and keep a certificate for each; nothing can be recovered afterwards.

    An agent is booted through the BMC and lists the disks with what they hold. It waits until the machine's serial number
    is typed, here or with --erase from another terminal. A machine that is on, that answers ssh, or whose BMC is another
    machine's, is left alone.

    Exit status: 0 every disk of every node is erased and verified, 1 a node failed, 3 a node was left alone.
    """
    cluster = load_cluster(file, locked=False)
    if erase:
        _agree(cluster, erase)
        return
    if limit is None:
        raise RackwrightError(
            "`decommission` erases only nodes that are named.",
            hint=f"e.g. --limit {cluster.nodes[-1].name}",
        )
    nodes = list(pick(cluster, limit))
    serials = typed_serials(cluster, serial, nodes, "--serial")
    raise typer.Exit(int(_decommission(cluster, nodes, serials, as_json=as_json)))


def _decommission(
    cluster: Cluster, nodes: Sequence[Node], serials: dict[str, str], *, as_json: bool
) -> ExitCode:
    from rackwright.bmc.open import opener  # loads the client of the BMCs
    from rackwright.cli.erasure_consent import Consent
    from rackwright.install.erasure import MODE
    from rackwright.install.run import Asked, Installation

    console = Console(stderr=True)
    run = Installation(cluster, Asked(MODE, tuple(nodes), serials), opener(cluster), Steps(console))
    show_plan(console, nodes, "decommissioned: ALL their disks are erased for good", serials=False)
    run.prepare(lambda text: say(text, err=True))
    outcomes = run.run(Consent(cluster, nodes, console))
    show_outcomes(console, outcomes)
    certificates: dict[str, Any] = {}
    for one in outcomes:
        if not one.refused and (found := _certificate(cluster, one.node)) is not None:
            path, certificates[one.node] = found
            say(f"{one.node}: certificate ({certificates[one.node]['result']}): {path}", err=as_json)
    if as_json:
        print_document("decommission", {"cluster": cluster.name, "certificates": certificates})
    return exit_code(outcomes, State.ERASED)


def _certificate(cluster: Cluster, node: str) -> tuple[Any, dict[str, Any]] | None:
    from rackwright.install import erasure_certificate
    from rackwright.install.record import read

    return erasure_certificate.find(cluster.name, read(cluster.name, node))


def _agree(cluster: Cluster, pairs: Sequence[str]) -> None:
    from rackwright.install.erasure import MODE
    from rackwright.install.run import confirm

    for name, serial in typed_pairs(cluster, pairs, "--erase"):
        agreed = confirm(cluster, cluster.by_name[name], serial, MODE)
        say(f"{name}: all its disks are erased in this run: {'; '.join(agreed)}")

"""rackwright bmc enrol-key: a site's module-signing key into the firmware of nodes, at their serial consoles."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

import typer

from rackwright.bmc.open import opener
from rackwright.cli.arguments import ClusterFile
from rackwright.cli.firmware_view import show_each
from rackwright.cli.lines import say
from rackwright.cli.nodes_consent import agree_to_nodes
from rackwright.cli.terminal import Console
from rackwright.clusterfile.load import load_cluster
from rackwright.errors import FirmwareError
from rackwright.firmware.enrol_node import trusted
from rackwright.firmware.maintenance import exit_code, was_interrupted
from rackwright.firmware.mokutil import KeyState, SigningKey, read_key, survey
from rackwright.firmware.names import ENROL
from rackwright.firmware.run import Asked, Situation, carry_out, situation
from rackwright.model.cluster import Cluster, Node
from rackwright.model.ranges import fold
from rackwright.model.selection import pick

_INTERRUPTED = 130


def enrol_key_command(
    file: ClusterFile,
    limit: Annotated[str, typer.Option(metavar="NODESET", help="These nodes, e.g. gpu[001-016].")],
    certificate: Annotated[
        Path,
        typer.Option(
            metavar="CERTIFICATE",
            help="The certificate of the key that modules are signed with, DER or PEM.",
        ),
    ],
    at_once: Annotated[
        int, typer.Option(min=1, max=64, help="Nodes worked on at the same time; heads are always alone.")
    ] = 1,
    confirm: Annotated[
        str | None, typer.Option(metavar="NODESET", help="What the command asks you to type: the nodes.")
    ] = None,
) -> None:
    """Enrol a module-signing key (MOK): plan, typed confirmation, drain, reboot, MokManager answered, resume.

    MokManager is answered at the serial console, screen by screen, with a password that is used once. Nodes that have
    the key are left alone. Stops at the first node that fails, which stays drained.
    """
    key = read_key(certificate)
    cluster = load_cluster(file, locked=False)
    due = _due(cluster, pick(cluster, limit), key)
    if not due:
        say("nothing to do")
        raise typer.Exit(0)
    agree_to_nodes([node.name for node in due], confirm)
    outcomes = carry_out(
        cluster,
        due,
        Asked(ENROL, at_once, key=key),
        opener(cluster),
        notice=lambda node, text: say(f"{node}: {text}", err=True),
        warn=lambda text: say(text, err=True),
    )
    show_each(outcomes, "has the key")
    raise typer.Exit(_INTERRUPTED if was_interrupted(outcomes) else int(exit_code(outcomes)))


def _due(cluster: Cluster, nodes: Sequence[Node], key: SigningKey) -> list[Node]:
    """Show the plan; the nodes that something is done to: those without the key, and those an earlier run left drained."""
    if lacking := [node.name for node in nodes if node.bmc is None]:
        raise FirmwareError(
            f"No BMC is declared for {fold(lacking)}, so their consoles cannot be reached.",
            hint="declare `bmc` for them: docs/bmc.md; or leave them out of --limit",
        )
    with Console(stderr=True).status(f"asking {len(nodes)} nodes ..."):
        states = survey(cluster, nodes, key)
        known = situation(cluster, nodes)
    has = _has_key(states)
    _show(has, known, key)
    return [node for node in nodes if node.name in known.left or not has[node.name]]


def _has_key(states: Mapping[str, KeyState | str]) -> dict[str, bool]:
    """By node; FirmwareError where that is not known: nothing is changed on part of what was asked for."""
    unknown, has = [], {}
    for name, state in states.items():
        if isinstance(state, str):
            unknown.append(state if name in state else f"{name}: {state}")
        elif state is KeyState.BLOCKED:
            unknown.append(f"{name}: the key is blocked")
        else:
            has[name] = trusted(state)
    if unknown:
        raise FirmwareError(
            "Nothing was changed: " + "; ".join(one.rstrip(".") for one in unknown) + ".",
            hint="nodes have to answer ssh and have mokutil; leave others out of --limit",
        )
    return has


def _show(has: Mapping[str, bool], known: Situation, key: SigningKey) -> None:
    """What will be done to which nodes, and what prevents it."""
    if names := [name for name, there in has.items() if there]:
        say(f"{fold(names)}: has {key.name} already")
    if names := [name for name, there in has.items() if not there]:
        say(f"{fold(names)}: enrol {key.name} (SHA-256 {key.sha256}), with two reboots in a row")
    for node, jobs in known.jobs.items():
        more = f" and {len(jobs) - 5} more" if len(jobs) > 5 else ""
        say(f"{node} runs {', '.join(map(str, jobs[:5]))}{more}: it is waited for")
    for node, run in known.left.items():
        say(f"{node}: left drained by {run}: put back once it passes its checks")

"""rackwright bmc enrol-key: a site's module-signing key into the firmware of nodes, at their serial consoles."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
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
    nodes = pick(cluster, limit)
    if lacking := [node.name for node in nodes if node.bmc is None]:
        raise FirmwareError(
            f"No BMC is declared for {fold(lacking)}, so their consoles cannot be reached.",
            hint="declare `bmc` for them: docs/bmc.md; or leave them out of --limit",
        )
    with Console(stderr=True).status(f"asking {len(nodes)} nodes ..."):
        states = survey(cluster, nodes, key)
        known = situation(cluster, nodes)
    _refuse_unknown(states)
    due = [
        node
        for node in nodes
        if node.name in known.left or not trusted(states[node.name])  # type: ignore[arg-type]
    ]
    _show(states, known, key)
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


def _refuse_unknown(states: Mapping[str, KeyState | str]) -> None:
    """Nothing is changed on part of what was asked for."""
    unknown = [
        state if name in state else f"{name}: {state}"
        for name, state in states.items()
        if isinstance(state, str)
    ]
    unknown += [f"{name}: the key is blocked" for name, state in states.items() if state is KeyState.BLOCKED]
    if unknown:
        raise FirmwareError(
            "Nothing was changed: " + "; ".join(one.rstrip(".") for one in unknown) + ".",
            hint="nodes have to answer ssh and have mokutil; leave others out of --limit",
        )


def _show(states: Mapping[str, KeyState | str], known: Situation, key: SigningKey) -> None:
    """What will be done to which nodes, and what prevents it."""
    same: dict[bool, list[str]] = defaultdict(list)
    for name, state in states.items():
        same[isinstance(state, KeyState) and trusted(state)].append(name)
    if names := same[True]:
        say(f"{fold(names)}: has {key.name} already")
    if names := same[False]:
        say(f"{fold(names)}: enrol {key.name} (SHA-256 {key.sha256}), with two reboots in a row")
    for node, jobs in known.jobs.items():
        more = f" and {len(jobs) - 5} more" if len(jobs) > 5 else ""
        say(f"{node} runs {', '.join(map(str, jobs[:5]))}{more}: it is waited for")
    for node, run in known.left.items():
        say(f"{node}: left drained by {run}: put back once it passes its checks")

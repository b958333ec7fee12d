"""rackwright bmc: nodes through their baseboard management controllers."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, TypeVar

import typer

from rackwright.bmc.fleet import ask_all
from rackwright.bmc.interface import BmcClient, BootOverride, BootTarget, Power, PowerAction
from rackwright.bmc.power import switch
from rackwright.bmc.status import entry_json, read_fleet
from rackwright.cli.arguments import AsJson, ClusterFile, Limit
from rackwright.cli.bmc_consent import agree
from rackwright.cli.bmc_console import console_command
from rackwright.cli.bmc_enrol_key import enrol_key_command
from rackwright.cli.bmc_view import show_answers, show_failures, show_log, show_out_of_scope, show_status
from rackwright.cli.groups import offer
from rackwright.cli.json_output import print_document
from rackwright.cli.terminal import Console, wide_console
from rackwright.clusterfile.load import load_cluster
from rackwright.errors import BmcError, ExitCode, RackwrightError
from rackwright.model.cluster import Cluster, Node
from rackwright.model.selection import pick

bmc_app = typer.Typer(
    help="Nodes through their BMCs: power, health, event log, console, boot order, signing keys.",
)
bmc_app.command("console")(console_command)
bmc_app.command("enrol-key")(enrol_key_command)
T = TypeVar("T")
Confirm = Annotated[
    str | None,
    typer.Option(metavar="TEXT", help="What the command asks you to type: the nodes that lose power."),
]
_ACTIONS = (*(action.value for action in PowerAction), "status")
_NEED_POWER = (PowerAction.CYCLE, PowerAction.RESET)
"""Of a node that is off, they would be a start of a machine that the operator neither saw named nor typed."""
_CHANGES_WITHIN = 60.0
"""Seconds from an order to switch on or off, whose answer was lost, to the power that shows that it was carried out."""
_POLL = 2.0
_TARGETS = tuple(target.value for target in BootTarget if target is not BootTarget.HTTP)


@bmc_app.command("status")
def status_command(
    file: ClusterFile,
    limit: Limit = None,
    as_json: AsJson = False,
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Show every part, healthy ones too.")
    ] = False,
) -> None:
    """Show power, health, watts, firmware and event log of nodes, as their BMCs report them.

    Exit status: 0 nothing failed, 3 a part failed or the machine is another than declared, 4 a BMC did not answer.
    """
    cluster, nodes = _chosen(file, limit)
    with Console(stderr=True).status(f"asking {len(nodes)} BMCs ..."):
        fleet = read_fleet(cluster, nodes)
    if as_json:
        print_document("bmc.status", fleet.to_json())
    else:
        show_status(fleet, wide_console(), verbose=verbose)
    raise typer.Exit(int(fleet.exit_code))


@bmc_app.command("power")
def power_command(
    file: ClusterFile,
    action: Annotated[
        str,
        typer.Argument(
            metavar="ACTION", help=f"One of: {', '.join(_ACTIONS)}.", autocompletion=offer(_ACTIONS)
        ),
    ],
    limit: Limit = None,
    confirm: Confirm = None,
    as_json: AsJson = False,
) -> None:
    """Switch nodes on or off; `off` is the plug, `soft` the power button.

    Before nodes lose power, those that answer ssh or run jobs are named, and the nodes must be typed. Nodes that are
    on already, or off, are left alone; `cycle` and `reset` start no node that is off.
    """
    if action not in _ACTIONS:
        raise typer.BadParameter(f"{action} is not one of: {', '.join(_ACTIONS)}")
    cluster, nodes = _chosen(file, limit)
    before = _ask(cluster, nodes, lambda client: client.power(), "reading the power of")
    if action == "status":
        _print_answers(cluster, before, lambda power: power.value, "power", "bmc.power" if as_json else None)
        raise typer.Exit(_finish(nodes, before))
    answers = _switched(cluster, nodes, PowerAction(action), before, confirm)
    _print_answers(cluster, answers, str, "result", "bmc.power" if as_json else None)
    raise typer.Exit(_finish(nodes, answers, changing=True))


def _switched(
    cluster: Cluster,
    nodes: Sequence[Node],
    action: PowerAction,
    before: dict[str, Power | BmcError],
    confirm: str | None,
) -> dict[str, str | BmcError]:
    """What became of each node; those that are as wanted, off already, or whose BMC did not answer, are left alone."""
    answers: dict[str, str | BmcError] = {}
    for name, power in before.items():
        if (kept := power if isinstance(power, BmcError) else _kept(power, action)) is not None:
            answers[name] = kept
    rest = [node for node in nodes if node.name in before and node.name not in answers]
    if rest and action is not PowerAction.ON:
        agree(cluster, rest, action, confirm)  # all that lose power: those that are off are left out

    def act(client: BmcClient) -> str:
        # read again: it took a while to type the nodes, and a reset would start one that is off by now
        if (kept := _kept(client.power(), action)) is not None:
            return kept
        switch(client, action, _CHANGES_WITHIN, _pause)
        return f"power {action.value} accepted"

    return answers | _ask(cluster, rest, act, f"power {action.value} for") if rest else answers


def _pause() -> bool:
    time.sleep(_POLL)
    return False


def _kept(power: Power, action: PowerAction) -> str | None:
    """Why a node with this power is left alone; None where it is not."""
    if action is PowerAction.ON:
        return "is on already" if power is Power.ON else None
    if power is not Power.OFF:
        return None
    return f"is off: no power {action.value}" if action in _NEED_POWER else "is off already"


@bmc_app.command("log")
def log_command(
    file: ClusterFile,
    limit: Limit = None,
    lines: Annotated[
        int, typer.Option("--lines", "-n", min=1, max=1000, help="Entries of each node, the newest.")
    ] = 20,
    as_json: AsJson = False,
) -> None:
    """Show the newest entries of the hardware's event log, newest first."""
    cluster, nodes = _chosen(file, limit)
    logs = _ask(cluster, nodes, lambda client: client.event_log(lines), "reading the event log of")
    if as_json:
        entries = {
            name: {"error": log.message} if isinstance(log, BmcError) else [entry_json(one) for one in log]
            for name, log in logs.items()
        }
        print_document("bmc.log", {"cluster": cluster.name, "nodes": entries})
    else:
        show_log({name: log for name, log in logs.items() if not isinstance(log, BmcError)}, wide_console())
        show_failures(logs)
    raise typer.Exit(_finish(nodes, logs))


@bmc_app.command("identify")
def identify_command(
    file: ClusterFile,
    state: Annotated[
        str,
        typer.Argument(
            metavar="on|off", help="Switch the light on or off.", autocompletion=offer(("on", "off"))
        ),
    ] = "on",
    limit: Limit = None,
    as_json: AsJson = False,
) -> None:
    """Switch the light that shows where in the rack a node is."""
    if state not in ("on", "off"):
        raise typer.BadParameter(f"{state} is not one of: on, off")
    cluster, nodes = _chosen(file, limit)

    def act(client: BmcClient) -> str:
        client.identify(state == "on")
        return f"light {state}"

    answers = _ask(cluster, nodes, act, "switching the light of")
    _print_answers(cluster, answers, str, "light", "bmc.identify" if as_json else None)
    raise typer.Exit(_finish(nodes, answers, changing=True))


@bmc_app.command("boot-order")
def boot_order_command(
    file: ClusterFile,
    target: Annotated[
        str | None,
        typer.Argument(
            metavar="[TARGET]",
            help=f"Boot from this: {', '.join(_TARGETS)}. Default: show.",
            autocompletion=offer(_TARGETS),
        ),
    ] = None,
    limit: Limit = None,
    persistent: Annotated[
        bool, typer.Option("--persistent", help="Until it is changed; default: for the next boot alone.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Show what overrides the firmware's boot order, or set it for the next boot. Boots nothing itself."""
    if target is not None and target not in _TARGETS:
        raise typer.BadParameter(f"{target} is not one of: {', '.join(_TARGETS)}")
    cluster, nodes = _chosen(file, limit)

    def act(client: BmcClient) -> BootOverride:
        if target is not None:
            client.set_boot(BootTarget(target), once=not persistent)
        return client.boot()

    answers = _ask(cluster, nodes, act, "boot order of")
    _print_answers(cluster, answers, _described, "boot order", "bmc.boot-order" if as_json else None)
    raise typer.Exit(_finish(nodes, answers, changing=target is not None))


def _chosen(file: Path, limit: str | None) -> tuple[Cluster, tuple[Node, ...]]:
    cluster = load_cluster(file, locked=False)
    nodes = pick(cluster, limit)
    if not any(node.bmc is not None for node in nodes):
        raise RackwrightError(
            f"No BMC is declared for {limit}." if limit else f"{file} declares no BMC.",
            hint="declare `bmc` for a group of nodes: docs/bmc.md",
        )
    return cluster, nodes


def _ask(
    cluster: Cluster, nodes: Sequence[Node], ask: Callable[[BmcClient], T], what: str
) -> dict[str, T | BmcError]:
    with Console(stderr=True).status(f"{what} {len(nodes)} nodes ..."):
        return ask_all(cluster, nodes, ask)


def _print_answers(
    cluster: Cluster,
    answers: dict[str, T | BmcError],
    described: Callable[[T], str],
    name: str,
    document: str | None,
) -> None:
    texts = {node: described(one) for node, one in answers.items() if not isinstance(one, BmcError)}
    if document is not None:
        errors = {node: {"error": one.message} for node, one in answers.items() if isinstance(one, BmcError)}
        found = {node: {name: text} for node, text in texts.items()} | errors
        print_document(document, {"cluster": cluster.name, "nodes": found})
    else:
        show_answers(texts)
        show_failures(answers)


def _finish(nodes: Sequence[Node], answers: dict[str, T | BmcError], *, changing: bool = False) -> int:
    """The exit status; nodes without a BMC are named."""
    show_out_of_scope([node.name for node in nodes if node.bmc is None])
    if not any(isinstance(one, BmcError) for one in answers.values()):
        return int(ExitCode.CLEAN)
    return int(ExitCode.ERROR if changing else ExitCode.UNKNOWN)


def _described(boot: BootOverride) -> str:
    if boot.target is BootTarget.NONE:
        return "the firmware's own"
    how_long = "once" if boot.once else "until changed"
    return f"{boot.target.value}, {how_long}" + (f", {boot.http_uri}" if boot.http_uri else "")

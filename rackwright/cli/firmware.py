"""rackwright firmware: versions and BIOS settings through the BMCs, compared, updated, read back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from rackwright.bmc.interface import Power
from rackwright.bmc.open import opener
from rackwright.cli.arguments import ClusterFile, Limit
from rackwright.cli.firmware_view import (
    show_not_updated,
    show_out_of_scope,
    show_outcomes,
    show_plan,
    show_reports,
)
from rackwright.cli.json_output import print_document
from rackwright.cli.lines import say
from rackwright.cli.nodes_consent import agree_to_nodes
from rackwright.cli.terminal import Console, wide_console
from rackwright.clusterfile.load import load_cluster
from rackwright.firmware.compare import Line, NodeReport, exit_code
from rackwright.firmware.images import check_files
from rackwright.firmware.maintenance import exit_code as outcomes_exit_code
from rackwright.firmware.maintenance import was_interrupted
from rackwright.firmware.names import BIOS, UPDATE
from rackwright.firmware.plan import (
    not_updatable,
    planned_attributes,
    planned_updates,
    refuse_attributes,
    refuse_unknown,
)
from rackwright.firmware.run import Asked, carry_out, situation
from rackwright.firmware.survey import survey
from rackwright.model.cluster import Cluster
from rackwright.model.selection import pick

firmware_app = typer.Typer(
    help="Firmware and BIOS settings of nodes: compared with the declared ones, updated, read back.",
)
_INTERRUPTED = 130
Nodes = Annotated[str, typer.Option("--limit", metavar="NODESET", help="These nodes, e.g. gpu[001-016].")]
AtOnce = Annotated[
    int, typer.Option(min=1, max=64, help="Nodes worked on at the same time; heads are always alone.")
]
Confirm = Annotated[
    str | None, typer.Option(metavar="NODESET", help="What the command asks you to type: the nodes.")
]


@firmware_app.command("check")
def check_command(
    file: ClusterFile,
    limit: Limit = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the JSON document.")] = False,
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Show what is as declared, and not declared, too.")
    ] = False,
) -> None:
    """Compare versions and BIOS attributes with the declared ones. Changes nothing.

    Exit status: 0 as declared, 3 something differs, 4 something is UNKNOWN.
    """
    cluster, reports = _surveyed(file, limit)
    if as_json:
        found = [one.to_json() for one in reports]
        print_document("firmware.check", {"cluster": cluster.name, "nodes": found})
    else:
        show_reports(reports, wide_console(), verbose=verbose)
    raise typer.Exit(int(exit_code(reports)))


@firmware_app.command("update")
def update_command(file: ClusterFile, limit: Nodes, at_once: AtOnce = 1, confirm: Confirm = None) -> None:
    """Update what differs and has an image: plan, typed confirmation, drain, update, boot, read back, resume.

    Stops at the first node that fails, which stays drained. An interrupted run is finished by running it again.
    """

    cluster, reports = _surveyed(file, limit)
    refuse_unknown(reports)
    planned = planned_updates(cluster, reports)
    every = [step for of_node in planned.values() for step in of_node]
    check_files(every)
    show_not_updated(not_updatable(cluster, reports))
    asked = Asked(UPDATE, at_once, serve=any(isinstance(step.image, Path) for step in every))
    _carry_out(cluster, reports, {node: tuple(map(str, of)) for node, of in planned.items()}, asked, confirm)


@firmware_app.command("bios")
def bios_command(file: ClusterFile, limit: Nodes, at_once: AtOnce = 1, confirm: Confirm = None) -> None:
    """Set BIOS attributes that differ: plan, typed confirmation, drain, boot, read back, resume.

    Refused with the BMC's reason where an attribute is unknown, read-only or cannot have the declared value.
    """

    cluster, reports = _surveyed(file, limit, rules=True)
    refuse_unknown(reports)
    refuse_attributes(reports)
    _carry_out(cluster, reports, planned_attributes(cluster, reports), Asked(BIOS, at_once), confirm)


def _surveyed(
    file: Path, limit: str | None, *, rules: bool = False
) -> tuple[Cluster, tuple[NodeReport, ...]]:

    cluster = load_cluster(file, locked=False)
    nodes = pick(cluster, limit)
    with Console(stderr=True).status(f"asking {len(nodes)} BMCs ..."):
        return cluster, survey(cluster, nodes, rules=rules)


def _carry_out(
    cluster: Cluster,
    reports: Sequence[NodeReport],
    plan: Mapping[str, Sequence[str]],
    asked: Asked,
    confirm: str | None,
) -> NoReturn:
    """Show the plan, have the nodes typed, do it, and exit."""

    in_scope = [cluster.by_name[one.node] for one in reports if one.lines]
    known = situation(cluster, in_scope)
    nodes = [node for node in in_scope if plan.get(node.name) or node.name in known.left]
    show_out_of_scope(reports)
    if not nodes:
        say("nothing to do")
        of_kind = [replace(one, lines=tuple(_of_kind(one, asked.what))) for one in reports]
        raise typer.Exit(int(exit_code(of_kind)))
    off = [one.node for one in reports if one.reading is not None and one.reading.power is Power.OFF]
    show_plan(plan, known, [name for name in off if plan.get(name)])
    agree_to_nodes([node.name for node in nodes], confirm)
    outcomes = carry_out(
        cluster,
        nodes,
        asked,
        opener(cluster),
        notice=lambda node, text: say(f"{node}: {text}", err=True),
        warn=lambda text: say(text, err=True),
    )
    show_outcomes(outcomes, cluster.path)
    raise typer.Exit(_INTERRUPTED if was_interrupted(outcomes) else int(outcomes_exit_code(outcomes)))


def _of_kind(report: NodeReport, what: str) -> list[Line]:
    return [line for line in report.lines if line.attribute is (what == BIOS)]

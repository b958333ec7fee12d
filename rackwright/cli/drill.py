"""rackwright drill: faults in a lab rack, to see that their alerts arrive."""

from __future__ import annotations

from typing import Annotated

import typer

from rackwright.cli.arguments import ClusterFile
from rackwright.cli.drill_view import show_result, show_table
from rackwright.cli.groups import offer
from rackwright.cli.json_output import print_document
from rackwright.cli.terminal import Console
from rackwright.clusterfile.load import load_cluster
from rackwright.documents.nearest import suggest
from rackwright.drill.drills import DRILLS
from rackwright.drill.model import Outcome
from rackwright.drill.notifications import Notifications
from rackwright.drill.prepare import webhook_of, without_drill
from rackwright.drill.run import run_drills
from rackwright.drill.silenced import wait_for_silences
from rackwright.errors import ExitCode, RackwrightError
from rackwright.lab.from_cluster import rack_spec
from rackwright.lab.rack import Rack

drill_app = typer.Typer(
    help="Break a lab rack on purpose, and see that the right alert arrives.",
)


_ALERTS = tuple(dict.fromkeys(one.alert for one in DRILLS))


@drill_app.callback()
def drill() -> None:
    """A group, although it has one command."""


@drill_app.command("alerts")
def alerts_command(
    file: ClusterFile,
    alert: Annotated[
        list[str] | None,
        typer.Option(
            "--alert",
            metavar="NAME",
            help="Only this alert; may be given several times.",
            autocompletion=offer(_ALERTS),
        ),
    ] = None,
    limit: Annotated[
        float,
        typer.Option(
            metavar="SECONDS", min=10, help="How long an alert may take to fire, and again to resolve."
        ),
    ] = 300,
    as_json: Annotated[bool, typer.Option("--json", help="Print the JSON document.")] = False,
) -> None:
    """Make each fault, see its alert at a webhook through Alertmanager, heal, and see it resolve.

    FILE is a lab rack that is up and applied, with Prometheus' `hold_factor` and Alertmanager's `drill_port` set, as
    inventory/drill.yaml has them. Real nodes are never broken.
    Exit status 3: an alert did not fire or did not resolve; 4: one that was given was skipped, or all were.
    """
    cluster = load_cluster(file, locked=False)
    rack = Rack(rack_spec(cluster))
    head, port = webhook_of(cluster)
    for name in alert or ():
        if name not in _ALERTS:
            raise RackwrightError(f"No drill makes {name} fire.", hint=suggest(name, _ALERTS, what="alerts"))
    chosen = [one for one in DRILLS if not alert or one.alert in alert]
    view = Console(stderr=True, highlight=False)
    wait_for_silences(rack, head.name, limit, view.print)
    with Notifications(rack, head.name, port) as notifications:
        results = run_drills(cluster, rack, notifications, chosen, limit, lambda one: show_result(view, one))
    if as_json:
        print_document(
            "drill.alerts", {"cluster": cluster.name, "drills": [one.to_json() for one in results]}
        )
    else:
        show_table(results, () if alert else without_drill())
    raise typer.Exit(int(_status({one.outcome for one in results}, given=bool(alert))))


def _status(outcomes: set[Outcome], *, given: bool) -> ExitCode:
    """Whether the alerts work; a skipped drill proves nothing about its alert."""
    if outcomes - {Outcome.PASSED, Outcome.SKIPPED}:
        return ExitCode.CHECK_FAILED
    if Outcome.PASSED not in outcomes or (given and Outcome.SKIPPED in outcomes):
        return ExitCode.UNKNOWN
    return ExitCode.CLEAN

"""Whether drills can run on a cluster, and which are skipped."""

from __future__ import annotations

from rackwright.alerts.catalogue import ALERTS
from rackwright.drill.drills import DRILLS
from rackwright.errors import RackwrightError
from rackwright.model.cluster import Cluster, Node
from rackwright.model.monitoring import CollectsMetrics, RoutesAlerts


def webhook_of(cluster: Cluster) -> tuple[Node, int]:
    """The node that Alertmanager runs on, and the port there that it sends everything to."""
    collects = next(
        (one for node in cluster.nodes if (one := node.offers(CollectsMetrics)) is not None), None
    )
    if collects is None:
        raise RackwrightError(f"{cluster.path} runs no Prometheus.", hint="add the role prometheus")
    if not collects.shortened:
        raise RackwrightError(
            f"{cluster.path} uses production alert delays: all drills together would take hours.",
            hint="e.g. `prometheus: {interval_seconds: 3, hold_factor: 0.02}`, as in inventory/drill.yaml",
        )
    for node in cluster.nodes:
        routes = node.offers(RoutesAlerts)
        if routes is not None and routes.drill_port is not None:
            return node, routes.drill_port
    raise RackwrightError(
        f"{cluster.path} has no Alertmanager with a webhook for drills.",
        hint="e.g. `alertmanager: {drill_port: 9099}`, as in inventory/drill.yaml",
    )


def without_drill() -> tuple[str, ...]:
    """Alerts that no drill makes fire."""
    drilled = {one.alert for one in DRILLS}
    return tuple(sorted(ALERTS.keys() - drilled))

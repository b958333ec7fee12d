"""Which alerts fire, as the cluster's Prometheus has them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from rackwright.live.facts import Fact, Unknown
from rackwright.live.findings import FiringAlert
from rackwright.model.cluster import Cluster
from rackwright.prometheus.query import Query, Result

FIRING = Query('ALERTS{alertstate="firing"}')
MONITORED = Query("count by (node) (up)")
"""A node without any series is not monitored: then no alert can name it."""
Ask = Callable[[tuple[Query, ...]], tuple[Result, ...]]
_OWN = frozenset({"__name__", "alertname", "alertstate", "severity"})
_ALWAYS = frozenset({"Watchdog"})
"""Fires while alerting works."""


@dataclass(frozen=True)
class Alerts:
    """By node, and those that name no declared node."""

    of: Mapping[str, Fact[tuple[FiringAlert, ...]]]
    others: tuple[FiringAlert, ...] = field(default=())


def firing(cluster: Cluster, ask: Ask) -> Alerts:
    """RackwrightError where Prometheus cannot be asked; a query that fails makes every node Unknown."""
    fires, monitored = ask((FIRING, MONITORED))
    problem = fires.error or monitored.error
    if problem is not None:
        return Alerts({node.name: Unknown(problem) for node in cluster.nodes})
    known = {one.labels.get("node", "") for one in monitored.series}
    by_node: defaultdict[str, list[FiringAlert]] = defaultdict(list)
    others = []
    for one in fires.series:
        labels = {name: value for name, value in one.labels.items() if name not in _OWN}
        alert = FiringAlert(one.labels.get("alertname", "?"), one.labels.get("severity", "none"), labels)
        if alert.name in _ALWAYS:
            continue
        node = labels.get("node", "")
        if node in cluster.by_name:
            by_node[node].append(alert)
        else:
            others.append(alert)
    of: dict[str, Fact[tuple[FiringAlert, ...]]] = {}
    for node_name in cluster.by_name:
        seen = node_name in known or node_name in by_node
        of[node_name] = (
            tuple(sorted(by_node[node_name], key=lambda one: (one.severity, one.name)))
            if seen
            else Unknown("Prometheus has no series of it: it is not monitored")
        )
    return Alerts(of, tuple(others))

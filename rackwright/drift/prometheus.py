"""Metrics of drift checks, as text for node_exporter's textfile collector."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from prometheus_client import CollectorRegistry, Gauge, generate_latest

from rackwright.drift.report import LastInSync
from rackwright.drift.states import Found, History, State
from rackwright.plan.node_plan import PlanResult

_BY_NODE = ("cluster", "node")
_LABELS = {
    "operations": (*_BY_NODE, "role"),
    "last_check_timestamp_seconds": ("cluster",),
    "check_duration_seconds": ("cluster",),
}
_HELP = {
    "last_in_sync_timestamp_seconds": "When the node was last seen as declared.",
    "last_check_timestamp_seconds": "When the last check ended.",
    "check_duration_seconds": "How long the last check took.",
}


class _Gauges:
    """The gauges `rackwright_drift_*` of one cluster, in the order of `texts` (name -> HELP)."""

    def __init__(self, cluster: str, texts: Mapping[str, str]) -> None:
        self._cluster = cluster
        self._registry = CollectorRegistry()
        self._gauges = {
            name: Gauge(
                f"rackwright_drift_{name}", text, _LABELS.get(name, _BY_NODE), registry=self._registry
            )
            for name, text in texts.items()
        }

    def set(self, name: str, value: float, **labels: str) -> None:
        """One sample."""
        self._gauges[name].labels(cluster=self._cluster, **labels).set(value)

    def text(self) -> str:
        """All samples."""
        return generate_latest(self._registry).decode()


def push_metrics(
    cluster: str, found: Mapping[str, Found], history: History, seconds: float, now: float
) -> str:
    """Metrics of one check in push mode."""
    gauges = _Gauges(
        cluster,
        {
            "operations": "Operations that would change something, by role.",
            "drifted": "1 if the node is not as declared.",
            "answers": "Answers that are not the expected ones.",
            "unreachable": "1 if the node could not be reached.",
            "unknown": "1 if its state is not known.",
            **_HELP,
        },
    )
    for name, one in found.items():
        for role, count in sorted(one.operations.items()):
            gauges.set("operations", count, node=name, role=role)
        gauges.set("drifted", one.state is State.DRIFTED, node=name)
        gauges.set("answers", one.count, node=name)
        gauges.set("unreachable", one.state is State.UNREACHABLE, node=name)
        gauges.set("unknown", one.state is State.UNKNOWN, node=name)
        in_sync = history[name].last_in_sync
        if in_sync is not None:
            gauges.set("last_in_sync_timestamp_seconds", round(in_sync, 3), node=name)
    gauges.set("last_check_timestamp_seconds", round(now, 3))
    gauges.set("check_duration_seconds", round(seconds, 3))
    return gauges.text()


def plan_metrics(plan: PlanResult, seconds: float, last_in_sync: LastInSync, now: float) -> str:
    """Metrics of `rackwright drift FILE`."""
    gauges = _Gauges(
        plan.cluster,
        {
            "operations": "Operations that would change something, by node and role.",
            "drifted": "1 if the node is not as declared.",
            "unreachable": "1 if the node could not be reached or not be evaluated.",
            **_HELP,
        },
    )
    for name, node in plan.nodes.items():
        for role, count in sorted(Counter(operation.role for operation in node.operations).items()):
            gauges.set("operations", count, node=name, role=role)
        if node.error is None and not node.operations:
            gauges.set("operations", 0, node=name, role="")
        gauges.set("drifted", node.error is None and not node.as_declared, node=name)
        gauges.set("unreachable", node.error is not None, node=name)
        if name in last_in_sync.times:
            gauges.set("last_in_sync_timestamp_seconds", round(last_in_sync.times[name]), node=name)
    gauges.set("last_check_timestamp_seconds", round(now))
    gauges.set("check_duration_seconds", round(seconds, 3))
    return gauges.text()

"""All metrics in Prometheus' text format."""

from __future__ import annotations

from collections.abc import Iterable

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from rackwright.own_metrics.burnins import burnin_metrics
from rackwright.own_metrics.checks import drift_metrics, verify_metrics
from rackwright.own_metrics.runs import run_metrics


class _Cluster(Collector):
    def __init__(self, cluster: str) -> None:
        self._cluster = cluster

    def collect(self) -> Iterable[GaugeMetricFamily]:
        for metrics in (run_metrics, burnin_metrics, verify_metrics, drift_metrics):
            yield from metrics(self._cluster)


def metrics_text(cluster: str) -> str:
    """From the cluster's state folder alone: no node is asked. What was never done has no samples."""
    registry = CollectorRegistry()
    registry.register(_Cluster(cluster))
    return generate_latest(registry).decode()

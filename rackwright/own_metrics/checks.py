"""The last verify and the last drift check of the whole cluster, from the state folder."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from prometheus_client.core import GaugeMetricFamily

from rackwright.drift.report import LATEST as DRIFT
from rackwright.verify.report import LATEST as VERIFY


def verify_metrics(cluster: str) -> Iterator[GaugeMetricFamily]:
    """When `rackwright verify` ended, and how many results there were of each status."""
    yield from _counted(
        cluster,
        VERIFY.get(cluster),
        "rackwright_verify_last_timestamp_seconds",
        "When all checks were last made of the whole cluster.",
        "rackwright_verify_results",
        "Results of that, by status.",
        "status",
    )


def drift_metrics(cluster: str) -> Iterator[GaugeMetricFamily]:
    """When `rackwright drift` ended here; the scheduled check's own metrics are named rackwright_drift_* otherwise."""
    yield from _counted(
        cluster,
        DRIFT.get(cluster),
        "rackwright_drift_by_hand_timestamp_seconds",
        "When `rackwright drift` was last run for the whole cluster.",
        "rackwright_drift_by_hand_nodes",
        "Nodes in that, by state.",
        "state",
    )


def _counted(
    cluster: str, document: Mapping[str, Any], when: str, when_about: str, count: str, about: str, label: str
) -> Iterator[GaugeMetricFamily]:
    ended, counts = document.get("ended"), document.get("counts")
    last = GaugeMetricFamily(when, when_about, labels=["cluster"])
    counted = GaugeMetricFamily(count, about, labels=["cluster", label])
    if isinstance(ended, int | float) and isinstance(counts, dict):
        last.add_metric([cluster], ended)
        for name, number in sorted(counts.items()):
            if isinstance(number, int):
                counted.add_metric([cluster, name], number)
    yield last
    yield counted

"""Metrics as prometheus_client has them, made of samples."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric

Samples = Iterable["tuple[Sequence[str], float]"]
"""Values of labels, and the figure."""


def gauge(name: str, about: str, labels: Sequence[str], samples: Samples) -> Metric:
    """What goes up and down."""
    family = GaugeMetricFamily(name, about, labels=labels)
    for values, figure in samples:
        family.add_metric(values, figure)
    return family


def counter(name: str, about: str, labels: Sequence[str], samples: Samples) -> Metric:
    """What only grows; `name` without `_total`."""
    family = CounterMetricFamily(name, about, labels=labels)
    for values, figure in samples:
        family.add_metric(values, figure)
    return family


def summary(name: str, about: str, labels: Sequence[str], samples: Samples) -> Metric:
    """Quantiles: each one stands behind the values of the labels."""
    family = Metric(name, about, "summary")
    for values, figure in samples:
        family.add_sample(name, dict(zip((*labels, "quantile"), values)), figure)  # noqa: B905 - Python 3.9
    return family


class _Made:
    """A collector, as a registry wants one, of metrics that are already there."""

    def __init__(self, metrics: Iterable[Metric]) -> None:
        self._metrics = metrics

    def collect(self) -> Iterable[Metric]:
        """All of them."""
        return self._metrics


def exposition(metrics: Iterable[Metric]) -> bytes:
    """Prometheus' text format."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Made([metric for metric in metrics if metric.samples]))
    return generate_latest(registry)

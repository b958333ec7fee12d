"""The last run of each command that changes something."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client.core import GaugeMetricFamily

from rackwright.engine.journal import last_runs


def run_metrics(cluster: str) -> Iterator[GaugeMetricFamily]:
    """When it ended, and with which exit status."""
    labels = ["cluster", "command"]
    when = GaugeMetricFamily(
        "rackwright_run_last_timestamp_seconds",
        "When the last run that changed something ended, by command.",
        labels=labels,
    )
    status = GaugeMetricFamily(
        "rackwright_run_last_exit_status", "Its exit status; 1 where it was broken off.", labels=labels
    )
    for command, run in sorted(last_runs(cluster).items()):
        if run.exit_status is not None and run.events:
            when.add_metric([cluster, command], run.events[-1]["at"])
            status.add_metric([cluster, command], run.exit_status)
    yield when
    yield status

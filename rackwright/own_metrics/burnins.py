"""The last burn-in."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from prometheus_client.core import GaugeMetricFamily

from rackwright.burnin.store import RESULTS
from rackwright.model.ranges import fold

_COLLECTIVE = "all_reduce"


def burnin_metrics(cluster: str) -> Iterator[GaugeMetricFamily]:
    """When it ended, how, and the bus bandwidth of each group of nodes."""
    document = RESULTS.last(cluster)
    when = GaugeMetricFamily(
        "rackwright_burnin_last_timestamp_seconds", "When the last burn-in ended.", labels=["cluster"]
    )
    status = GaugeMetricFamily(
        "rackwright_burnin_last_exit_status",
        "Its exit status: 0 passed, 3 below a floor, 4 something is unknown.",
        labels=["cluster"],
    )
    bandwidth = GaugeMetricFamily(
        "rackwright_burnin_busbw_gbs",
        "Bus bandwidth of all_reduce in it, GB/s (10^9 bytes), by stage: alone, unit, leaf, together.",
        labels=["cluster", "stage", "nodes"],
    )
    if (ended := _ended(document)) is not None:
        when.add_metric([cluster], ended)
    if isinstance(document.get("exit_code"), int):
        status.add_metric([cluster], document["exit_code"])
    for (stage, nodes), figure in sorted(figures(document).items()):
        bandwidth.add_metric([cluster, stage, nodes], figure)
    yield from (when, status, bandwidth)


def figures(document: Mapping[str, Any]) -> dict[tuple[str, str], float]:
    """GB/s by stage and nodes, e.g. ("together", "gpu[1-8]"); a figure that is missing is left out."""
    found: dict[tuple[str, str], float] = {}
    for group in _dicts(document, "groups"):
        for one in _dicts(group, "per_node"):
            _note(found, "alone", [one.get("node")], one)
        for one in _dicts(group, "scopes"):
            if one.get("collective") == _COLLECTIVE:
                _note(found, str(one.get("scope")), one.get("nodes"), one)
        out = group.get("left_out")
        left_out = out if isinstance(out, list) else []
        nodes = group.get("nodes")
        took_part = [name for name in nodes if name not in left_out] if isinstance(nodes, list) else []
        _note(found, "together", took_part, group)
    return found


def _note(found: dict[tuple[str, str], float], stage: str, nodes: object, one: Mapping[str, Any]) -> None:
    figure = one.get("busbw_gbs")
    named = [name for name in nodes if isinstance(name, str)] if isinstance(nodes, list) else []
    if named and isinstance(figure, int | float) and not isinstance(figure, bool) and math.isfinite(figure):
        found[stage, fold(named)] = float(figure)


def _ended(document: Mapping[str, Any]) -> float | None:
    try:
        return datetime.fromisoformat(str(document["started"])).timestamp() + float(document["seconds"])
    except (KeyError, TypeError, ValueError, OverflowError):
        return None


def _dicts(data: Mapping[str, Any], key: str) -> list[Mapping[str, Any]]:
    listed = data.get(key)
    return [one for one in listed if isinstance(one, dict)] if isinstance(listed, list) else []

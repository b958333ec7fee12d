"""Figures that no cluster ever had, for every expression of a dashboard: series with the labels that its legend names."""

from __future__ import annotations

import math
import random
import re
from collections.abc import Callable, Sequence

from rackwright.dashboards.collect import collect
from rackwright.dashboards.model import Dashboard, Expression, Kind, Panel, Unit
from rackwright.model.cluster import Cluster
from rackwright.prometheus.query import Query, Result, Series

END = 1_800_000_000.0
_LARGEST = {
    Unit.RATIO: 1,
    Unit.PERCENT: 100,
    Unit.CELSIUS: 85,
    Unit.WATTS: 700,
    Unit.BYTES: 8e10,
    Unit.BYTES_PER_SECOND: 4e10,
    Unit.SECONDS: 4000,
    Unit.KILOWATT_HOURS: 900,
    Unit.GRAMS: 3e5,
    Unit.GIGABYTES_PER_SECOND: 370,
}


def pages(cluster: Cluster, *dashboards: Dashboard, **more):
    """The pages of dashboards whose every expression has series."""
    return collect(cluster, dashboards, answers(cluster, dashboards), **more)


def answers(cluster: Cluster, dashboards: Sequence[Dashboard]) -> Callable[[Sequence[Query]], list[Result]]:
    """In the place of Prometheus."""
    known = [
        (re.sub(r"\\\$\w+", ".*", re.escape(one.text)), panel, one)
        for dashboard in dashboards
        for panel in dashboard.panels
        for one in panel.expressions
    ]

    def ask(queries: Sequence[Query]) -> list[Result]:
        return [Result(query, _series(cluster, query, known)) for query in queries]

    return ask


def _series(cluster: Cluster, query: Query, known: list[tuple[str, Panel, Expression]]) -> tuple[Series, ...]:
    found = next(((panel, one) for text, panel, one in known if re.fullmatch(text, query.expression)), None)
    if found is None:  # which nodes and jobs there are, and signs of life
        label = re.match(r"group by \((\w+)\)", query.expression)
        values = {"node": [node.name for node in cluster.nodes], "job": ["4711", "4712"]}
        names = values[label[1]] if label is not None else [""]
        return tuple(Series({label[1]: name} if label else {}, ((END, 1.0),)) for name in names)
    panel, one = found
    return tuple(
        Series(labels, _points(panel, query, place))
        for place, labels in enumerate(_labels(cluster, panel, one))
    )


def _labels(cluster: Cluster, panel: Panel, one: Expression) -> list[dict[str, str]]:
    names = list(dict.fromkeys([*panel.columns, *re.findall(r"\{\{(\w+)\}\}", one.legend)]))
    if panel.kind is Kind.RACKS:
        names = ["node"]
    values = {
        "node": [node.name for node in cluster.nodes],
        "gpu": [str(number) for number in range(8)],
        "device": [f"mlx5_{number}" for number in range(4)],
        "state": ["allocated", "idle", "mixed", "drained", "down"],
        "job": ["4711", "4712"],
        "user": ["ada", "bob"],
        "account": ["research", "vision"],
    }
    found: list[dict[str, str]] = [{}]
    for name in names:
        some = values.get(name, [f"{name} a", f"{name} b", f"{name} c"])[:40]
        found = [{**before, name: value} for before in found for value in some]
        if len(found) > 400:
            found = found[:400]
    return found


def _points(panel: Panel, query: Query, place: int) -> tuple[tuple[float, float], ...]:
    largest = _LARGEST.get(panel.unit, 12)
    if panel.states:
        known = sorted(panel.states)
        draw = lambda at: known[(place * 7 + int(at / 7200)) % len(known)]
    else:
        dice = random.Random(f"{query.expression} {place}")
        base, phase = dice.uniform(0.35, 0.85), dice.uniform(0, 0.6)
        draw = lambda at: (
            largest * max(0, base + 0.12 * math.sin(at / 1500 + phase) + dice.uniform(-0.03, 0.03))
        )
    if query.over_seconds is None:
        return ((END, draw(END)),)
    count = int(query.over_seconds / query.step_seconds)
    times = [END - query.step_seconds * back for back in range(count, -1, -1)]
    return tuple((at, draw(at)) for at in times)

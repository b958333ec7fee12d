"""Panels that no lab rack can fill have data from recorded exporters, in a real Prometheus.

All others are filled on a lab rack: tests/racks/alerts/test_panels.py.
"""

from __future__ import annotations

import time

import pytest

from rackwright.clusterfile.load import load_cluster
from rackwright.dashboards.catalogue import DASHBOARDS
from rackwright.dashboards.collect import State, collect
from rackwright.dashboards.sources import why_left_out
from rackwright.prometheus.program import Failed
from rackwright.prometheus.query import Result, Series
from tests.racks.site import REPO
from tests.unit.dashboards.recorded_site import recorded_prometheus
from tests.unit.dashboards.site import large

pytestmark = pytest.mark.slow
CLUSTER = large()
JOB = "15"


@pytest.fixture(scope="module")
def drawn(tmp_path_factory):
    """Every panel by dashboard and title."""
    with recorded_prometheus(CLUSTER, tmp_path_factory.mktemp("prometheus")) as asker:

        def ask(queries):
            asker.now = time.time()
            return [answer(asker, query) for query in queries]

        pages = collect(CLUSTER, DASHBOARDS, ask, since="30m", chosen={"node": ["gpu1"], "job": [JOB]})
    return {(page.dashboard.name, one.panel.title): one for page in pages for one in page.drawn}


def answer(asker, query):
    given = {
        "query": query.expression,
        "over": query.over_seconds,
        "step": query.step_seconds,
        "end": query.end,
    }
    try:
        found = asker.series(given)
    except Failed as error:
        return Result(query, error=str(error))
    return Result(
        query,
        tuple(Series(labels, tuple((at, float(value)) for at, value in points)) for labels, points in found),
    )


def needs_hardware():
    """Panels that the rack of drills cannot have."""
    rack = load_cluster(REPO / "inventory" / "drill.yaml", locked=False)
    return [
        (one.name, panel.title)
        for one in DASHBOARDS
        for panel in one.panels
        if why_left_out(panel, rack) is not None
    ]


@pytest.mark.parametrize("panel", needs_hardware(), ids=" - ".join)
def test_a_panel_has_data(drawn, panel):
    one = drawn[panel]
    if one.panel.empty is None:
        assert (one.state, one.reason) == (State.DATA, "")
    else:
        assert one.state in (State.DATA, State.NOTHING), one.reason

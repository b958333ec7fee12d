"""What is asked for, and what a panel says where there is no answer."""

from __future__ import annotations

import math

import pytest

from rackwright.dashboards.catalogue import BY_NAME
from rackwright.dashboards.collect import PAGES, State, collect, natural, span_of, step_of
from rackwright.dashboards.model import Dashboard, Row, Unit, Variable
from rackwright.dashboards.parts import stat, time
from rackwright.errors import RackwrightError
from rackwright.prometheus.query import Result, Series
from tests.unit.dashboards.site import Collects, large

CLUSTER = large()
ALIVE = 'max(up{job="node"}) > 0'
SHOWN = time("Load", Unit.NUMBER, "x", ('node_load1{rack=~"$rack"}', "{{node}}"))
RACK = Variable("rack", "Rack", "node_load1", "rack", several=True)
NODE = Variable("node", "Node", "node_load1", "node")


def dashboard(*panels, variables=(RACK,)):
    return Dashboard("load", "Load", "x", (Row("Now", panels),), variables, since="6h")


def one(*values, **labels):
    return Series(labels, tuple((1000.0 + place, value) for place, value in enumerate(values)))


class Answers:
    """Series by expression; everything else has none."""

    def __init__(self, found=(), errors=()):
        self.found, self.errors, self.asked = dict(found), dict(errors), []

    def __call__(self, queries):
        self.asked += queries
        return [
            Result(query, self.found.get(query.expression, ()), self.errors.get(query.expression))
            for query in queries
        ]


def drawn(panel, found=(), errors=(), **more):
    """One panel without a variable."""
    (page,) = collect(CLUSTER, [dashboard(panel, variables=())], Answers(found, errors), **more)
    return page.drawn[0]


LOAD = stat("Load", Unit.NUMBER, "x", ("node_load1", "load"))
NONE = stat("Load", Unit.NUMBER, "x", ("node_load1 > 9", "load"), empty="No node is loaded.")
DRIFT = stat("Drift", Unit.NUMBER, "x", ("rackwright_drift_drifted", "node"), empty="No node drifted.")
BOTH = stat("Load", Unit.NUMBER, "x", ("node_load1", "1 min"), ("node_load5", "5 min"))
UP = {ALIVE: (one(1),)}
DRIFTS = {'count({__name__=~"rackwright_drift_.+"})': (one(3),)}


@pytest.mark.parametrize(
    ("panel", "found", "errors", "state", "reason"),
    [
        (LOAD, {"node_load1": (one(1),)}, {}, State.DATA, ""),
        (LOAD, {**UP, "node_load1": (one(math.nan),)}, {}, State.NO_DATA, "No data."),
        (LOAD, {**UP, "node_load1": (one(math.nan, 0),)}, {}, State.DATA, ""),
        (LOAD, UP, {}, State.NO_DATA, "No data."),
        (LOAD, {}, {}, State.NO_DATA, "No data: nothing of the job node answers."),
        (LOAD, {}, {"node_load1": "timeout"}, State.ERROR, "timeout"),
        (BOTH, {"node_load1": (one(1),)}, {"node_load5": "timeout"}, State.DATA, "timeout"),
        (NONE, UP, {}, State.NOTHING, "No node is loaded."),
        (NONE, {}, {}, State.NO_DATA, "No data: nothing of the job node answers."),
        (NONE, UP, {"node_load1 > 9": "timeout"}, State.ERROR, "timeout"),
        (DRIFT, UP, {}, State.NO_DATA, "No data: it comes with rackwright drift install."),
        (DRIFT, DRIFTS, {}, State.NOTHING, "No node drifted."),
    ],
)
def test_the_state_of_a_panel(panel, found, errors, state, reason):
    """Silence is no zero: `nothing` needs a sign of life of what would tell."""
    one_panel = drawn(panel, found, errors)
    assert (one_panel.state, one_panel.reason) == (state, reason)


def test_placeholders():
    answers = Answers()
    collect(CLUSTER, [dashboard(SHOWN)], answers, since="90m", chosen={"rack": ["r1", "r.2"]})
    query = answers.asked[-1]
    assert query.expression == 'node_load1{rack=~"r1|r\\\\.2"}'
    assert (query.over_seconds, query.step_seconds) == (5400, 30)


def test_without_a_choice_all_racks_are_shown():
    answers = Answers()
    collect(CLUSTER, [dashboard(SHOWN)], answers)
    assert answers.asked[-1].expression == 'node_load1{rack=~".*"}'
    assert answers.asked[-1].over_seconds == 6 * 3600, "the dashboard's own span"


def test_windows_follow_the_step():
    answers = Answers()
    rate = stat("x", Unit.NUMBER, "x", ("rate(node_load1[$__rate_interval]) + node_load1[$__range]", "x"))
    collect(CLUSTER, [dashboard(rate, variables=())], answers, since="1h")
    assert answers.asked[-1].expression == "rate(node_load1[120s]) + node_load1[3600s]"
    assert answers.asked[-1].over_seconds is None, "a number is what is now"
    collect(CLUSTER, [dashboard(rate, variables=())], answers, since="7d")
    assert answers.asked[-1].expression == "rate(node_load1[3630s]) + node_load1[604800s]"


def test_windows_follow_the_interval_of_scrapes():
    """A window with a single point has no rate."""
    slow = Collects(interval_seconds=120)
    head = CLUSTER.by_name["head1"].model_copy(update={"options": {"prometheus": slow}})
    rate = stat("x", Unit.NUMBER, "x", ("rate(node_load1[$__rate_interval])", "x"))
    answers = Answers()
    cluster = CLUSTER.model_copy(
        update={"nodes": tuple(head if node.name == "head1" else node for node in CLUSTER.nodes)}
    )
    collect(cluster, [dashboard(rate, variables=())], answers, since="1h")
    assert answers.asked[-1].expression == "rate(node_load1[480s])"


ABOUT = stat("Load", Unit.NUMBER, "x", ('node_load1{node="$node"}', "load"))
SEEK = "group by (node) (last_over_time(node_load1[21600s]))"


def test_a_page_for_each_node():
    names = [f"gpu{number}" for number in range(1, PAGES + 3)]
    answers = Answers({**UP, SEEK: tuple(one(1, node=name) for name in reversed(names))})
    pages = collect(CLUSTER, [dashboard(ABOUT, variables=(NODE,))], answers)
    assert [page.value for page in pages] == names[:PAGES], "gpu9 before gpu10"
    assert pages[0].name == "load-gpu1"
    assert pages[0].others == 2


def test_a_page_for_a_chosen_node():
    answers = Answers(UP)
    (page,) = collect(CLUSTER, [dashboard(ABOUT, variables=(NODE,))], answers, chosen={"node": ['a"b\\']})
    assert answers.asked[-1].expression == 'node_load1{node="a\\"b\\\\"}'
    assert SEEK not in [query.expression for query in answers.asked]
    assert page.value == 'a"b\\'


def test_names_of_files():
    answers = Answers({SEEK: (one(1, node="../../x"), one(1, node="__/__/x"), one(1, node="n" * 90))})
    names = [page.name for page in collect(CLUSTER, [dashboard(ABOUT, variables=(NODE,))], answers)]
    assert len(set(names)) == 3
    assert all("/" not in name and len(name) < 90 for name in names)


def test_no_job_ran():
    (page,) = collect(CLUSTER, [dashboard(ABOUT, variables=(NODE,))], Answers())
    assert (page.value, page.rows, page.name) == (None, (), "load")


def test_prometheus_does_not_say_which_nodes_there_are():
    with pytest.raises(RackwrightError) as refused:
        collect(CLUSTER, [dashboard(ABOUT, variables=(NODE,))], Answers(errors={SEEK: "timeout"}))
    assert refused.value.message == "Prometheus did not list the nodes: timeout."


def test_a_page_of_a_node_has_what_the_node_has():
    """The head has no GPUs; whatever else the dashboard shows stays."""
    pages = collect(CLUSTER, [BY_NAME["node"]], Answers(), chosen={"node": ["head1", "gpu1"]})
    head, worker = ([(drawn.panel.title, len(page.left_out)) for drawn in page.drawn] for page in pages)
    assert "GPU power" not in dict(head)
    assert "GPU power" in dict(worker)
    assert "Memory" in dict(head)


@pytest.mark.parametrize("text", ["", "1", "0h", "h", "-1h", "1.5h", "1y", "1h ", "100000d"])
def test_what_is_no_span(text):
    with pytest.raises(RackwrightError) as refused:
        span_of(text)
    assert refused.value.message == f"{text!r} is not a span of time."
    assert refused.value.hint == "90m, 6h, 7d or 4w"


def test_spans():
    assert [span_of(text) for text in ("90m", "6h", "7d", "4w")] == [5400, 21600, 604800, 2419200]
    assert [step_of(span) for span in (60, 3600, 86400, 90 * 86400, 10**9)] == [15, 15, 600, 43200, 86400]


def test_natural_order():
    assert sorted(["b10", "b9", "a", "9", "b"], key=natural) == ["9", "a", "b", "b9", "b10"]

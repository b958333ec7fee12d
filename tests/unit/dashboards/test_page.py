"""Pages of HTML: what Prometheus said is in them, whatever it was, and they need nothing else."""

from __future__ import annotations

import json
import math
import re
from collections import defaultdict
from datetime import UTC, datetime
from html.parser import HTMLParser

import pytest

from rackwright.dashboards.catalogue import DASHBOARDS
from rackwright.dashboards.charts import SERIES
from rackwright.dashboards.collect import Drawn, Page, State, _drawn
from rackwright.dashboards.model import (
    Colour,
    Dashboard,
    Expression,
    Kind,
    Panel,
    Row,
    Thresholds,
    Unit,
    Variable,
)
from rackwright.dashboards.page import NUMBERS, Site, index_html, page_html, write
from rackwright.dashboards.tables import ROWS
from rackwright.errors import RackwrightError
from rackwright.prometheus.query import Query, Result, Series
from tests.unit.dashboards.invented import pages
from tests.unit.dashboards.site import large

CLUSTER = large()
MADE = datetime(2026, 11, 27, 12, 0, tzinfo=UTC)
HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)>\"'&<b>"
END = 1_800_000_000.0


class Reader(HTMLParser):
    """What a browser makes of a page: elements with their attributes, and the text of scripts."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.data: list[str] = []
        self.words: list[str] = []
        self.inside: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        self.inside.append(tag)

    def handle_endtag(self, tag):
        while self.inside and self.inside.pop() != tag:
            pass

    def handle_data(self, data):
        if self.inside[-1:] == ["script"]:
            self.data.append(data)
        elif data.strip():
            self.words.append(data.strip())

    def count(self, tag):
        return sum(one == tag for one, _ in self.elements)

    @property
    def figures(self):
        return [json.loads(text) for text in self.data]


def panel(kind, *expressions, unit=Unit.NUMBER, **more):
    made = tuple(Expression(text, legend) for text, legend in expressions or [("x", "{{name}}")])
    return Panel("Panel", kind, unit, "What to look for: `this`.", made, **more)


def series(*values, **labels):
    """Points 30 seconds apart, the last of them now."""
    begin = END - 30 * (len(values) - 1)
    return Series(labels, tuple((begin + 30 * place, value) for place, value in enumerate(values)))


def page_of(one_panel, *answers, value=None, others=0, left_out=None, variables=()):
    results = [
        Result(Query(one.text), tuple(found))
        for one, found in zip(one_panel.expressions, answers, strict=True)
    ]
    drawn = _drawn(one_panel, results, defaultdict(lambda: True))
    dashboard = Dashboard("load", "Load", "About it.", (Row("Row", (one_panel,)),), variables)
    return Page(dashboard, value, 3600, 30, (("Row", (drawn,)),), left_out or {}, others)


def html_of(one_panel, *answers, **more):
    page = page_of(one_panel, *answers, **more)
    return page_html(Site(CLUSTER, (page,), MADE), page)


def read(one_panel, *answers, **more):
    return Reader(html_of(one_panel, *answers, **more))


@pytest.mark.parametrize("dashboard", DASHBOARDS, ids=lambda one: one.name)
def test_every_panel_is_drawn(dashboard):
    """From figures for every expression: each panel has data, and its words are on the page."""
    found = pages(CLUSTER, dashboard)
    site = Site(CLUSTER, found, MADE)
    assert found
    for page in found:
        reader = Reader(page_html(site, page))
        assert {drawn.state for drawn in page.drawn} == {State.DATA}
        for drawn in page.drawn:
            assert drawn.panel.title in reader.words
        charts = [drawn for drawn in page.drawn if drawn.panel.kind not in (Kind.STAT, Kind.TABLE)]
        assert len(reader.figures) == len(charts)
        assert all(figure["data"] for figure in reader.figures)


def test_a_page_loads_its_own_files_alone(tmp_path):
    found = pages(CLUSTER, *DASHBOARDS)
    write(Site(CLUSTER, found, MADE), tmp_path)
    written = {path.name for path in tmp_path.iterdir()}
    assert written == {f"{page.name}.html" for page in found} | {
        "index.html", "dashboards.css", "theme.js", "charts.js", "plotly.min.js"
    }  # fmt: skip
    for path in tmp_path.glob("*.html"):
        for tag, attributes in Reader(path.read_text()).elements:
            for name in ("src", "href"):
                if (address := attributes.get(name)) is not None:
                    assert address in written, f"{path.name} loads {address}"
            assert not any(name.startswith("on") for name in attributes), f"{path.name}: {tag}"
    for name in ("dashboards.css", "theme.js", "charts.js"):
        assert "http" not in (tmp_path / name).read_text()


def test_a_page_runs_no_script_of_its_own():
    policy = next(
        attributes["content"]
        for tag, attributes in read(panel(Kind.STAT), [series(1)]).elements
        if tag == "meta" and attributes.get("http-equiv") == "Content-Security-Policy"
    )
    assert "default-src 'none'" in policy
    assert "script-src 'self';" in policy


def test_numbers():
    shown = read(
        panel(
            Kind.STAT,
            ("a", "up"),
            ("b", "declared"),
            unit=Unit.WATTS,
            thresholds=Thresholds(((1000, Colour.BAD),)),
        ),
        [series(1, 2500)],
        [series(4)],
    )
    assert [words for words in shown.words if words in ("2.5 kW", "up", "4 W", "declared")] == [
        "2.5 kW",
        "up",
        "4 W",
        "declared",
    ]
    colours = [attributes["style"] for _, attributes in shown.elements if attributes.get("class") == "number"]
    assert colours == [f"--colour: {Colour.BAD.value}", f"--colour: {Colour.GOOD.value}"]


def test_a_named_state_is_shown_by_its_name():
    shown = read(panel(Kind.STAT, unit=Unit.STATE, states={0.0: ("down", Colour.BAD)}), [series(0)])
    assert "down" in shown.words
    assert "0" not in shown.words


def test_so_many_numbers_and_no_more():
    shown = read(panel(Kind.STAT), [series(place, name=f"n{place}") for place in range(20)])
    assert sum(attributes.get("class") == "number" for _, attributes in shown.elements) == NUMBERS
    assert "8 of 20 series" in shown.words


def test_a_line_with_a_gap():
    """What Prometheus has no points for is no line from one side to the other."""
    points = ((END - 120, 1.0), (END - 90, 2.0), (END, math.nan))
    (figure,) = read(panel(Kind.TIME, unit=Unit.WATTS), [Series({"name": "gpu1"}, points)]).figures
    (line,) = figure["data"]
    assert line["y"] == [1.0, 2.0, None, None, None]
    assert line["name"] == "gpu1"
    assert (line["x0"], line["dx"]) == ("2027-01-15 07:58:00", 30_000)
    assert figure["layout"]["xaxis"]["range"] == ["2027-01-15 07:00:00", "2027-01-15 08:00:00"]
    assert figure["layout"]["yaxis"]["ticksuffix"] == " W"


def test_values_are_scaled_and_thresholds_with_them():
    given = panel(
        Kind.TIME, unit=Unit.WATTS, thresholds=Thresholds(((2000, Colour.BAD), (9e9, Colour.BAD))), low=0
    )
    (figure,) = read(given, [series(1000, 3000)]).figures
    assert figure["data"][0]["y"] == [1, 3]
    assert figure["layout"]["yaxis"] == {"ticksuffix": " kW", "automargin": True, "rangemode": "tozero"}
    assert [shape["y0"] for shape in figure["layout"]["shapes"]] == [2], (
        "a line far above would flatten the others"
    )


def test_the_highest_lines_are_kept():
    lines = [series(place, name=f"n{place}") for place in range(SERIES + 5)]
    shown = read(panel(Kind.TIME), lines)
    assert [line["name"] for line in shown.figures[0]["data"]] == [
        f"n{place}" for place in range(5, SERIES + 5)
    ]
    assert f"{SERIES} of {SERIES + 5} series: the highest" in shown.words


def test_lines_are_in_natural_order_with_colours_that_mean_something():
    given = panel(Kind.TIME, ("a", "{{state}}"), stacked=True, colours={"down": Colour.BAD})
    found = [series(1, 1, state="up"), series(2, 2, state="down"), series(0, 0, state="none")]
    (figure,) = read(given, found).figures
    lines = [(line["name"], line["line"]["color"] == Colour.BAD.value) for line in figure["data"]]
    assert lines == [("down", True), ("up", False)], "a band of no height is left out"


def test_a_series_that_ended_has_no_newest_value():
    given = panel(Kind.TIME, ("a", "{{state}}"), stacked=True)
    ended = Series({"state": "idle"}, ((END - 120, 7.0), (END - 90, 7.0)))
    goes_on = Series({"state": "busy"}, tuple((END - back, 9.0) for back in (120, 90, 60, 30, 0)))
    shown = read(given, [ended, goes_on])
    assert "9" in shown.words
    assert "7" not in shown.words
    assert {line["mode"] for line in shown.figures[0]["data"]} == {"lines"}, "a band that ends has no marks"


def test_a_heat_map():
    given = panel(Kind.HEAT, unit=Unit.CELSIUS, low=20, high=90)
    (figure,) = read(given, [series(40, 50, name="gpu10"), series(30, math.inf, name="gpu9")]).figures
    (map_,) = figure["data"]
    assert map_["y"] == ["gpu9", "gpu10"]
    assert map_["z"] == [[30, None], [40, 50]]
    assert (map_["zmin"], map_["zmax"]) == (20, 90)


def test_a_timeline():
    given = panel(Kind.STATES, unit=Unit.STATE, states={1.0: ("up", Colour.GOOD), 0.0: ("down", Colour.BAD)})
    shown = read(given, [series(1, 0, 7, name="gpu1")])
    assert shown.figures[0]["data"][0]["z"] == [[1, 0, None]]
    assert shown.figures[0]["data"][0]["customdata"] == [["up", "down", ""]]
    assert {"up", "down"} <= set(shown.words)


def test_bars():
    given = panel(Kind.BARS, unit=Unit.RATIO, thresholds=Thresholds(((0.9, Colour.BAD),)), low=0, high=1)
    (figure,) = read(
        given, [series(0.95, name="/"), series(0.2, name="/home"), series(math.inf, name="/x")]
    ).figures
    (bar,) = figure["data"]
    assert (bar["y"], bar["x"]) == (["/home", "/"], [20, 95])
    assert bar["marker"]["color"] == [Colour.GOOD.value, Colour.BAD.value]
    assert figure["layout"]["xaxis"]["range"] == [0, 100]


def test_a_table():
    given = panel(Kind.TABLE, ("a", "used"), ("b", "GPUs"), columns=("user", "account"), unit=Unit.RATIO)
    shown = read(
        given,
        [series(0.5, user="bob", account="x"), series(0.1, user="ada", account="x")],
        [series(0.08, user="ada", account="x"), series(0.01, user="eve", account="y")],
    )
    rows = shown.words[shown.words.index("GPUs") + 1 :]
    assert rows == ["ada", "x", "10 %", "8 %", "bob", "x", "50 %", "eve", "y", "1 %"]


def test_a_table_keeps_an_order_that_was_asked_for():
    given = panel(Kind.TABLE, ("sort(a)", "used"), columns=("user",))
    shown = read(given, [series(1, user="bob"), series(2, user="ada")])
    assert shown.words[shown.words.index("used") + 1 :][:3] == ["bob", "1", "ada"]


def test_a_long_table_says_so():
    given = panel(Kind.TABLE, ("a", "used"), columns=("user",))
    shown = read(given, [series(1, user=f"u{place}") for place in range(ROWS + 1)])
    assert f"{ROWS} of {ROWS + 1} rows" in shown.words


NODES = Variable("node", "Node", "up", "node")


def test_a_node_leads_to_its_page():
    table = panel(Kind.TABLE, ("a", "used"), columns=("node",), leads_to=("node",))
    page = page_of(table, [series(1, node="gpu1"), series(1, node="gpu2")])
    of_node = Page(Dashboard("node", "Node", "x", (), (NODES,)), "gpu1", 3600, 30, (), {})
    reader = Reader(page_html(Site(CLUSTER, (page, of_node), MADE), page))
    links = [attributes["href"] for tag, attributes in reader.elements if tag == "a"]
    assert links.count("node-gpu1.html") == 2, "in the menu, and in the table"
    assert "node-gpu2.html" not in links, "there is no such page"


def test_the_rack_map_has_every_node():
    """A node without a figure is grey and named; it does not look like a free place."""
    given = panel(Kind.RACKS, ("a", "{{node}}"), unit=Unit.CELSIUS, low=20, high=90)
    shown = read(given, [series(50, node="gpu1"), series(70, node="gpu4"), series(1, node="stranger")])
    known, silent = shown.figures[0]["data"]
    assert known["x"] == ["r0", "r1", "r2"]
    assert known["y"] == ["1", "2"]
    assert known["text"] == [["", "gpu1", ""], ["", "", "gpu4"]]
    assert known["z"] == [[None, 50, None], [None, None, 70]]
    assert silent["text"] == [["head1", "", "gpu2"], ["", "gpu3", ""]]
    assert silent["customdata"][0][0] == ["no data", ""]
    assert "3 of 5 nodes without a figure (grey)" in shown.words


def test_the_rack_map_of_leaves():
    given = panel(
        Kind.RACKS, ("a", "{{node}}"), unit=Unit.STATE, states={0.0: ("up", Colour.GOOD)}, by="leaf"
    )
    shown = read(given, [series(0, node=node.name) for node in CLUSTER.nodes])
    (map_,) = shown.figures[0]["data"]
    assert map_["x"] == ["leaf0", "leaf1", "leaf2"]
    assert map_["text"] == [["head1", "gpu1", "gpu2"], ["", "gpu3", "gpu4"]]
    assert "up" in shown.words


def test_the_rack_map_of_nodes_without_a_place():
    cluster = large(racks=1)
    nodes = tuple(node.model_copy(update={"rack": None, "position": None}) for node in cluster.nodes)
    given = panel(Kind.RACKS, ("a", "{{node}}"))
    page = page_of(given, [series(1, node=node.name) for node in nodes])
    site = Site(cluster.model_copy(update={"nodes": nodes}), (page,), MADE)
    (figure,) = Reader(page_html(site, page)).figures
    assert figure["data"][0]["x"] == ["not declared"]
    assert [row[0] for row in figure["data"][0]["text"]] == ["gpu1", "gpu2", "gpu3", "gpu4", "head1"]


@pytest.mark.parametrize(
    ("given", "labels"),
    [
        (panel(Kind.STAT, ("a", "{{name}}"), ("b", "x")), {"name": HOSTILE}),
        (panel(Kind.TIME), {"name": HOSTILE}),
        (panel(Kind.BARS), {"name": HOSTILE}),
        (panel(Kind.HEAT), {"name": HOSTILE}),
        (panel(Kind.STATES, unit=Unit.STATE, states={1.0: ("up", Colour.GOOD)}), {"name": HOSTILE}),
        (panel(Kind.TABLE, ("a", "used"), columns=("name",), leads_to=("name",)), {"name": HOSTILE}),
        (panel(Kind.RACKS, ("a", "{{node}}")), {"node": HOSTILE}),
    ],
    ids=lambda one: one.kind.value if isinstance(one, Panel) else "",
)
def test_a_label_may_hold_anything(given, labels):
    """Text stays text: no element, no attribute and no end of a script comes from it."""
    answers = [[series(1, 1, **labels)] for _ in given.expressions]
    plain = read(given, *[[series(1, 1, name="n", node="gpu1")] for _ in given.expressions])
    hostile = read(given, *answers, value=HOSTILE, variables=(Variable("name", HOSTILE, "x", "name"),))
    for tag in ("script", "img", "b"):
        assert hostile.count(tag) == plain.count(tag)
    assert len(hostile.figures) == len(plain.figures), "each figure is one script, and JSON"
    assert not any("<" in text for text in hostile.data), "nothing in a script can end it"
    assert "alert(1)" not in [text for text in hostile.data if not text.startswith("{")]
    if given.kind in (Kind.TIME, Kind.HEAT, Kind.BARS, Kind.STATES):
        assert "&lt;script&gt;" in json.dumps(hostile.figures[0]), "plotly reads HTML in texts"


def test_what_stands_where_there_is_no_data():
    given = panel(Kind.TIME, ("node_load1", "x"))
    for state, reason, words in [
        (State.NO_DATA, "No data: nothing answers.", "No data: nothing answers."),
        (State.NOTHING, "No node is drained.", "No node is drained."),
        (State.ERROR, "Prometheus answers 503: <b>", "No answer: Prometheus answers 503: <b>"),
    ]:
        page = page_of(given, [series(1)])
        page = Page(page.dashboard, None, 3600, 30, (("Row", (Drawn(given, state, reason),)),), {})
        reader = Reader(page_html(Site(CLUSTER, (page,), MADE), page))
        assert words in reader.words
        assert reader.figures == []
        assert any(
            state.value.replace(" ", "-") in str(attributes.get("class")).split()
            for _, attributes in reader.elements
        )


def test_what_is_not_on_this_cluster():
    reason = "nothing serves metrics of the job `dcgm` in this cluster"
    shown = read(panel(Kind.STAT), [series(1)], left_out={"GPU power": reason, "GPU heat": reason})
    assert "GPU power, GPU heat: nothing serves metrics of the job" in shown.words
    assert "dcgm" in shown.words


def test_the_head_of_a_page():
    shown = read(panel(Kind.STAT), [series(1)], others=88, value="gpu1", variables=(NODES,))
    assert "Load gpu1" in shown.words
    assert any(words.startswith("The last hour before 2026-11-27 12:00 UTC.") for words in shown.words)
    assert any("Pages of 88 more were not made" in words for words in shown.words)


def test_a_page_of_nothing():
    dashboard = Dashboard(
        "job", "Job", "x", (Row("Row", (panel(Kind.STAT),)),), (Variable("job", "Job", "x", "job"),)
    )
    page = Page(dashboard, None, 7200, 30, (), {})
    assert (
        "There was no job in the last 2 hours." in Reader(page_html(Site(CLUSTER, (page,), MADE), page)).words
    )
    page = Page(dashboard, None, 7200, 30, (), {"Panel": "no GPUs"})
    assert (
        "This cluster has nothing of what this dashboard shows."
        in Reader(page_html(Site(CLUSTER, (page,), MADE), page)).words
    )


def test_the_index():
    page = page_of(panel(Kind.STAT), [series(1)], left_out={"a": "b"})
    silent = page_of(panel(Kind.STAT, ("node_x", "x")), [series(math.nan)])
    reader = Reader(index_html(Site(CLUSTER, (page, silent), MADE)))
    assert "1 panel with data, 1 without data, 1 not on this cluster" in reader.words
    assert ("a", {"href": "load.html"}) in reader.elements


def test_a_folder_that_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(
        RackwrightError,
        match=re.escape(f"The pages cannot be written to {tmp_path}/file/x: Not a directory."),
    ):
        write(Site(CLUSTER, (), MADE), tmp_path / "file" / "x")

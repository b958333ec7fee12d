"""A cluster as a picture: every node once, no unknown thing drawn as good, sums of power, and the same as JSON."""

from __future__ import annotations

import json
import re
import time
from dataclasses import replace
from pathlib import Path

import pytest

from rackwright.clusterfile.load import load_cluster
from rackwright.clustermap.looks import LEVELS
from rackwright.clustermap.nets import rails_text
from rackwright.clustermap.picture import document, picture
from rackwright.clustermap.racks import power_of, racks_of, watts_text
from rackwright.drawing.model import Look
from rackwright.drawing.page import html
from rackwright.live.facts import Absent, Unknown
from rackwright.live.findings import FiringAlert, Level, Source
from rackwright.live.node import Live, LiveNode
from rackwright.model.types import LinkKind
from rackwright.workload.slurm.output import node_state
from tests.factories import make_cluster, make_node, make_sku
from tests.screenshots import big, live_of, small
from tests.unit.drawing.pages import Page

FILES = sorted(path for path in Path("inventory").glob("*.yaml") if not path.name.endswith(".lock.yaml"))
NASTY = "<script>alert(1)</script>\x1b[2J"


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_node_of_every_shipped_cluster_is_drawn_once_and_claimed_to_be_nothing(path):
    cluster = load_cluster(path, locked=False)
    page = Page(html(picture(cluster)))
    assert sorted(box.name for box in page.boxes) == sorted(cluster.by_name)
    assert {box.look for box in page.boxes} == {"neutral"}
    assert "Declared; not compared with the nodes" in page.text
    assert all(place.startswith("#") for place in page.loads)


@pytest.mark.parametrize("cluster", [small(), big()], ids=["8", "1000"])
def test_every_node_is_drawn_once_with_the_look_of_its_level(cluster):
    live = live_of(cluster, every=len(cluster.nodes) // 8)
    page = Page(html(picture(cluster, live)))
    assert sorted(box.name for box in page.boxes) == sorted(cluster.by_name)
    for box in page.boxes:
        node = live.nodes[box.name]
        assert box.look == LEVELS[node.level].look.value
        assert (box.href is not None) == bool(node.reasons)
        assert box.href is None or box.href.removeprefix("#") in page.ids
        assert all(reason.text in box.hover for reason in node.reasons[:6])


def test_a_thousand_nodes_take_little_space_and_time():
    cluster = big(1000)
    live = live_of(cluster, every=3)
    begun = time.process_time()
    text = html(picture(cluster, live))
    assert time.process_time() - begun < 20
    assert len(text.encode()) < 2_000_000


@pytest.mark.parametrize("silent", list(Source))
def test_what_is_not_known_never_looks_good(silent):
    live = live_of(small(), every=100)
    nodes = {
        name: replace(node, **{silent.value: Unknown("no answer within 30 s")})
        for name, node in live.nodes.items()
    }
    page = Page(html(picture(small(), replace(live, nodes=nodes))))
    looks = {box.look for box in page.boxes}
    assert looks <= {"unknown", "failing"}
    assert not looks & {"good", "busy", "neutral"}


def test_only_good_levels_look_good():
    good = {level for level, shown in LEVELS.items() if shown.look in (Look.GOOD, Look.BUSY)}
    assert good == {Level.GOOD, Level.BUSY}
    assert len({shown.look for shown in LEVELS.values()}) == len(Level)


def test_what_nodes_users_and_alerts_say_is_escaped():
    cluster = make_cluster(make_node("n1", 1, primary=True))
    found = LiveNode(
        "n1",
        node_state("IDLE+DRAIN", NASTY, "ada@x"),
        Unknown(NASTY),
        Absent("none"),
        (FiringAlert(NASTY, "critical", {"gpu": NASTY}),),
    )
    live = Live("test", 1.0, 1.0, {"n1": found}, (FiringAlert(NASTY, "warning", {"leaf": NASTY}),))
    page = Page(html(picture(cluster, live)))
    assert "script" not in page.tags
    assert "\x1b" not in page.source
    assert "<script>alert(1)" in page.boxes[0].hover


def test_equal_reasons_are_one_entry_with_all_names():
    cluster = big(200)
    down = LiveNode("x", Unknown("Slurm does not answer"), Absent("-"), Absent("-"), Absent("-"))
    live = Live("c", 1.0, 1.0, {name: replace(down, name=name) for name in cluster.by_name})
    [trouble] = picture(cluster, live).troubles
    assert (trouble.count, trouble.look) == (200, Look.UNKNOWN)
    assert trouble.names == "gpu[0001-0198],head[1-2]"


def test_reasons_that_differ_by_the_name_and_address_of_the_node_are_one_entry():
    cluster = big(200)

    def found(name):
        address = cluster.management_address(cluster.by_name[name])
        silent = Unknown(f"Cannot connect to {name} ({address}, port 22): no answer.")
        return LiveNode(name, Absent("-"), silent, Absent("-"), Absent("-"))

    live = Live("c", 1.0, 1.0, {name: found(name) for name in cluster.by_name})
    [trouble] = picture(cluster, live).troubles
    assert trouble.count == 200
    assert trouble.reasons == (("health", "Cannot connect to NODE (ADDRESS, port 22): no answer."),)
    one = Live("c", 1.0, 1.0, {"gpu0001": found("gpu0001")})
    assert (
        picture(cluster, one).troubles[0].reasons[0][1]
        == "Cannot connect to gpu0001 (10.0.0.1, port 22): no answer."
    )


def test_a_name_within_another_word_stays():
    cluster = make_cluster(make_node("n1", 1, primary=True), make_node("n2", 2))
    nodes = {
        name: LiveNode(name, Unknown(f"{name} and n11 and my-{name}"), *[Absent("-")] * 3)
        for name in ("n1", "n2")
    }
    first, second = picture(cluster, Live("c", 1.0, 1.0, nodes)).troubles
    assert (first.names, second.names) == ("n1", "n2")


def test_sources_that_are_not_there_are_named():
    none = Absent("no Prometheus is declared")
    live = live_of(small(), every=100)
    nodes = {name: replace(node, alerts=none) for name, node in live.nodes.items()}
    assert picture(small(), replace(live, nodes=nodes)).notes == (
        "Not part of the colours: alerts (no Prometheus is declared).",
    )


def test_power_is_summed_and_what_has_no_figure_is_counted():
    known, silent = make_sku("a", power_watts=10200), make_sku("b")
    power = power_of(
        [make_node("n1", 1, sku=known), make_node("n2", 2, sku=known), make_node("n3", 3, sku=silent)]
    )
    assert power.text == "maximum power 20.4 kW (1 node without a figure)"
    assert power_of([make_node("n3", 3, sku=silent)]).text == ""
    assert [watts_text(watts) for watts in (350, 10200, 316200, 10_200_000)] == [
        *("350 W", "10.2 kW", "316.2 kW", "10.2 MW"),
    ]


def test_racks_are_in_the_order_in_which_people_count_and_nodes_without_one_come_last():
    nodes = [make_node(f"n{n}", n, rack=rack) for n, rack in enumerate(("r10", "r2", None, "r1"), 1)]
    cluster = make_cluster(*nodes)
    assert list(racks_of(cluster)) == ["r1", "r2", "r10", None]
    named, homeless = picture(make_cluster(*nodes, make_node("head1", 9, primary=True))).rooms
    assert [rack.name for rack in named.racks] == ["r1", "r2", "r10"]
    assert homeless.title == "No rack declared: 2 nodes"


def test_a_box_is_as_high_as_its_sku_and_heads_are_marked():
    [room] = picture(small()).rooms
    boxes = {box.name: box for rack in room.racks for box in rack.boxes}
    assert (boxes["gpu1"].height, boxes["head1"].height) == (8, 1)
    assert (boxes["head1"].tag, boxes["login1"].tag, boxes["gpu1"].tag) == ("head", "login", "")
    assert "primary" in boxes["head1"].lines[-1]
    assert "primary" not in boxes["head2"].lines[-1]


def test_the_superpod_has_its_leaves_by_rail_and_its_cables_counted():
    cluster = load_cluster(Path("inventory/example-dgx-h100.yaml"), locked=False)
    [net] = picture(cluster).nets
    assert net.title == "Network fabric: InfiniBand, 8 leaves, 4 spines, 504 cables"
    assert [row.label for row in net.leaves] == [f"rail {rail}" for rail in range(8)]
    assert {switch.number for row in net.leaves for switch in row.switches} == {31 + 32}
    assert set(net.links.values()) == {8}


@pytest.mark.parametrize("kind", list(LinkKind))
def test_every_kind_of_fabric_has_a_title(kind):
    cluster = big(40)
    fabrics = {"fabric": replace(cluster.fabrics["fabric"], kind=kind)}
    [net] = picture(cluster.model_copy(update={"fabrics": fabrics})).nets
    assert net.title.startswith("Network fabric: ")


def test_the_page_of_the_docs_has_every_colour_and_its_meaning():
    page = Path("docs/map.md").read_text()
    for shown in LEVELS.values():
        assert f"| {shown.label} | {shown.meaning} |" in page
    for image in re.findall(r"\]\((images/[^)]*)\)", page):
        assert (Path("docs") / image).stat().st_size < 300_000


@pytest.mark.parametrize(
    ("rails", "text"),
    [((), "no rail"), ((3,), "rail 3"), ((0, 1, 2), "rails 0-2"), ((0, 2), "rails 0, 2")],
)
def test_rails(rails, text):
    assert rails_text(rails) == text


def test_the_document_has_the_same():
    cluster = small()
    declared = document(cluster)
    assert (declared["compared"], declared["live"]) == (False, None)
    live = document(cluster, live_of(cluster))
    assert sorted(one["node"] for one in live["live"]["nodes"]) == sorted(cluster.by_name)
    by_rack = {rack["rack"]: rack for rack in live["racks"]}
    assert by_rack["a1"]["power"] == {"watts": 32200, "nodes_with_a_figure": 5, "nodes": 5}
    json.dumps(live)

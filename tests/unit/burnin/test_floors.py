"""Floors by number of nodes and by message size."""

from __future__ import annotations

import pytest

from rackwright.burnin.floors import FULL_SIZE, GIB, Floor, floor_for, judge_floor, sku_floor
from rackwright.burnin.pair_stage import pair_floor
from rackwright.catalog.read import catalogue
from rackwright.model.settings import Burnin
from rackwright.model.sku import BusbwFloor, Source
from tests.factories import make_cluster, make_node, make_sku

SOURCE = Source(text="a document", read="2026-11-01")


@pytest.mark.parametrize(
    ("gib", "floor"), [(16, 400), (8, 400), (4, 386.7), (2, 373.3), (1, 360), (0.5, None)]
)
def test_two_nodes_reach_less_with_smaller_messages(gib, floor):
    assert Floor(400, "s", FULL_SIZE, 2).at(int(gib * GIB)) == floor


def test_more_nodes_lose_an_unknown_share():
    assert Floor(400, "s", FULL_SIZE, 3).at(4 * GIB) is None
    assert Floor(400, "s", FULL_SIZE, 300).at(8 * GIB) == 400


@pytest.mark.parametrize(
    ("published", "at_1_gib", "at_8_gib"),
    [("AWS p5", 436.95, 478.95), ("GCP A4", 623.33, 679.54), ("Nebius H100", 446.02, 467.54), ("A3 Mega", 181.94, 188.54)],
)  # fmt: skip
def test_no_published_pair_that_is_sound_fails_at_the_size_of_pairs(published, at_1_gib, at_8_gib):
    assert at_1_gib >= Floor(at_8_gib, published, FULL_SIZE, 2).at(GIB)


def test_pairs_are_judged_by_the_floor_of_two_nodes_at_their_own_size():
    h100 = [make_node(f"w{n}", n, sku=catalogue()["hgx-h100"], rack="r1") for n in (1, 2)]
    cluster = make_cluster(*h100, burnin=Burnin(floor_busbw_gbs=345, floor_source="measured on 64 nodes"))
    assert pair_floor(cluster, tuple(h100)).at(GIB) == 360, (
        "the site's floor of all nodes says nothing of two"
    )
    own = make_cluster(*h100, burnin=Burnin(floors_by_nodes={2: 450, 64: 400}, floor_source="measured"))
    assert pair_floor(own, tuple(h100)).at(GIB) == 405


def test_pairs_of_two_nvlink_domains_have_no_floor():
    trays = [make_node(f"t{n}", n, sku=catalogue()["dgx-gb200"], rack=f"r{n}") for n in (1, 2)]
    assert pair_floor(make_cluster(*trays), tuple(trays)) is None
    together = tuple(tray.model_copy(update={"rack": "r1"}) for tray in trays)
    assert pair_floor(make_cluster(*together), together).busbw_gbs == 688


def test_the_sites_floors_by_nodes_win_and_are_interpolated():
    sku = catalogue()["hgx-h100"]
    settings = Burnin(floors_by_nodes={1: 470, 2: 450, 32: 400}, floor_source="measured 2026-11-02")
    cluster = make_cluster(burnin=settings)
    found = {nodes: floor_for(cluster, sku, nodes).busbw_gbs for nodes in (1, 2, 8, 32, 64)}
    assert found == {1: 470, 2: 450, 8: 425, 32: 400, 64: 344.7}, "beyond its last point the catalogue's"
    assert floor_for(cluster, sku, 8).source == "measured 2026-11-02, `floors_by_nodes`"


def test_own_rows_are_points_too():
    rows = (
        BusbwFloor(nodes_min=4, nodes_max=4, busbw_gbs=100, source=SOURCE),
        BusbwFloor(nodes_min=16, nodes_max=16, busbw_gbs=80, source=SOURCE),
    )
    sku = make_sku(busbw_floors=rows)
    assert sku_floor(sku, 1) is None
    assert (sku_floor(sku, 2).busbw_gbs, sku_floor(sku, 2).source) == (100, "as of 4 nodes: a document")
    assert (sku_floor(sku, 8).busbw_gbs, sku_floor(sku, 8).source) == (
        90,
        "between 100 at 4 and 80 at 16 nodes",
    )
    assert sku_floor(sku, 17) is None, "without ports there is no arithmetic"


def test_the_message_names_the_floor_of_the_size():
    class Row:
        size, busbw_gbs = GIB, 300.0

    assert judge_floor(Row, Floor(400, "a source", FULL_SIZE, 2)).text == (
        f"300 GB/s at {GIB} B is below the floor of 360 GB/s for this size, 400 from {FULL_SIZE} B on (a source)"
    )

"""The catalogue's entries say where they come from."""

from __future__ import annotations

from datetime import date
from itertools import pairwise

import pytest

from rackwright.burnin.floors import ceiling, sku_floor
from rackwright.catalog.read import catalogue
from rackwright.catalog.table_files import mig_table
from rackwright.catalog.unknown import unknown_fields
from rackwright.model.sku import Metric, NvSwitch
from rackwright.model.text import label_mistake

ENTRIES = list(catalogue().values())


GPU_ENTRIES = [sku for sku in ENTRIES if sku.gpus is not None]
BOARDS = ("a100", "h100", "h200", "b200", "b300")


def test_what_there_is():
    asked = {f"{line}-{board}" for line in ("dgx", "hgx") for board in BOARDS}
    asked |= {"dgx-gb200", "dgx-gb300", "dgx1-v100", "dgx-station-a100", "l40s-8x", "t4-4x", "mi300x-8x"}
    assert asked | {"lab-node", "cpu-16c-64g"} <= set(catalogue())


@pytest.mark.parametrize("sku", ENTRIES, ids=lambda sku: sku.name)
def test_entry(sku):
    assert label_mistake(sku.name) is None
    floors = (*sku.busbw_floors, *sku.floors)
    for source in (*sku.sources, *(floor.source for floor in floors)):
        assert date(2026, 1, 1) <= source.read
        assert len(source.text) > 20
    for published in sku.published:
        head, _, tail = published.field.partition(".")
        assert head in type(sku).model_fields
        if head == "gpus":
            assert tail in type(sku.gpus).model_fields
        if head == "floors" and tail:
            assert sku.floor(Metric(tail)) is not None
            assert published.chosen == f"{sku.floor(Metric(tail)).floor:g}"
        assert published.values
        assert published.reason


@pytest.mark.parametrize("sku", GPU_ENTRIES, ids=lambda sku: sku.name)
def test_a_node_with_gpus(sku):
    gpus = sku.gpus
    assert sku.product
    assert gpus.architecture is not None
    assert gpus.pci_ids
    assert gpus.nvswitch is not None
    assert gpus.nvlinks is not None
    assert sku.rails in (0, gpus.count), "one rail for each GPU, or ports that belong to none"
    if gpus.nvswitch is NvSwitch.NODE:
        assert gpus.nvlink_domain == gpus.count
    if gpus.nvswitch is NvSwitch.RACK:
        assert gpus.nvlink_domain == 18 * gpus.count
    if gpus.nvlinks:
        per_link = {2: 50, 3: 50, 4: 50, 5: 100}[gpus.nvlink_generation]
        assert gpus.nvlink_gbs == gpus.nvlinks * per_link
    if gpus.mig is not None:
        row = next(row for row in mig_table().rows if row.gpu == gpus.mig)
        assert set(gpus.pci_ids) & set(row.pci_ids)
        largest = max(int(profile.name.split(".")[1].removesuffix("gb")) for profile in row.profiles[:6])
        assert 0.96 < largest * 1024 / gpus.memory_mib < 1.04, "the whole GPU as one instance"


@pytest.mark.parametrize("sku", GPU_ENTRIES, ids=lambda sku: sku.name)
def test_floors_are_below_what_the_ports_can_do(sku):
    ports = [nic.speed_gbps for nic in sku.nics if nic.rail is not None]
    port = sku.floor(Metric.IB_WRITE_GBPS)
    if port is not None and ports:
        assert 0.85 * min(ports) <= port.floor < min(ports)
    for floor in sku.busbw_floors:
        if floor.nodes_min > 1 and ports and sku.gpus.nvswitch is not NvSwitch.RACK:
            nodes = floor.nodes_max or 64
            assert floor.busbw_gbs <= sum(ports) / 8 * nodes / (nodes - 1) * 1.04
    assert [floor.nodes_min for floor in sku.busbw_floors] == sorted(
        floor.nodes_min for floor in sku.busbw_floors
    )


@pytest.mark.parametrize("sku", GPU_ENTRIES, ids=lambda sku: sku.name)
def test_floors_fall_without_a_cliff(sku):
    floors = [found.busbw_gbs for nodes in range(2, 2000) if (found := sku_floor(sku, nodes)) is not None]
    falls = [1 - after / before for before, after in pairwise(floors)]
    assert all(fall >= 0 for fall in falls)
    # from 2 to 3 nodes a ring over the ports loses a quarter (k/(k-1)); later steps are small
    assert max(falls[1:], default=0) < 0.08
    for nodes, reached in enumerate(floors, 2):
        possible = ceiling(sku, nodes)
        assert possible is None or reached < possible


def test_the_floor_of_h100_by_nodes():
    h100 = catalogue()["dgx-h100"]
    found = {nodes: sku_floor(h100, nodes).busbw_gbs for nodes in (1, 2, 16, 17, 32, 64, 1000)}
    assert found == {1: 460, 2: 400, 16: 400, 17: 397.6, 32: 372.4, 64: 344.7, 1000: 340.3}
    assert sku_floor(h100, 17).source == (
        "between 400 at 16 nodes (published) and 345 at 64 (85% of what the ports can do)"
    )
    assert sku_floor(h100, 1000).source.startswith(
        "arithmetic: 85% of what the ports can do at 1000 nodes, 400"
    )


@pytest.mark.parametrize("board", BOARDS)
def test_a_board_is_the_same_in_both_lines(board):
    dgx, hgx = catalogue()[f"dgx-{board}"], catalogue()[f"hgx-{board}"]
    assert dgx.gpus == hgx.gpus
    assert dgx.floors == hgx.floors
    assert (dgx.host_varies, hgx.host_varies) == (False, True)


def test_what_is_not_known_is_listed():
    unknown = unknown_fields(catalogue()["dgx-b300"])
    assert {"numa_nodes", "nics.near_gpus", "gpus.pcie_generation"} <= set(unknown)
    assert "gpus.minimum_driver" not in unknown
    assert "gpus.pci_ids" not in unknown
    for sku in ENTRIES:
        assert len(unknown_fields(sku)) == len(set(unknown_fields(sku)))


@pytest.mark.parametrize(
    "sku", [sku for sku in ENTRIES if sku.name.startswith("dgx")], ids=lambda sku: sku.name
)
def test_cited_entries_have_no_figure_by_definition(sku):
    assert not any(source.text.startswith("By definition") for source in sku.sources)


def test_the_lab_node():
    lab = catalogue()["lab-node"]
    assert (lab.cpus, lab.memory_mib, lab.gpus) == (2, 2048, None)
    simulated = catalogue()["lab-h100-node"]
    assert simulated.gpus == catalogue()["hgx-h100"].gpus, "simulated GPUs are the cited ones"

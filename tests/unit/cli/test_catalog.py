"""rackwright catalog."""

from __future__ import annotations

import json

import pytest

from rackwright.catalog.read import catalogue


def test_the_list(rackwright):
    lines = rackwright("catalog").out.splitlines()
    assert lines[0].split() == ["SKU", "GPUS", "DESCRIPTION"]
    assert len(lines) == 1 + len(catalogue())
    assert {line.split()[0] for line in lines[1:]} == set(catalogue())
    names = [entry["name"] for entry in json.loads(rackwright("catalog", "--json").out)["skus"]]
    assert names == list(catalogue())


@pytest.mark.parametrize("name", sorted(catalogue()))
def test_every_entry_prints_with_its_sources(rackwright, name):
    result = rackwright("catalog", name)
    assert result.status == 0
    sku = catalogue()[name]
    assert "\nNot known: " in result.out
    for source in sku.sources:
        assert f"- {source.text} (read {source.read})" in result.out
    for published in sku.published:
        assert all(f"  published: {value}" in result.out for value in published.values)
        assert f"  chosen because: {published.reason}" in result.out


def test_an_entry_as_json(rackwright):
    data = json.loads(rackwright("catalog", "dgx-b300", "--json").out)
    assert data["sku"]["gpus"]["pci_ids"] == ["10de:3182"]
    assert data["sku"]["gpus"]["minimum_driver"] == "580.82.07"
    assert "gpus.pcie_generation" in data["unknown"]


def test_floors_by_number_of_nodes(rackwright):
    out = rackwright("catalog", "dgx-h100").out
    assert "  nccl_busbw_gbs, 1 node: 460\n" in out
    assert "  nccl_busbw_gbs, 2 to 16 nodes: 400\n" in out
    assert "  nccl_busbw_gbs, by interpolation and arithmetic: 32 nodes 372.4, 64 nodes 344.7, " in out


@pytest.mark.parametrize(
    ("table", "line"),
    [
        ("xid", "79 reboot yes RESTART_BM GPU has fallen off the bus"),
        ("mig", "h100-80gb 2x1g.10gb 1x2g.20gb 1x3g.40gb 7x1g.10gb 4x1g.20gb 3x2g.20gb"),
        ("cuda", "13.0 Update 2 580.95.05 >= 580"),
        ("cuda", "10.3 580.82.07 12.9"),
        ("kernels", "ubuntu-24.04 x86_64 6.8.0-139-generic 6.8.0-139.139 2026-11-23"),
        ("drivers", "595 production 2027-03 13.2 -"),
        ("security", "nvidia-driver 580 580.159.03 https://nvidia.custhelp.com/"),
    ],
)
def test_tables(rackwright, table, line):
    result = rackwright("catalog", "--table", table)
    assert result.status == 0
    assert any(" ".join(row.split()).startswith(line) for row in result.out.splitlines())
    assert "(read 2026-11-2" in result.out
    data = json.loads(rackwright("catalog", "--table", table, "--json").out)["table"]
    assert data["rows"]
    assert data["sources"]


def test_mistakes(rackwright):
    result = rackwright("catalog", "dgx-h10")
    assert (result.status, result.err.splitlines()[0]) == (1, "error: The catalogue has no SKU dgx-h10.")
    assert rackwright("catalog", "dgx-h100", "--table", "xid").status == 64
    assert rackwright("catalog", "--table", "nothing").status == 64

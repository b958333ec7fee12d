"""rackwright fabric: what is declared, as text and JSON; files that declare no cabling are refused."""

from __future__ import annotations

import json

import pytest

from tests.examples import INVENTORY
from tests.unit.clusterfile.base_file import change

SECTION = "fabrics:\n  ib: {spines: 't[1-2]', uplinks: {each: 2, leaf_first: 33}, ports: 40}\n"


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "demo.yaml"
    leaves = ("    switch: s[1-2]\n", '    switch: ["a[1-2]", "b[1-2]"]\n')
    path.write_text(change(("ssh:\n  user", f"{SECTION}ssh:\n  user"), leaves))
    return path


def lines_of(text: str) -> list[str]:
    return [" ".join(line.split()) for line in text.splitlines()]


def test_the_declared_fabric(rackwright, file):
    result = rackwright("fabric", "show", file)
    assert (result.status, result.err) == (0, "")
    assert lines_of(result.out) == [
        "ib: infiniband, 2 rails, 4 leaves, 2 spines, 24 cables",
        "SWITCH LEVEL RAIL NODES PORTS TO NODES PORTS TO SWITCHES",
        "a1 leaf 0 w[1-2] 1-2 33-34 t1, 35-36 t2",
        "b1 leaf 1 w[1-2] 1-2 33-34 t1, 35-36 t2",
        "a2 leaf 0 w[3-4] 1-2 33-34 t1, 35-36 t2",
        "b2 leaf 1 w[3-4] 1-2 33-34 t1, 35-36 t2",
        "t1 spine - - - 1-2 a1, 3-4 b1, 5-6 a2, 7-8 b2",
        "t2 spine - - - 1-2 a1, 3-4 b1, 5-6 a2, 7-8 b2",
    ]


def test_one_leaf_is_not_leaves(rackwright, tmp_path):
    path = tmp_path / "demo.yaml"
    path.write_text(
        change(("ssh:\n  user", "fabrics:\n  ib:\nssh:\n  user"), ("switch: s[1-2]", "switch: s1"))
    )
    first, _, row = lines_of(rackwright("fabric", "show", path).out)
    assert first == "ib: infiniband, 2 rails, 1 leaf, 0 spines, 8 cables"
    assert row == "s1 leaf 0-1 w[1-4] 1-8 -"


def test_every_cable_on_request(rackwright, file):
    (file.parent / "cables.csv").write_text(
        "from,from_port,to,to_port,speed_gbps,label\nw4,rail1,b2,2,200,K17\n"
    )
    file.write_text(file.read_text().replace("ports: 40", "ports: 40, lanes: 4, cables: cables.csv"))
    lines = lines_of(rackwright("fabric", "show", file, "--cables").out)[8:]
    assert len(lines) == 24
    assert lines[0] == "w1 rail 0 -> a1 port 1 4 lanes # by rule"
    assert lines[7] == "w4 rail 1 -> b2 port 2 200 Gb/s 4 lanes K17 # cables.csv:2"
    assert lines[-1] == "b2 port 36 -> t2 port 8 4 lanes # by rule"


def test_the_document(rackwright, file):
    guid = "0x0002c903000e0b72"
    file.write_text(file.read_text().replace("ports: 40", f"ports: 40, switches: {{a1: {{guid: '{guid}'}}}}"))
    found = json.loads(rackwright("fabric", "show", file, "--json").out)
    [fabric] = found.pop("fabrics")
    assert found == {"kind": "rackwright.fabric", "version": 1, "cluster": "demo"}
    switches, cables = fabric.pop("switches"), fabric.pop("cables")
    assert fabric == {
        "network": "ib",
        "kind": "infiniband",
        "rails": 2,
        "leaves": ["a1", "b1", "a2", "b2"],
        "spines": ["t1", "t2"],
    }
    assert [one["name"] for one in switches] == [*fabric["leaves"], *fabric["spines"]]
    assert switches[0] == {
        "name": "a1",
        "level": "leaf",
        "guid": "0002c903000e0b72",
        "description": None,
        "firmware": None,
        "ports": 40,
        "rails": [0],
        "nodes": ["w1", "w2"],
        "node_ports": [1, 2],
        "ports_to": {"t1": [33, 34], "t2": [35, 36]},
        "in_place": None,
    }
    assert switches[5]["ports_to"] == {"a1": [1, 2], "b1": [3, 4], "a2": [5, 6], "b2": [7, 8]}
    assert len(cables) == 24
    common = {"speed_gbps": None, "lanes": None, "label": None, "declared": "by rule", "in_place": None}
    assert cables[0] == {"near": {"node": "w1", "rail": 0}, "far": {"switch": "a1", "port": 1}, **common}
    assert cables[-1] == {"near": {"switch": "b2", "port": 36}, "far": {"switch": "t2", "port": 8}, **common}


def test_the_example_of_a_unit_of_dgx_h100(rackwright):
    file = INVENTORY / "example-dgx-h100.yaml"
    first, _, *rows = lines_of(rackwright("fabric", "show", file).out)
    assert first == "fabric: infiniband, 8 rails, 8 leaves, 4 spines, 504 cables"
    up = "33-40 su1-spine1, 41-48 su1-spine2, 49-56 su1-spine3, 57-64 su1-spine4"
    assert rows[:8] == [f"su1-leaf{rail + 1} leaf {rail} gpu[001-031] 1-31 {up}" for rail in range(8)]
    down = ", ".join(f"{8 * leaf + 1}-{8 * leaf + 8} su1-leaf{leaf + 1}" for leaf in range(8))
    assert " ".join(rows[8:10]) == f"su1-spine1 spine - - - {down}"
    [fabric] = json.loads(rackwright("fabric", "show", file, "--json").out)["fabrics"]
    assert {(one["speed_gbps"], one["lanes"]) for one in fabric["cables"]} == {(400, 4)}
    assert {one["ports"] for one in fabric["switches"]} == {64}
    assert [len(one["nodes"]) for one in fabric["switches"]] == [31] * 8 + [0] * 4


HOW = "`, with the leaf of each node under `switch` (docs/fabric.md)"


@pytest.mark.parametrize("command", ["show", "check"])
@pytest.mark.parametrize(
    ("edits", "arguments", "message", "hint"),
    [
        (
            (),
            (),
            "{path} declares no cabling.",
            "e.g. `fabrics: {ib: {spines: 'spine[1-2]', uplinks: {each: 8, leaf_first: 33}}}" + HOW,
        ),
        (
            (("purpose: fabric", "purpose: storage"), ("    rails: 2\n    rail_prefix: 25\n", "")),
            (),
            "{path} declares no cabling.",
            "declare a network with `purpose: fabric`, and its cabling under `fabrics` (docs/fabric.md)",
        ),
        (
            (),
            ("--network", "store"),
            "{path} declares no cabling of the network store.",
            "e.g. `fabrics: {store: {cables: cables.csv}}` (docs/fabric.md)",
        ),
        (
            (("ssh:\n  user", f"{SECTION}ssh:\n  user"),),
            ("--network", "store"),
            "{path} declares no cabling of the network store.",
            "networks with cabling: ib",
        ),
        (
            (("ssh:\n  user", f"{SECTION}ssh:\n  user"),),
            ("--network", "infiniband"),
            "{path} declares no network infiniband.",
            "networks: ib",
        ),
    ],
)  # fmt: skip
def test_what_declares_no_cabling_is_refused(rackwright, tmp_path, command, edits, arguments, message, hint):
    path = tmp_path / "demo.yaml"
    path.write_text(change(*edits))
    result = rackwright("fabric", command, path, *arguments)
    assert (result.status, result.out) == (1, "")
    assert " ".join(result.err.split()) == f"error: {message.replace('{path}', str(path))} hint: {hint}"


@pytest.mark.parametrize("command", ["show", "check"])
def test_a_file_with_mistakes_is_refused_with_all_of_them(rackwright, file, command):
    file.write_text(file.read_text().replace("ports: 40", "ports: 40, cables: cables.csv, lanes: 3"))
    result = rackwright("fabric", command, file)
    assert (result.status, result.out) == (1, "")
    assert result.err.startswith(f"error: {file} has 2 mistakes.")
    assert "fabrics.ib.lanes: Not one of: 1, 2, 4, 8 or 12." in result.err
    assert f"fabrics.ib.cables: {file.parent}/cables.csv does not exist." in result.err

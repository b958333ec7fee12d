"""rackwright fabric: what is declared, as text and JSON; files that declare no cabling are refused."""

from __future__ import annotations

import json

import pytest

from tests.unit.clusterfile.base_file import change

SECTION = "fabrics:\n  ib: {spines: 't[1-2]', uplinks: {each: 2, leaf_first: 33}, ports: 40}\n"


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "demo.yaml"
    leaves = ("    switch: s[1-2]\n", '    switch: ["a[1-2]", "b[1-2]"]\n')
    path.write_text(change(("ssh:\n  user", f"{SECTION}ssh:\n  user"), leaves))
    return path


def test_the_declared_fabric(rackwright, file):
    result = rackwright("fabric", "show", file)
    assert result.status == 0, result.err
    lines = [" ".join(line.split()) for line in result.out.splitlines()]
    assert lines[0] == "ib: infiniband, 2 rails, 4 leaves, 2 spines, 24 cables"
    assert "a1 leaf 0 w[1-2] 1-2 t1:2 t2:2" in lines
    assert "b2 leaf 1 w[3-4] 1-2 t1:2 t2:2" in lines
    assert "t2 spine - - - a1:2 b1:2 a2:2 b2:2" in lines


def test_every_cable_on_request(rackwright, file):
    result = rackwright("fabric", "show", file, "--cables")
    lines = [" ".join(line.split()) for line in result.out.splitlines()]
    assert any("w4 rail 1" in line and "b2 port 2" in line for line in lines)
    assert any("b2 port 36" in line and "t2 port 8" in line for line in lines)


def test_the_document(rackwright, file):
    found = json.loads(rackwright("fabric", "show", file, "--json").out)
    [fabric] = found["fabrics"]
    assert (found["cluster"], fabric["network"], len(fabric["cables"])) == ("demo", "ib", 24)


@pytest.mark.parametrize("command", ["show", "check"])
def test_a_file_without_cabling_is_refused_with_an_example(rackwright, tmp_path, command):
    path = tmp_path / "demo.yaml"
    path.write_text(change())
    result = rackwright("fabric", command, path)
    assert result.status == 1
    assert f"{path} declares no cabling." in result.err
    assert "hint: declare leaves and spines under `fabrics`" in " ".join(result.err.split())


def test_a_network_without_cabling_is_refused(rackwright, file):
    result = rackwright("fabric", "check", file, "--network", "store")
    assert result.status == 1
    assert f"{file} declares no cabling of a network store." in result.err
    assert "hint: declared under `fabrics`: ib" in result.err

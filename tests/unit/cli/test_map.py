"""`rackwright map`: the page, the JSON, and what it exits with."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from rackwright.cli import app
from rackwright.clusterfile.load import load_cluster
from rackwright.errors import RackwrightError
from rackwright.live.facts import Unknown
from rackwright.live.node import Live, LiveNode
from tests.screenshots import live_of
from tests.unit.drawing.pages import Page

FILE = "inventory/example-dgx-h100.yaml"
CLUSTER = load_cluster(Path(FILE), locked=False)


def ran(*arguments):
    return CliRunner().invoke(app, ["map", FILE, *map(str, arguments)])


def good():
    live = live_of(CLUSTER, every=1000)
    keep = live.nodes["gpu001"]
    nodes = {
        name: LiveNode(name, node.scheduler, node.health, node.drift, ()) if not node.reasons else
        LiveNode(name, keep.scheduler, keep.health, keep.drift, ())
        for name, node in live.nodes.items()
    }  # fmt: skip
    return Live(live.cluster, live.at, live.seconds, nodes)


@pytest.fixture(autouse=True)
def no_node_is_asked(monkeypatch):
    def refuse(*_, **__):
        raise AssertionError("without --live no node is asked")

    monkeypatch.setattr("rackwright.cli.map.look", refuse)


def test_the_declaration_is_drawn_and_no_node_is_asked(tmp_path):
    done = ran("-o", tmp_path / "map.html")
    assert done.exit_code == 0, done.output
    assert f"{tmp_path / 'map.html'}: 35 nodes of h100, as declared" in done.output
    page = Page((tmp_path / "map.html").read_text())
    assert len(page.boxes) == 35
    assert "Declared; not compared with the nodes" in page.text


def test_live_states_colour_the_nodes(tmp_path, monkeypatch):
    asked = []

    def look(cluster, *, seconds):
        asked.append((cluster.name, seconds))
        return good()

    monkeypatch.setattr("rackwright.cli.map.look", look)
    done = ran("-o", tmp_path / "map.html", "--live", "--timeout", "7")
    assert done.exit_code == 0, done.output
    assert asked == [("h100", 7)]
    assert {box.look for box in Page((tmp_path / "map.html").read_text()).boxes} <= {"good", "busy"}


def test_something_unknown_is_exit_status_4(tmp_path, monkeypatch):
    live = good()
    node = live.nodes["gpu002"]
    silent = LiveNode("gpu002", Unknown("no answer"), node.health, node.drift, ())
    live = Live(live.cluster, live.at, live.seconds, {**live.nodes, "gpu002": silent})
    monkeypatch.setattr("rackwright.cli.map.look", lambda cluster, *, seconds: live)
    done = ran("-o", tmp_path / "map.html", "--live")
    assert done.exit_code == 4
    assert "1 unknown" in done.output


def test_json_alone_and_with_the_page(tmp_path):
    alone = ran("--json")
    assert json.loads(alone.output)["kind"] == "rackwright.map"
    both = ran("--json", "-o", tmp_path / "map.html")
    assert json.loads(both.output) == json.loads(alone.output)
    assert (tmp_path / "map.html").exists()


def test_nothing_to_do_is_an_error_with_a_hint():
    done = ran()
    assert isinstance(done.exception, RackwrightError)
    assert done.exception.hint == f"rackwright map {FILE} -o map.html"


def test_a_folder_that_does_not_exist_is_named(tmp_path):
    done = ran("-o", tmp_path / "no" / "map.html")
    assert isinstance(done.exception, RackwrightError)
    assert "No such file or directory" in done.exception.message

"""`rackwright dashboards`, against a real HTTP server in the place of Prometheus."""

from __future__ import annotations

import json
import time

import pytest
from typer.testing import CliRunner

from rackwright.cli import app
from rackwright.cli import dashboards as module
from rackwright.dashboards.catalogue import DASHBOARDS
from rackwright.model.types import NodeRole
from tests.factories import make_cluster, make_node
from tests.unit.dashboards.site import EVERY_NODE, Collects, Serves
from tests.unit.prometheus.fake_prometheus import PASSWORD, matrix, prometheus, vector
from tests.unit.prometheus.local_pool import pool  # noqa: F401 - a fixture

pytestmark = pytest.mark.usefixtures("pool")


@pytest.fixture
def cluster(tmp_path, monkeypatch):
    """The cluster of every file; its Prometheus answers with `answers.data`."""
    (tmp_path / "password").write_text(PASSWORD)
    monkeypatch.setattr(Collects, "password_file", str(tmp_path / "password"))
    with prometheus(answers) as fake:
        options = {"exporters": Serves(served=EVERY_NODE), "prometheus": Collects(url=fake.url)}
        made = make_cluster(make_node("head1", 10, NodeRole.HEAD, options=options))
        monkeypatch.setattr(module, "load_cluster", lambda file, locked: made)
        yield fake


def answers(path, given):
    """Every query has a series, but those about drift."""
    if "drift" in given["query"]:
        return vector()
    labels = {"node": "head1", "role": "head", "device": "eth0"}
    if path.endswith("range"):
        return matrix((labels, [(time.time() - 30, "1"), (time.time(), "2")]))
    return vector((labels, 1))


def run(*words):
    return CliRunner().invoke(app, ["dashboards", *words], catch_exceptions=False)


def test_pages(cluster, tmp_path):
    done = run("render", "x.yaml", "--out", str(tmp_path / "out"))
    assert done.exit_code == 0
    lines = done.stdout.splitlines()
    assert "node-head1: Drift: No data: it comes with rackwright drift install." in lines
    assert lines[-1] == f"written: {tmp_path}/out/index.html"
    assert lines[-2].startswith("dashboards: ")
    assert "5 without data" in lines[-2]
    page = (tmp_path / "out" / "overview.html").read_text()
    assert "CPU busy" in page
    assert '"name":"head"' in page
    assert (tmp_path / "out" / "node-head1.html").exists()


def test_one_dashboard_of_one_node(cluster, tmp_path):
    done = run(
        "render",
        "x.yaml",
        "--out",
        str(tmp_path / "out"),
        "--dashboard",
        "node",
        "--set",
        "node=other",
        "--since",
        "2h",
    )
    assert done.exit_code == 0
    assert sorted(path.name for path in (tmp_path / "out").glob("*.html")) == [
        "index.html",
        "node-other.html",
    ]
    spans = {
        float(given["end"]) - float(given["start"]) for path, given in cluster.asked if path.endswith("range")
    }
    assert spans == {7200}
    assert any('node="other"' in given["query"] for _, given in cluster.asked)


@pytest.mark.parametrize(
    ("words", "status"),
    [((), 0), (("--require-data",), 4), (("--require-data", "--dashboard", "overview"), 0)],
)
def test_panels_without_data(cluster, tmp_path, words, status):
    done = run("render", "x.yaml", "--out", str(tmp_path), *words)
    assert done.exit_code == status


def test_an_error_is_no_data(cluster, tmp_path):
    cluster.status = 503
    done = run("render", "x.yaml", "--out", str(tmp_path), "--dashboard", "overview", "--require-data")
    assert done.exit_code == 4
    assert "overview: Nodes that answer: Prometheus answers 503: no JSON of its API" in done.stdout


def test_long_lists_are_cut(cluster, tmp_path, monkeypatch):
    monkeypatch.setattr(module, "_SHOWN", 2)
    done = run("render", "x.yaml", "--out", str(tmp_path))
    assert "... and 3 more" in done.stdout.splitlines()


@pytest.mark.parametrize(
    ("words", "message", "hint"),
    [
        (("--dashboard", "queu"), "There is no dashboard queu.", "did you mean `queue`?"),
        (("--set", "node"), "'node' sets nothing.", "e.g. --set node=gpu01"),
        (("--set", "node="), "'node=' sets nothing.", "e.g. --set node=gpu01"),
        (("--set", "nod=x"), "No dashboard has a variable nod.", "did you mean `node`?"),
        (("--since", "yesterday"), "'yesterday' is not a span of time.", "90m, 6h, 7d or 4w"),
    ],
)
def test_what_is_refused(cluster, tmp_path, words, message, hint):
    done = CliRunner().invoke(app, ["dashboards", "render", "x.yaml", "--out", str(tmp_path), *words])
    assert (done.exception.message, done.exception.hint) == (message, hint)


@pytest.mark.parametrize(("command", "package"), [("render", "plotly"), ("json", "grafana_foundation_sdk")])
def test_a_missing_package(cluster, tmp_path, monkeypatch, command, package):
    monkeypatch.setattr(module, "find_spec", lambda name: None)
    done = CliRunner().invoke(app, ["dashboards", command, "x.yaml", "--out", str(tmp_path)])
    assert done.exception.message == f"The Python package {package} is missing."
    assert done.exception.hint == "pip install 'rackwright[dashboards]'"


def test_files_for_grafana(cluster, tmp_path):
    done = run("json", "x.yaml", "--out", str(tmp_path / "out"))
    assert done.exit_code == 0
    written = {path.stem: json.loads(path.read_text()) for path in (tmp_path / "out").glob("*.json")}
    assert set(written) <= {one.name for one in DASHBOARDS}
    assert written["overview"]["title"] == "Cluster overview"
    titles = [panel["title"] for panel in written["overview"]["panels"]]
    assert "CPU busy" in titles
    assert "GPU power" not in titles, "nothing serves it here"
    assert "gpu: left out, the cluster has nothing of what it shows" in done.stdout
    assert cluster.asked == [], "no question to Prometheus"


def test_a_folder_that_cannot_be_written(cluster, tmp_path):
    (tmp_path / "file").write_text("")
    done = CliRunner().invoke(app, ["dashboards", "json", "x.yaml", "--out", str(tmp_path / "file")])
    assert done.exception.message == f"The dashboards cannot be written to {tmp_path}/file: File exists."

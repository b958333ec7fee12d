"""The cluster behind the screen: a Slurm that behaves as it does, that refuses, and that is silent."""

from __future__ import annotations

import threading
import time

import pytest

from rackwright.errors import ConnectionFailed, RackwrightError, WorkloadError
from rackwright.live.facts import Absent, Unknown
from rackwright.live.findings import Level
from rackwright.model.types import NodeRole, Platform
from rackwright.top import source as module
from rackwright.top.source import ClusterSource
from rackwright.top.view import racks, rows
from tests.factories import RunsSlurm, make_cluster, make_node
from tests.unit.workload.fake_slurm import FakeSlurm

OPTIONS = {"slurm": RunsSlurm()}


@pytest.fixture
def cluster(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    return make_cluster(
        make_node("head1", 10, NodeRole.HEAD, options=OPTIONS, rack="r10"),
        make_node("w1", 11, options=OPTIONS, rack="r2"),
        make_node("w2", 12, options=OPTIONS, rack="r10"),
        make_node("w3", 13, options=OPTIONS),
        path=tmp_path / "site.yaml",
    )


@pytest.fixture
def slurm():
    return FakeSlurm("w1", "w2", "w3")


def _rows(cluster, view):
    return {row.node: row for row in rows(cluster, view, cluster.nodes)}


def test_states_and_jobs(cluster, slurm):
    slurm.nodes["w1"].jobs.append("train")
    source = ClusterSource(cluster, slurm)
    view = source.look()
    found = _rows(cluster, view)
    assert list(found) == ["w1", "head1", "w2", "w3"], (
        "rack by rack: r2 before r10, nodes without a rack last"
    )
    assert (found["w1"].jobs, found["w2"].jobs, found["head1"].jobs) == ("7 ada", "-", "-")
    assert found["head1"].state == "-"
    assert [(rack.name, rack.nodes) for rack in racks(found.values())] == [("r2", 1), ("r10", 2), ("-", 1)]


def test_drift_and_health_are_asked_aside(cluster, slurm):
    source = ClusterSource(cluster, slurm)
    deadline = time.monotonic() + 20
    while (view := source.look()).slow_at is None:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert not isinstance(view.live.nodes["w1"].health, Unknown)


def test_a_silent_scheduler_is_unknown_with_its_reason(cluster, slurm):
    slurm.silent = True
    view = ClusterSource(cluster, slurm).look()
    row = _rows(cluster, view)["w1"]
    assert (row.level, row.state, row.jobs) == (Level.UNKNOWN, "UNKNOWN", "UNKNOWN")
    assert "Slurm does not answer on head1" in row.reason
    assert isinstance(view.jobs, Unknown)


def test_a_lost_head_costs_no_more_than_the_limit(cluster, monkeypatch):
    monkeypatch.setattr(module, "FAST_SECONDS", 0.5)
    hang = threading.Event()

    class Lost:
        def run(self, node, command, *, stdin=None, timeout):
            hang.wait(30)
            raise ConnectionFailed(f"{node} is lost")

    began = time.monotonic()
    view = ClusterSource(cluster, Lost()).look()
    assert time.monotonic() - began < 10
    assert view.jobs == Unknown("no answer within 0.5 s")
    hang.set()


def test_without_a_workload_manager_there_is_nothing_to_know(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    cluster = make_cluster(path=tmp_path / "site.yaml")
    source = ClusterSource(cluster, FakeSlurm())
    view = source.look()
    assert isinstance(view.jobs, Absent)
    assert {row.jobs for row in _rows(cluster, view).values()} == {"-"}
    with pytest.raises(RackwrightError, match="declares no workload manager"):
        source.drain("worker1", "x y z")


def test_a_drain_names_the_operator_and_is_undone_by_its_own_reason(cluster, slurm):
    source = ClusterSource(cluster, slurm)
    source.drain("w1", " ticket 4711 ")
    row = _rows(cluster, source.look())["w1"]
    assert row.level is Level.DRAINED
    assert row.drain_reason.endswith(": ticket 4711")
    assert "@" in row.drain_reason
    with pytest.raises(WorkloadError, match="for another reason by now"):
        source.resume("w1", "ticket 4711")
    slurm.nodes["w1"].user = "ada"
    source.resume("w1", row.drain_reason)
    assert _rows(cluster, source.look())["w1"].drain_reason is None


def test_consoles(cluster, slurm):
    source = ClusterSource(cluster, slurm)
    assert source.console("w1")[2:] == ["rackwright", "lab", "console", "w1", "--file", str(cluster.path)]
    bare = make_cluster(make_node("head1", 10, NodeRole.HEAD, platform=Platform.BARE_METAL))
    with pytest.raises(RackwrightError, match="head1 has no BMC declared"):
        ClusterSource(bare, slurm).console("head1")
    assert source.why("w1")[2:] == ["rackwright", "why", str(cluster.path), "w1"]


def test_top_without_a_terminal_says_so(capsys):
    from rackwright.cli import run

    assert run(["top", "inventory/lab.yaml"]) == 1
    assert capsys.readouterr().err.startswith("error: top needs a terminal.\nhint: ")

"""Who drains and is killed leaves word of it, and whoever finds the node as declared puts it back."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rackwright.engine.journal import Journal, read_run
from rackwright.engine.left_drained import left_drained, put_back
from rackwright.errors import WorkloadError
from tests.factories import make_cluster


@pytest.fixture(autouse=True)
def state(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    return tmp_path / "rackwright"


@pytest.fixture
def left(state):
    """The name of a run that drained three workers, put one back, and was killed within a line."""

    def make(roles=None) -> str:
        journal = Journal("test", Path("c.yaml"), limit=None, roles=roles)
        with journal:
            journal.write("drain", nodes=["worker1", "worker2", "worker3"])
            journal.write("resume", nodes=["worker3"])
        (path,) = state.rglob(f"{journal.run}.jsonl")
        first, *rest = path.read_text().splitlines()[:-1]
        path.write_text("\n".join([json.dumps({**json.loads(first), "pid": 2**31}), *rest, '{"at": 1, "ev']))
        return journal.run

    return make


@pytest.fixture
def resumed(monkeypatch):
    """(run, nodes) of every resumption."""
    calls = []

    class Manager:
        def resume(self, nodes, run):
            if "worker2" in nodes and len(calls) == 1:
                raise WorkloadError("Slurm did not answer")
            calls.append((run, list(nodes)))

    monkeypatch.setattr("rackwright.engine.left_drained.manager_of", lambda cluster, shell: Manager())
    return calls


def test_only_what_is_as_declared_goes_back_and_only_once(left, resumed):
    run = left()
    assert left_drained("test", None) == {run: ["worker1", "worker2"]}
    cluster = make_cluster()
    assert (
        put_back(cluster, ["worker1", "worker3"], None) == f"worker1: back in service, drained by run {run}"
    )
    assert resumed == [(run, ["worker1"])]
    assert read_run(run).events[-1]["nodes"] == ["worker1"]
    assert put_back(cluster, ["worker1"], None) is None
    assert put_back(cluster, ["worker2"], None) == (
        f"worker2, drained by run {run}, could not be resumed: Slurm did not answer"
    )
    assert left_drained("test", None) == {run: ["worker2"]}


def test_a_cluster_without_a_workload_manager_any_more_has_nothing_to_put_back(left):
    run = left()
    assert put_back(make_cluster(), ["worker1"], None) is None
    assert left_drained("test", None) == {run: ["worker1", "worker2"]}


def test_a_run_of_some_roles_puts_back_what_it_drained_itself(left):
    run = left(frozenset({"munge"}))
    assert left_drained("test", frozenset({"munge"})) == {run: ["worker1", "worker2"]}
    assert left_drained("test", frozenset({"base"})) == {}
    assert left_drained("test", None) == {run: ["worker1", "worker2"]}


def test_a_run_that_goes_on_is_left_alone():
    with Journal("test", Path("c.yaml"), limit=None, roles=None) as journal:
        journal.write("drain", nodes=["worker1"])
        assert read_run(journal.run).state in ("running", "interrupted")
        if read_run(journal.run).state == "running":
            assert left_drained("test", None) == {}

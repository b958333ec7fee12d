"""Who drains and is killed leaves word of it, and whoever finds the node as declared puts it back."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rackwright.engine.journal import Journal, read_run
from rackwright.engine.left_drained import left_drained, put_back, put_back_all
from rackwright.errors import WorkloadError
from tests.factories import make_cluster, make_node
from tests.unit.workload.fake_manager import MemoryManager

THREE = make_cluster(*make_cluster().nodes, make_node("worker3", 13))


@pytest.fixture(autouse=True)
def state(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setattr(
        "rackwright.engine.left_drained.not_passed", lambda cluster, names: dict.fromkeys(names)
    )
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
            return list(nodes)

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
        f"cannot resume worker2, drained by run {run}: Slurm did not answer"
    )
    assert left_drained("test", None) == {run: ["worker2"]}


@pytest.fixture
def manager(monkeypatch):
    """A manager in memory, and the number of connections that were opened for it."""
    found = MemoryManager(THREE)
    found.pools = 0

    class OnePool:
        def __init__(self, cluster):
            found.pools += 1

        def __enter__(self):
            return self

        def __exit__(self, *_):
            pass

    monkeypatch.setattr("rackwright.ssh.Pool", OnePool)
    monkeypatch.setattr("rackwright.engine.left_drained.manager_of", lambda cluster, shell: found)
    return found


def test_one_that_a_person_drained_meanwhile_stays_and_is_not_called_back_in_service(left, manager):
    run = left()
    manager.nodes["worker1"].reason = "bad DIMM"
    manager.nodes["worker2"].reason = f"rackwright: {run}"
    assert put_back(make_cluster(), ["worker1", "worker2"], None) == (
        f"worker2: back in service, drained by run {run}; worker1: left as is, no longer drained by run {run}"
    )
    assert manager.nodes["worker1"].reason == "bad DIMM"
    events = [(event["event"], event.get("nodes")) for event in read_run(run).events]
    assert events[-2:] == [("resume", ["worker2"]), ("released", ["worker1"])]
    assert left_drained("test", None) == {}
    assert put_back(make_cluster(), ["worker1"], None) is None, "asked once"


def test_after_a_run_journals_and_reasons_are_one_pass(left, manager):
    mine, others = left(), "20261123T074215Z-0a1b2c"
    manager.nodes["worker1"].reason = "bad DIMM"
    manager.nodes["worker2"].reason = f"rackwright: {mine}"
    manager.nodes["worker3"].reason = f"rackwright: {others}"
    noted, good = [], ["worker1", "worker2", "worker3"]
    texts = put_back_all(
        THREE, good, None, own="own", resumed=None, noted=lambda *what: noted.append(what),
    )  # fmt: skip
    assert texts == [
        f"worker2: back in service, drained by run {mine}; worker1: left as is, no longer drained by run {mine}",
        f"worker3: back in service, drained by run {others}",
    ]
    assert noted == [
        (mine, "resume", ["worker2"]), (mine, "released", ["worker1"]), (others, "resume", ["worker3"])
    ]  # fmt: skip
    assert manager.pools == 1
    assert manager.nodes["worker1"].reason == "bad DIMM"


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


def test_a_node_that_a_run_rebooted_is_put_back_only_once_it_passes(manager, monkeypatch):
    journal = Journal("test", Path("c.yaml"), limit=None, roles=None)
    with journal:
        journal.write("drain", nodes=["worker1", "worker2"])
        journal.write("reboot", nodes=["worker1"])
    for name in ("worker1", "worker2"):
        manager.nodes[name].reason = f"rackwright: {journal.run}"
    asked, passes = [], {"worker1": "slurm: slurmd is running: FAIL: inactive"}
    monkeypatch.setattr(
        "rackwright.engine.left_drained.not_passed",
        lambda cluster, names: asked.append(list(names)) or {name: passes.get(name) for name in names},
    )
    assert put_back(THREE, ["worker1", "worker2"], None) == (
        f"worker1: still drained by run {journal.run}: its checks fail: slurm: slurmd is running: FAIL: inactive; worker2: back in service, drained by run {journal.run}"
    )
    assert manager.nodes["worker1"].reason == f"rackwright: {journal.run}"
    passes.clear()
    assert (
        put_back(THREE, ["worker1", "worker2"], None)
        == f"worker1: back in service, drained by run {journal.run}"
    )
    assert asked == [["worker1"], ["worker1"]]

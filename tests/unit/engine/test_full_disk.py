"""cannot write A disk of the control node that is full, or: refused at the start, in order later on."""

from __future__ import annotations

import json
import os
import resource
from contextlib import contextmanager
from pathlib import Path

import pytest

from rackwright.drift.install import update_digests
from rackwright.engine.journal import Journal, read_run
from rackwright.engine.rollout import Rollout
from rackwright.engine.run import Applied
from rackwright.engine.run_lock import run_lock
from rackwright.engine.workers import Workers
from rackwright.errors import RackwrightError
from rackwright.factcache.cache import ClassCache
from rackwright.model.settings import Waves
from rackwright.plan.changes import Change
from rackwright.plan.node_plan import NodeOutcome, NodePlan, PlannedOperation, PlanResult
from tests.factories import make_cluster
from tests.unit.workload.fake_manager import MemoryManager

CLUSTER = make_cluster()
DISRUPTIVE = Change("unit", "slurmd.service", "running", "restarted", disruptive=True)
NO_SPACE = "No space left on device"


@pytest.fixture(autouse=True)
def state(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    return tmp_path / "rackwright" / "test"


@contextmanager
def files_no_larger_than(size):
    """The kernel's own refusal, for this process alone: a write past it is cut short, the next one fails."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def fill_disk_of(journal):
    """From now on its writes fail as on a full disk."""
    journal._file.close()
    journal._file = Path("/dev/full").open("wb", buffering=0)  # noqa: SIM115 - the journal closes it


@pytest.fixture
def rollout(monkeypatch):
    """Two waves of one worker each; `full_at` is called with the journal at the moment it is named after."""

    def make(**full_at):
        manager = MemoryManager(CLUSTER)
        monkeypatch.setattr("rackwright.engine.rollout.manager_of", lambda cluster, shell: manager)
        operation = PlannedOperation("base", "x", (DISRUPTIVE,), ())
        workers = ("worker1", "worker2")
        plan = PlanResult(
            "test", "c.yaml", "0" * 64, {name: NodePlan(name, (operation,)) for name in workers}
        )
        journal = Journal("test", Path("c.yaml"), limit=None, roles=None)
        mirrored: list[dict] = []
        journal.mirror = lambda run, line: mirrored.append(json.loads(line))
        applied: list[str] = []

        class Session:
            interrupted, stopped = False, None

            def apply(self, nodes):
                if nodes and "apply" in full_at:
                    fill_disk_of(journal)
                self.stopped = full_at.get("lost")
                applied.extend(nodes)
                return {name: NodeOutcome(name, name not in full_at.get("fails", ())) for name in nodes}

        if "drain" in full_at:
            drain = manager.drain

            def drain_and_fill(*given):
                fill_disk_of(journal)
                return drain(*given)

            manager.drain = drain_and_fill
        with journal:
            if "start" in full_at:
                fill_disk_of(journal)
            done = Rollout(Session(), CLUSTER, plan, Waves(size=1, pause_seconds=0), journal)
            result = done.run()
        return done, result, applied, manager, mirrored

    return make


def test_the_wave_is_finished_its_nodes_are_resumed_and_no_other_begins(rollout):
    done, result, applied, manager, mirrored = rollout(apply=True)
    assert applied == ["worker1"]
    assert result.nodes["worker1"].ok
    assert manager.nodes["worker1"].reason is None, "it was put back into service"
    assert manager.nodes["worker2"].reason is None, "it was never drained"
    assert NO_SPACE in (result.nodes["worker2"].error or "")
    assert result.nodes["worker2"].error.startswith("not started: ")
    assert NO_SPACE in done.stopped
    assert done.left_drained == set()
    assert result.exit_code == 1
    assert [event["event"] for event in mirrored][-3:] == ["resume", "result", "end"], "the head goes on"


def test_a_node_that_failed_meanwhile_is_named_as_left_drained(rollout):
    done, _, _, manager, _ = rollout(apply=True, fails=("worker1",))
    assert done.left_drained == {"worker1"}
    assert manager.nodes["worker1"].reason is not None


def test_full_while_nodes_drain_they_are_put_back_untouched(rollout):
    done, result, applied, manager, _ = rollout(drain=True)
    assert applied == []
    assert manager.nodes["worker1"].reason is None
    assert done.left_drained == set()
    assert all(NO_SPACE in outcome.error for outcome in result.nodes.values())


def test_full_before_the_first_wave_nothing_is_touched(rollout):
    _, result, applied, manager, _ = rollout(start=True)
    assert applied == []
    assert not any(node.reason for node in manager.nodes.values())
    assert all(outcome.error.startswith("not started: ") for outcome in result.nodes.values())


def test_a_run_that_lost_its_lock_begins_no_further_wave_and_puts_back_what_it_drained(rollout):
    done, result, applied, manager, _ = rollout(lost="another run has it.")
    assert applied == ["worker1"]
    assert result.nodes["worker2"].error == "not started: the run lost its lock: another run has it"
    assert not any(node.reason for node in manager.nodes.values())
    assert done.left_drained == set()


@pytest.mark.parametrize("size", [0, 1, 60, 300])
def test_a_journal_that_cannot_begin_is_refused_and_leaves_nothing(state, size):
    journal = Journal("test", Path("c.yaml"), limit=None, roles=None)
    state.mkdir(parents=True, exist_ok=True)
    (state / "runs").mkdir(exist_ok=True)
    with (
        files_no_larger_than(size),
        pytest.raises(RackwrightError, match=r"Cannot write .*Nothing was changed"),
    ):
        journal.__enter__()
    assert list((state / "runs").iterdir()) == []


def test_a_journal_cut_by_a_full_disk_is_read_and_goes_on_once_there_is_room(state):
    with Journal("test", Path("c.yaml"), limit=None, roles=None) as journal:
        size = journal._path.stat().st_size
        with files_no_larger_than(size + 20):
            journal.write("drain", nodes=["worker1"])
        assert NO_SPACE in journal.failure or "File too large" in journal.failure
        journal.write("resume", nodes=["worker1"])
    run = read_run(journal.run)
    assert [event["event"] for event in run.events] == ["begin", "resume", "end"]


@pytest.mark.parametrize("size", [0, 10])
def test_a_lock_that_cannot_be_written_refuses_before_anything_is_changed(state, size):
    with (
        files_no_larger_than(size),
        pytest.raises(RackwrightError, match="Nothing was changed"),
        run_lock("test"),
    ):
        pytest.fail("the run began")
    with run_lock("test"):  # and is free
        pass


def test_a_state_folder_that_cannot_be_used_is_a_sentence(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    with pytest.raises(RackwrightError, match="is not usable") as refused, run_lock("test"):
        pass
    assert "XDG_STATE_HOME" in refused.value.hint


def test_a_cache_that_cannot_be_written_is_a_warning(tmp_path, caplog):
    cache = ClassCache(tmp_path / "facts", "class", "key")
    cache.store("worker1", [{"kind": "shell", "command": "true"}], "digest")
    with files_no_larger_than(3):
        cache.save()
    assert "cannot be written" in caplog.text
    assert list((tmp_path / "facts").glob("*.json")) == []
    cache.save()
    assert ClassCache(tmp_path / "facts", "class", "key").get("worker1").digest == "digest"


def test_digests_of_the_drift_check_that_cannot_be_written_are_a_note(monkeypatch):
    def full(path):
        raise OSError(28, NO_SPACE)

    monkeypatch.setattr("rackwright.drift.install.read_declaration", full)
    note = update_digests(CLUSTER, Applied(PlanResult("test", "c.yaml", "0" * 64, {}), None))
    assert note is not None
    assert NO_SPACE in note


def test_a_worker_starts_although_its_log_cannot(state, monkeypatch):
    started = []

    class Process:
        stdin = stdout = ()

        def wait(self):
            return 0

    monkeypatch.setattr(
        "rackwright.engine.workers.start_process", lambda errors: started.append(errors.name) or Process()
    )
    monkeypatch.setattr("rackwright.engine.workers.Worker.order", lambda self, **order: None)
    state.mkdir(parents=True, exist_ok=True)
    (state / "log").write_text("a file in the place of the folder, for which mkdir and open fail alike")
    with pytest.raises(FileExistsError):
        os.mkdir(state / "log")
    worker = Workers("test", {}).start({"worker1": "class"})
    assert started == [os.devnull]
    worker.process.poll = lambda: 1
    assert "cannot read the log" in worker.why_it_ended()

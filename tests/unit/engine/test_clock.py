"""A clock of the control node that is years off, or jumps while a run goes on: nothing crashes, nothing stays fresh."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner

from rackwright.cli import app
from rackwright.drift import checker_files
from rackwright.drift.baseline import Baseline
from rackwright.drift.report import LastInSync
from rackwright.engine import journal as journal_module
from rackwright.engine.journal import Journal, _is_alive, read_run, runs
from rackwright.factcache.cache import FULL_EVALUATION_SECONDS, ClassCache
from rackwright.plan.node_plan import NodePlan, PlanResult
from tests.factories import make_cluster

YEARS = 10 * 365 * 86400.0
QUESTIONS = [{"kind": "shell", "command": "true"}]


@pytest.fixture(autouse=True)
def state(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    return tmp_path / "rackwright"


@pytest.fixture
def clock(monkeypatch):
    """Moves this process's clock by seconds; the one that only counts up is left alone."""
    real = time.time

    def move(seconds):
        monkeypatch.setattr(time, "time", lambda: real() + seconds)

    return move


def stored(folder):
    cache = ClassCache(folder, "class", "key")
    cache.store("worker1", QUESTIONS, "digest")
    cache.save()


def digest(folder):
    return ClassCache(folder, "class", "key").get("worker1").digest


def test_a_digest_of_the_future_is_not_fresh_and_is_replaced(tmp_path, clock):
    clock(YEARS)
    stored(tmp_path)
    assert digest(tmp_path) == "digest"
    clock(0)
    assert digest(tmp_path) is None, "how old it is, is not known"
    stored(tmp_path)
    assert digest(tmp_path) == "digest", (
        "the next full evaluation counts, or every run would evaluate in full"
    )
    clock(FULL_EVALUATION_SECONDS + 1)
    assert digest(tmp_path) is None


def test_a_clock_that_goes_back_makes_a_digest_stale(tmp_path, clock):
    stored(tmp_path)
    clock(-YEARS)
    assert digest(tmp_path) is None
    stored(tmp_path)
    assert digest(tmp_path) == "digest"
    clock(0)
    assert digest(tmp_path) is None


def test_times_in_sync_of_the_future_are_forgotten():
    now = time.time()
    plan = PlanResult("c", "f", "0" * 64, {"a": NodePlan("a"), "b": NodePlan("b", error="lost")})
    known = LastInSync({"a": now + YEARS, "b": now + YEARS, "c": now - 5}).updated(plan, now)
    assert known.times == {"a": now, "c": now - 5}


def test_a_baseline_of_the_future_does_not_win_for_years(monkeypatch):
    now = time.time()
    there = json.dumps({"worker1": ["wrong-clock", now + YEARS], "worker2": ["newer", now - 5]})
    mine = {"worker1": Baseline("", "mine", now - 10), "worker2": Baseline("", "older", now - 10)}
    monkeypatch.setattr(checker_files, "kept_of", lambda cluster, name: mine.get(name))
    found = json.loads(checker_files.expected(make_cluster(), there))
    assert found["worker1"] == ["mine", now - 10]
    assert found["worker2"] == ["newer", now - 5]
    mine["worker2"] = Baseline("", "wrong-clock", now + YEARS)
    assert json.loads(checker_files.expected(make_cluster(), there))["worker2"] == ["newer", now - 5]


@pytest.mark.parametrize("jump", [YEARS, -YEARS, -40 * 365 * 86400.0])
def test_a_journal_goes_on_and_stays_on_the_disk_when_the_clock_jumps(clock, monkeypatch, jump):
    synced = []
    monkeypatch.setattr(os, "fsync", lambda descriptor: synced.append(descriptor))
    monkeypatch.setattr(journal_module, "_SYNC_SECONDS", 0.01)
    with Journal("test", Path("c.yaml"), limit=None, roles=None) as journal:
        journal.write("drain", nodes=["worker1"])
        clock(jump)
        before = len(synced)
        for _ in range(3):
            time.sleep(0.02)
            journal.write("resume", nodes=["worker1"])
        assert len(synced) - before == 3, "a clock that went back must not hold back the lines for years"
    run = read_run(journal.run)
    assert [event["event"] for event in run.events] == ["begin", "drain", "resume", "resume", "resume", "end"]
    assert run.state == "finished"
    assert CliRunner().invoke(app, ["runs", journal.run]).exit_code == 0


def test_runs_of_a_wrong_clock_are_listed(clock):
    for seconds in (0, YEARS, -YEARS):
        clock(seconds)
        with Journal("test", Path("c.yaml"), limit=None, roles=None):
            pass
    clock(0)
    assert len(runs("test")) == 3
    assert all(run.state == "finished" for run in runs("test"))
    assert CliRunner().invoke(app, ["runs"]).exit_code == 0


def test_a_run_of_before_a_reboot_is_not_taken_for_one_that_goes_on(monkeypatch):
    """Its process id is another rackwright's by now; no clock is asked."""
    with Journal("test", Path("c.yaml"), limit=None, roles=None) as journal:
        begin = read_run(journal.run).begin
        monkeypatch.setattr(Path, "read_bytes", lambda path: b"python -m rackwright apply")
        assert _is_alive(begin)
        boot, _, started = begin["process"].partition(" ")
        assert not _is_alive({**begin, "process": f"{boot} {int(started) - 1}"}), (
            "another process with its id"
        )
        assert not _is_alive({**begin, "process": f"another-boot {started}"})
        assert _is_alive({key: value for key, value in begin.items() if key != "process"}), "of before"

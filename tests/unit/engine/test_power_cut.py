"""What a power cut leaves of state files: any of them cut, empty, zero-filled or with a foreign block at its end."""

from __future__ import annotations

import fcntl
import json
import random
from pathlib import Path

import pytest
from typer.testing import CliRunner

from rackwright.burnin.store import RESULTS, previous
from rackwright.cli import app
from rackwright.drift.baseline import Baseline, keep, kept_of
from rackwright.drift.report import LastInSync
from rackwright.engine.journal import Journal, append, read_run, runs
from rackwright.engine.left_drained import left_drained
from rackwright.engine.run_lock import run_lock
from rackwright.errors import RunLocked
from rackwright.factcache.cache import ClassCache
from tests.factories import make_cluster

CLUSTER = make_cluster()
QUESTIONS = [{"kind": "shell", "command": f"true {number}"} for number in range(3)]


@pytest.fixture(autouse=True)
def state(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    return tmp_path / "rackwright" / "test"


def damaged(whole: bytes, step: int = 1):
    """The file cut off at every length, and at some with its rest as zeros or as bytes of another file."""
    rng = random.Random(7)
    for length in range(0, len(whole), step):
        head, lost = whole[:length], len(whole) - length
        yield head
        if length % 7 == 0 or lost < 9:
            yield head + bytes(lost)
            yield head + rng.randbytes(lost)
    yield bytes(len(whole))
    yield from (
        b"null",
        b"[]",
        b"[1, 2]",
        b"{}",
        b'"x"',
        b"0",
        b"\xff\xfe",
        b"[" * 5000,
        b'{"a": {"b": null}}',
    )


def _journal() -> Path:
    with Journal("test", Path("c.yaml"), limit="worker1", roles=None) as journal:
        journal.write("drain", nodes=["worker1"])
        journal.write("start", node="worker1", role="base", name="Write it")
        journal.write("finish", node="worker1", role="base", name="Write it", outcome="changed")
        journal.write("node", node="worker1", ok=True, changed=1, error=None)
    return journal._path


def _without_blanks(line: bytes) -> bytes:
    return line.strip(b" \t\r")


def _next_bytes(whole: bytes):
    """A line that is whole but for its end, with every byte of another file after it."""
    for line_end in (at for at, byte in enumerate(whole) if byte == ord("\n")):
        for byte in range(256):
            yield whole[:line_end] + bytes([byte]) + b"{}"
            yield whole[:line_end] + bytes([byte])


def test_a_journal_is_read_as_far_as_it_is_whole(state, monkeypatch):
    monkeypatch.setattr("rackwright.engine.journal._is_alive", lambda begin: False)
    path = _journal()
    whole = path.read_bytes()
    lines = whole.splitlines()
    for content in [*damaged(whole), *_next_bytes(whole)]:
        path.write_bytes(content)
        run = read_run(path.stem)
        # white space after an event is JSON; which random byte follows one depends on the length of the journal
        kept = [line for line in map(_without_blanks, content.split(b"\n")) if line in lines]
        assert [json.dumps(event).encode() for event in run.events] == kept, "its whole lines and no other"
        assert run.state in ("interrupted", "finished")
        assert left_drained("test", None) in ({}, {run.run: ["worker1"]})
    assert [run.run for run in runs("test")] == [path.stem]


def test_commands_show_damaged_journals(state):
    path = _journal()
    whole = path.read_bytes()
    for content in damaged(whole, 97):
        path.write_bytes(content)
        for command in (["runs"], ["runs", path.stem], ["runs", "--json"], ["runs", path.stem, "--json"]):
            result = CliRunner().invoke(app, command)
            assert result.exit_code == 0, (content, result.output, result.exception)
        result = CliRunner().invoke(app, ["resume", path.stem, "--yes"])
        text = str(result.exception)
        assert "before it had recorded" in text or "is damaged" in text or "c.yaml" in text, text


def test_a_later_run_can_add_to_a_damaged_journal(state):
    path = _journal()
    whole = path.read_bytes()
    for content in damaged(whole, 13):
        path.write_bytes(content)
        append("test", path.stem, "resume", nodes=["worker1"])
        assert read_run(path.stem).events[-1]["nodes"] == ["worker1"]
        assert left_drained("test", None) == {}


@pytest.mark.parametrize(
    "event",
    [
        {"event": "node", "at": 1}, {"event": "drain", "at": 1, "nodes": None}, {"event": "drain", "at": 1, "nodes": [[]]},
        {"event": "end", "at": 1}, {"event": ["end"], "at": 1}, {"event": "finish", "at": 1, "node": {}},
        {"event": "begin", "at": 1}, {"event": "begin", "at": "x"}, {"event": "resume", "at": 1e300, "nodes": []},
        {"event": "x", "at": -1}, {"at": 1}, [], 7, None, {"event": "node", "at": 1, "node": "a", "ok": "yes"},
    ],
)  # fmt: skip
def test_lines_that_no_run_wrote_are_left_out(state, event):
    path = _journal()
    before = read_run(path.stem).events
    path.write_text(path.read_text() + json.dumps(event) + "\n")
    assert read_run(path.stem).events == before
    assert CliRunner().invoke(app, ["runs", path.stem]).exit_code == 0


def test_a_cache_is_whole_or_empty(tmp_path):
    cache = ClassCache(tmp_path / "facts", "class", "key")
    cache.store("worker1", QUESTIONS, "digest", ["base | a", "base | b", "base | c"])
    cache.save()
    (path,) = (tmp_path / "facts").glob("*.json")
    whole = path.read_bytes()
    for content in damaged(whole):
        path.write_bytes(content)
        found = ClassCache(tmp_path / "facts", "class", "key").get("worker1")
        assert (found.questions, found.digest) == ([], None)
        again = ClassCache(tmp_path / "facts", "class", "key")
        again.store("worker1", QUESTIONS, "digest")
        again.save()
        assert ClassCache(tmp_path / "facts", "class", "key").get("worker1").digest == "digest"


@pytest.mark.parametrize(
    "change",
    [
        {"nodes": {"worker1": None}}, {"nodes": {"worker1": {}}}, {"nodes": {"worker1": {"asks": [99], "digest": None}}},
        {"nodes": {"worker1": {"asks": "x", "digest": 1, "key": 2, "full": "x"}}}, {"questions": {"{": 0}},
        {"questions": {"null": "x"}}, {"askers": {"x": None}},
    ],
)  # fmt: skip
def test_a_cache_with_foreign_entries_is_empty(tmp_path, change):
    cache = ClassCache(tmp_path / "facts", "class", "key")
    cache.store("worker1", QUESTIONS, "digest")
    cache.save()
    (path,) = (tmp_path / "facts").glob("*.json")
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    found = ClassCache(tmp_path / "facts", "class", "key")
    assert found.get("worker1").digest in (None, "digest")
    found.store("worker1", QUESTIONS, "digest")
    found.save()
    assert ClassCache(tmp_path / "facts", "class", "key").get("worker1").digest == "digest"


def test_times_in_sync_are_whole_or_none(tmp_path):
    path = tmp_path / "in-sync.json"
    LastInSync({"worker1": 1.5, "worker2": 2.5}).write(path)
    for content in [
        *damaged(path.read_bytes()),
        b'{"worker1": null}',
        b'{"worker1": [1]}',
        b'{"worker1": NaN}',
    ]:
        path.write_bytes(content)
        assert LastInSync.read(path).times == {}


def test_a_baseline_is_whole_or_none(state):
    keep(CLUSTER, "worker1", Baseline('{"questions": []}', "digest", 1.5))
    path = state / "drift" / "worker1.json"
    for content in [*damaged(path.read_bytes()), b'{"questions": 1, "digest": null, "at": "x"}']:
        path.write_bytes(content)
        assert kept_of(CLUSTER, "worker1") is None
        keep(CLUSTER, "worker1", Baseline('{"questions": []}', "digest", 1.5))
        assert kept_of(CLUSTER, "worker1") == Baseline('{"questions": []}', "digest", 1.5)


def test_burnins_of_before_are_whole_or_passed_over(state):
    folder = RESULTS.folder("test")
    folder.mkdir(parents=True)
    group = {"engine": "mpi", "nodes": ["worker1"], "size": 8, "busbw_gbs": 2.0}
    whole = json.dumps({"started": "then", "groups": [group]}).encode()
    path = folder / "20261123T000000Z.json"
    odd = [b'{"groups": null}', b'{"groups": [null]}', b'{"groups": [{"busbw_gbs": "x"}]}']
    for content in [*damaged(whole), *odd]:
        path.write_bytes(content)
        assert previous("test", engine="mpi", nodes=("worker1",), size=8, busbw_gbs=1.0) is None


def test_a_lock_is_the_kernels_whatever_its_file_holds(state):
    with run_lock("test"):
        pass
    path = state / "run.lock"
    whole = path.read_bytes()
    for content in damaged(whole, 7):
        path.write_bytes(content)
        with path.open("a") as other:
            fcntl.flock(other, fcntl.LOCK_EX)
            with pytest.raises(RunLocked), run_lock("test"):
                pass
        with run_lock("test"):
            pass

"""A flood by a user, or a full disk, costs neither other entries of the audit trail nor the removal of old files."""

from __future__ import annotations

import os
import subprocess
import sys
from types import SimpleNamespace

import pytest

from rackwright.logs import audit_copy, audit_files
from rackwright.logs.audit_bounds import NODE_BYTES, USER_BYTES, Bounds
from tests.unit.logs.journals import LOGIN, T0, entry

DAY = 86400
GIB = 2**30


def by(uid, at=1.0, *, trusted=False):
    return {"node": "w1", "at": T0 + at, "message": "x", "uid": uid, "trusted": trusted}


def disk_with(folder, monkeypatch, free):
    """A disk with `free()` bytes left."""
    monkeypatch.setattr(
        "rackwright.logs.keeper.os.statvfs", lambda path: SimpleNamespace(f_bavail=free(), f_frsize=1)
    )


def test_each_user_and_all_of_them_have_a_bound():
    bounds = Bounds(closed=False)
    assert bounds.takes(by(3000), USER_BYTES)
    assert not bounds.takes(by(3000), 1)
    assert not bounds.takes(by(3001), USER_BYTES + 1)
    assert bounds.takes(by(3001), USER_BYTES)
    assert bounds.takes(by(None), NODE_BYTES - 3 * USER_BYTES)
    assert bounds.takes(by(3002), USER_BYTES)
    assert not bounds.takes(by(3003), 1)
    assert bounds.takes(by(0, trusted=True), GIB)
    assert bounds.takes(by(3000, 301), USER_BYTES), "it is a bound of five minutes"
    assert bounds.left_out == {3000: 1, 3001: 1, 3003: 1}


def test_nothing_of_users_is_taken_on_a_short_disk():
    bounds = Bounds(closed=True)
    assert not bounds.takes(by(3000), 1)
    assert bounds.takes(by(0, trusted=True), 1)


def test_a_flood_leaves_the_entries_of_root_and_of_other_users(folder, run):
    flood = [entry(2 + at / 1000, "x" * 4000, **LOGIN, _UID="3000") for at in range(1000)]
    lines = [
        entry(1, "root", **LOGIN),
        *flood,
        entry(5, "other", **LOGIN, _UID="3001"),
        entry(6, "end", **LOGIN),
    ]
    folder.write(1, lines)
    folder.write(2, [entry(7, "two", **LOGIN)])
    made = run(10)
    assert made.errors == []
    kept = [one for one in folder.audited() if one["message"][0] != "x"]
    message = (
        f"entries of users were dropped from the audit trail: {made.left_out} (uid 3000: {made.left_out})"
    )
    assert [one["message"] for one in kept] == ["root", "other", "end", message, "two"]
    assert (kept[3]["node"], kept[3]["trusted"], kept[3]["facility"]) == ("w1", True, 10)
    assert 700 < made.left_out < 800
    again = run(20)
    assert (again.copied, again.left_out) == (0, 0)


def test_a_node_that_could_not_be_copied_costs_no_other_its_removal(folder, run, monkeypatch):
    """Of that node's files, only those already copied are removed."""
    copied = folder.write(1, [entry(-21 * DAY, "a", **LOGIN)], "@0-1-2")
    run(-20 * DAY)
    other = folder.write(1, [entry(-20 * DAY, "b", **LOGIN)], "@0-3-4")
    second = folder.write(2, [entry(-20 * DAY, "no login")], "@0-1-2")
    disk_with(folder, monkeypatch, lambda: 400)
    made = run(keep_free_bytes=1000)
    assert made.errors == [
        f"w1: the audit trail is incomplete: {folder.audit} has less than half of keep_free left"
    ]
    assert (copied.exists(), other.exists(), second.exists()) == (False, True, False)


def test_room_is_made_before_the_trail_is_compressed(folder, run, monkeypatch):
    old = folder.write(1, [entry(-20 * DAY, "a", **LOGIN)], "@0-1-2")
    run(-DAY)
    monkeypatch.setattr(audit_files, "compress_closed", _full)
    with pytest.raises(OSError, match="No space left"):
        run(0)
    assert not old.exists()


def _full(folder, now):
    raise OSError(28, "No space left on device")


def test_entries_of_users_are_left_out_while_the_disk_is_short(folder, run, monkeypatch):
    folder.write(1, [entry(1, "user", **LOGIN, _UID="3000"), entry(2, "root", **LOGIN)])
    disk_with(folder, monkeypatch, lambda: 800)
    made = run(10, keep_free_bytes=1000)
    assert (made.errors, made.left_out) == ([], 1)
    assert [one["message"] for one in folder.audited()][:1] == ["root"]


def test_a_batch_is_bounded_in_bytes_and_what_was_copied_in_number(folder, run, monkeypatch):
    monkeypatch.setattr(audit_copy, "BATCH_BYTES", 1000)
    monkeypatch.setattr(audit_copy, "RECENT", 5)
    sizes = []
    append = audit_files.append
    monkeypatch.setattr(
        audit_files, "append", lambda *given: (sizes.append(sum(map(len, given[2]))), append(*given))
    )
    folder.write(1, [entry(at, "y" * 300, **LOGIN) for at in range(50)])
    assert run(100).copied == 50
    assert max(sizes) < 2000


def test_a_backlog_of_long_lines_takes_little_memory(folder):
    """As many as there were in a batch, each of the longest."""
    program = f"""
import sys
sys.path.insert(0, {os.getcwd()!r})
from rackwright.logs.audit_bounds import Bounds
from rackwright.logs import audit_copy
class Journal:
    problems = []
    def __init__(self, *given): pass
    def __iter__(self):
        for at in range(10_000):
            yield {{"__CURSOR": str(at), "__REALTIME_TIMESTAMP": str(at), "MESSAGE": "\\U0001f600" * 4096, "SYSLOG_FACILITY": "10", "_UID": "0"}}
audit_copy.Journalctl = Journal
audit_copy.AuditCopy("w1", None, Bounds(closed=False), lambda lines, cursor: None).read([])
print([line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM")][0])
"""
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert int(said.stdout) < 128 * 1024

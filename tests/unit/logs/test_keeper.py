"""What keeps the central journal: the audit trail is copied before anything goes, and what goes is the right one's."""

from __future__ import annotations

import io
import json
import os
from types import SimpleNamespace

import pytest

from rackwright.logs import audit_files, keeper, keeper_metrics
from tests.unit.logs.journals import LOGIN, T0, entry

DAY = 86400


def audited(folder):
    """(node, message) of the whole audit trail, oldest day first."""
    return [(one["node"], one["message"]) for one in folder.audited()]


def test_logins_are_copied_once(folder, run):
    folder.write(1, [entry(1, "Accepted publickey", **LOGIN), entry(2, "nothing of the kind")])
    folder.write(2, [entry(1, "sudo", SYSLOG_FACILITY="10")])
    assert run(10).copied == 2
    assert run(20).copied == 0
    folder.write(1, [entry(1, "Accepted publickey", **LOGIN), entry(25, "closed", **LOGIN)])
    assert run(30).copied == 1
    assert audited(folder) == [("w1", "Accepted publickey"), ("w2", "sudo"), ("w1", "closed")]
    assert os.stat(folder.audit / "2026-11-27.jsonl").st_mode & 0o777 == 0o600


def test_a_node_that_was_cut_off_for_days_loses_none(folder, run):
    folder.write(2, [entry(1, "two", **LOGIN)])
    run(10)
    folder.write(1, [entry(-3 * DAY, "late", **LOGIN)])
    assert run(20).copied == 1
    assert audited(folder)[-1] == ("w1", "late")


def test_the_trail_is_kept_for_its_own_days(folder, run):
    folder.write(1, [entry(0, "first", **LOGIN)])
    run(0)
    folder.write(1, [entry(0, "first", **LOGIN), entry(30 * DAY, "second", **LOGIN)])
    run(30 * DAY)
    run(90 * DAY)
    assert audited(folder) == [("w1", "first"), ("w1", "second")]
    assert sorted(path.name for path in folder.audit.iterdir()) == [
        "2026-11-27.jsonl.gz",
        "2026-12-27.jsonl.gz",
    ]
    run(91 * DAY)
    assert audited(folder) == [("w1", "second")]


def test_no_entry_is_left_out_where_the_one_copied_last_is_gone(folder, run):
    """Its file was removed: the node was silent for long, or flooded."""
    folder.write(1, [entry(1, "a", **LOGIN)])
    run(10)
    folder.write(1, [entry(20, "b", **LOGIN), entry(21, "c", **LOGIN)])
    run(30)
    assert audited(folder) == [("w1", "a"), ("w1", "b"), ("w1", "c")]


def test_a_file_that_is_closed_before_it_is_read_costs_nothing(folder, run):
    """The folder was read when it still had the other name."""
    folder.write(1, [entry(1, "a", **LOGIN), entry(2, "b", **LOGIN)])
    folder.rotate_before_reading(1, [entry(3, "c", **LOGIN)])
    assert run(10).errors == []
    assert sorted(audited(folder)) == [("w1", "a"), ("w1", "b"), ("w1", "c")]
    assert run(20).copied == 0


def test_a_day_that_was_compressed_before_keeps_what_it_had(folder, run):
    """The server's clock was ahead for a while, so that today was an earlier day."""
    folder.write(1, [entry(0, "first", **LOGIN)])
    run(0)
    run(2 * DAY)
    folder.write(1, [entry(0, "first", **LOGIN), entry(5, "second", **LOGIN)])
    run(10)
    run(2 * DAY)
    assert audited(folder) == [("w1", "first"), ("w1", "second")]


def test_old_closed_files_go_and_open_ones_stay(folder, run):
    gone = folder.write(1, [entry(-20 * DAY, "a")], "@0-1-2")
    young = folder.write(1, [entry(-13 * DAY, "b")], "@0-2-3")
    silent = folder.write(2, [entry(-99 * DAY, "c")])
    assert run().removed == 1
    assert (gone.exists(), young.exists(), silent.exists()) == (False, True, True)


def test_a_damaged_file_is_as_old_as_it_was_written(folder, run):
    damaged = folder.path / "remote-127.1.0.1.journal~"
    damaged.write_bytes(b"nothing")
    os.utime(damaged, (T0 - 20 * DAY, T0 - 20 * DAY))
    made = run()
    assert not damaged.exists()
    assert made.errors == [
        f"w1: cannot read all of {damaged.name}: Failed to open journal file {damaged}: Bad message"
    ]


def test_a_damaged_file_costs_only_what_was_damaged(folder, run):
    """Neither what a match would find by its index, nor the node's other files; what was copied before is not again."""
    folder.damage(folder.write(1, [entry(1, "lost", **LOGIN), entry(2, "left", **LOGIN)], "@0-1-2"))
    folder.write(1, [entry(3, "open", **LOGIN), entry(4, "no login")])
    unreadable = folder.write(1, [entry(0, "x")], "@0-0-1")
    unreadable.with_name(unreadable.name + ".json").unlink()
    made = run(10)
    assert sorted(audited(folder)) == [("w1", "left"), ("w1", "open")]
    assert [text.split(": ")[1].split()[-1] for text in made.errors] == [
        "remote-127.1.0.1@0-0-1.journal",
        "remote-127.1.0.1@0-1-2.journal",
    ]
    assert run(20).copied == 0


def test_who_floods_loses_its_own(folder, run):
    quiet = folder.write(2, [entry(-9 * DAY, "old and quiet")], "@0-1-2", size=50_000)
    flood = [folder.write(1, [entry(-at, "flood")], f"@0-{at}-0", size=100_000) for at in (30, 20, 10)]
    open_ = folder.write(1, [entry(0, "open")], size=100_000)
    run(max_bytes=300_000)
    assert [one.exists() for one in (*flood, quiet, open_)] == [False, False, True, True, True]


def test_the_disk_stays_free(folder, run, monkeypatch):
    first = folder.write(1, [entry(-30, "a")], "@0-1-2", size=10_000)
    second = folder.write(1, [entry(-20, "b")], "@0-2-3", size=10_000)

    def disk(path):
        free = 0 if first.exists() else 1000
        return SimpleNamespace(f_bavail=free, f_frsize=1024)

    monkeypatch.setattr("rackwright.logs.keeper.os.statvfs", disk)
    run(keep_free_bytes=500 * 1024)
    assert (first.exists(), second.exists()) == (False, True)


def test_nothing_goes_while_the_trail_cannot_be_written(folder, run, monkeypatch):
    """Otherwise a full disk would cost the entries of the trail that are in old files alone."""
    old = folder.write(1, [entry(-20 * DAY, "Accepted", **LOGIN)], "@0-1-2")
    monkeypatch.setattr(
        "rackwright.logs.keeper.os.statvfs", lambda path: SimpleNamespace(f_bavail=0, f_frsize=1)
    )
    made = run(keep_free_bytes=1000)
    assert made.errors == [
        f"w1: the audit trail is incomplete: {folder.audit} has less than half of keep_free left"
    ]
    assert (made.removed, old.exists()) == (0, True)


def test_a_journalctl_that_fails_is_an_error(folder, run, monkeypatch):
    folder.write(1, [entry(1, "a", **LOGIN)])
    monkeypatch.setenv("JOURNALCTL_RC", "1")
    assert run().errors == ["w1: cannot read all of remote-127.1.0.1.journal: journalctl exited 1"]


def test_a_line_cut_off_by_a_crash_spoils_no_other(folder, run):
    folder.write(1, [entry(1, "whole", **LOGIN)])
    folder.audit.joinpath("2026-11-27.jsonl").write_text('{"node": "w1", "at": 1, "mess')
    run()
    problems = []
    found = list(audit_files.audit_entries(str(folder.audit), T0, problems.append))
    assert [one["message"] for one in found] == ["whole"]
    assert problems == []


def test_nothing_was_sent_yet(folder, run):
    folder.sources.unlink()
    assert run().errors == []


def test_metrics(folder):
    folder.write(1, [entry(5, "a")])
    text = keeper_metrics.metrics(folder.settings, T0 + 9, failed=True, left_out=3)
    assert f'rackwright_logs_newest_timestamp_seconds{{node="w1"}} {T0 + 5:.3f}\n' in text
    assert f"rackwright_logs_keeper_last_run_timestamp_seconds {T0 + 9}\n" in text
    assert "rackwright_logs_keeper_failed 1\n" in text
    assert "rackwright_logs_audit_left_out_entries 3\n" in text
    assert "rackwright_logs_bytes 4096\n" in text


@pytest.fixture
def program(folder, tmp_path, monkeypatch):
    """The whole program, with its files in a folder of the test."""
    settings = {**folder.settings, "days": 1, "audit_days": 90, "max_bytes": 1 << 40, "keep_free_bytes": 0}
    settings["textfiles"] = str(tmp_path / "textfiles")
    (tmp_path / "textfiles").mkdir()
    (tmp_path / "settings.json").write_text(json.dumps(settings))
    for name, path in (
        ("SETTINGS", "settings.json"),
        ("STATE", "."),
        ("CURSORS", "cursors.json"),
        ("LAST", "last.json"),
    ):
        monkeypatch.setattr(keeper, name, str(tmp_path / path))

    def call(*arguments):
        monkeypatch.setattr("sys.argv", ["logs-keeper", *arguments])
        keeper.main()

    return call


def test_the_program(folder, program, tmp_path, capsys):
    folder.write(1, [entry(1, "a", **LOGIN)])
    program()
    assert capsys.readouterr().out == "copied 1 entries of the audit trail, removed 0 journal files\n"
    assert json.loads((tmp_path / "last.json").read_text())["errors"] == []
    assert (tmp_path / "textfiles" / "rackwright_logs.prom").stat().st_mode & 0o777 == 0o644
    program("--report")
    report = json.loads(capsys.readouterr().out)
    assert report["newest"] == {"w1": T0 + 1}
    assert (report["oldest_closed"], report["bytes"], len(report["audit_days"])) == (None, 4096, 1)
    assert report["last"]["copied"] == 1


def test_the_program_says_what_is_not_complete(folder, program, monkeypatch, tmp_path):
    folder.write(1, [entry(1, "a", **LOGIN)])
    monkeypatch.setenv("JOURNALCTL_RC", "1")
    with pytest.raises(
        SystemExit, match=r"w1: cannot read all of remote-127\.1\.0\.1\.journal: journalctl exited 1"
    ):
        program()
    assert json.loads((tmp_path / "last.json").read_text())["errors"] == [
        "w1: cannot read all of remote-127.1.0.1.journal: journalctl exited 1"
    ]
    folder.sources.write_text("[]")
    with pytest.raises(SystemExit, match="does not contain node numbers"):
        program("--report")


def test_node_exporter_has_it_when_the_state_s_disk_is_full(folder, program, monkeypatch, tmp_path):
    replace = keeper._replace

    def full(path, *rest):
        if path == keeper.LAST:
            raise OSError(28, "No space left on device")
        replace(path, *rest)

    monkeypatch.setattr(keeper, "_replace", full)
    with pytest.raises(SystemExit, match=r"cannot write .*last\.json: .*No space left"):
        program()
    assert (
        "rackwright_logs_keeper_failed 1\n" in (tmp_path / "textfiles" / "rackwright_logs.prom").read_text()
    )


def test_a_full_disk_is_an_error_of_the_trail(folder, monkeypatch):
    class Full(io.BytesIO):
        def write(self, data):
            return 3

        def fileno(self):
            return 0

    monkeypatch.setattr("rackwright.logs.audit_files.os.fdopen", lambda *_, **__: Full())
    with pytest.raises(OSError, match="No space left on device"):
        audit_files.append(str(folder.audit), T0, [b'{"node": "w1", "at": 1.0, "message": "x"}\n'])

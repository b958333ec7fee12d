"""Putting parts back on a node: whole, repeatable, and nothing that an archive must not do."""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import io
import json
import os
import re
import tarfile

import pytest

from rackwright.backup import archive, places, put_back

UNITS = ["slurmdbd.service", "slurmctld.service"]
SYSTEMCTL = '#!/bin/sh\necho "$*" >>"{log}"\ncase "$*" in *bad*) echo "not loaded" >&2; exit 5;; esac\n'


@pytest.fixture
def ran(head):
    """What systemctl was asked."""
    log = head.folder / "systemctl.log"
    log.touch()
    head.program("systemctl", SYSTEMCTL.format(log=log))
    return lambda: log.read_text().splitlines()


def step(**given):
    return put_back.main([json.dumps(given)])


def left(capsys):
    """What an interrupted restore left on the node."""
    capsys.readouterr()
    assert step(step="state") == 0
    return json.loads(capsys.readouterr().out)


def put(monkeypatch, part, content, **changes):
    packed = gzip.compress(content)
    given = {
        "step": "part",
        "part": {"name": "part", "about": "part", "load": None, "folder": None, **part},
        "size": len(packed),
        "sha256": hashlib.sha256(packed).hexdigest(),
        **changes,
    }
    stdin = type("Stdin", (), {"buffer": io.BytesIO(packed)})
    monkeypatch.setattr(put_back.sys, "stdin", stdin)
    return step(**given)


def archived(folder):
    out = io.BytesIO()
    archive.write(str(folder), out)
    return out.getvalue()


def there(folder):
    return {
        str(path.relative_to(folder)): path.read_text()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def test_units_are_kept_from_starting_until_the_end(head, ran, capsys):
    assert step(step="begin", units=UNITS, run=["head1-20251126T023000Z"]) == 0
    assert ran() == ["daemon-reload", "stop slurmctld.service", "stop slurmdbd.service"]
    guard = head.folder / "units/slurmctld.service.d/guard.conf"
    assert f"ConditionPathExists=!{places.UNFINISHED}" in guard.read_text()
    assert guard.stat().st_mode & 0o777 == 0o644
    assert left(capsys) == {"run": ["head1-20251126T023000Z"], "stopped": True}
    assert step(step="begin", units=UNITS, run=["head1-20251126T023000Z"]) == 0  # again
    assert step(step="end", units=UNITS) == 0
    assert not guard.parent.exists()
    assert left(capsys) == {"run": ["head1-20251126T023000Z"], "ended": True}
    assert step(step="end", units=UNITS) == 0
    assert step(step="done", installation="abc") == 0
    assert (head.state / "installation").read_text() == "abc\n"
    assert step(step="done", installation=None) == 0
    assert left(capsys) == {}
    assert step(step="end", units=UNITS) == 0  # where another node was not done yet
    assert left(capsys) == {}


def test_other_settings_of_a_unit_stay(head, ran):
    folder = head.folder / "units/slurmctld.service.d"
    folder.mkdir()
    (folder / "rackwright.conf").touch()
    step(step="begin", units=UNITS, run=["b"])
    step(step="end", units=UNITS)
    assert [path.name for path in folder.iterdir()] == ["rackwright.conf"]


def test_a_unit_that_does_not_stop_is_an_error(head, ran, capsys):
    assert step(step="begin", units=["bad.service"], run=["b"]) == 1
    assert "systemctl stop bad.service exited 5: not loaded" in capsys.readouterr().err
    assert left(capsys) == {"run": ["b"]}  # it is not taken for stopped


def test_the_node_says_that_all_is_put_back_before_a_unit_can_start(head, ran, monkeypatch, capsys):
    """Interrupted in between: once a unit can start, what is here may be newer than the backup."""
    step(step="begin", units=UNITS, run=["b"])

    def interrupted(path):
        raise OSError("interrupted")

    monkeypatch.setattr(put_back.os, "unlink", interrupted)
    assert step(step="end", units=UNITS) == 1
    assert left(capsys) == {"run": ["b"], "ended": True}
    assert (head.folder / "units/slurmctld.service.d/guard.conf").exists()


def test_a_command_gets_the_content(head, ran, monkeypatch, capsys):
    assert put(monkeypatch, {"load": f"cat >{head.folder}/loaded"}, b"rows") == 0
    assert (head.folder / "loaded").read_bytes() == b"rows"
    assert capsys.readouterr().out == "4 bytes\n"
    assert os.listdir(places.RESTORE) == ["lock"]


@pytest.mark.parametrize(
    ("load", "why"),
    [("echo 'ERROR 1064' >&2; exit 1", "loading exited 1: ERROR 1064"), ("exit 1", "nothing was printed")],
)
def test_a_command_that_fails_is_an_error(head, ran, monkeypatch, capsys, load, why):
    assert put(monkeypatch, {"load": load}, os.urandom(1 << 20)) == 1
    assert why in capsys.readouterr().err


@pytest.mark.parametrize("changes", [{"size": 10_000}, {"sha256": "0" * 64}])
def test_half_a_part_changes_nothing(head, ran, monkeypatch, capsys, changes):
    assert put(monkeypatch, {"load": f"touch {head.folder}/loaded"}, b"rows", **changes) == 1
    assert "arrived incomplete" in capsys.readouterr().err
    assert not (head.folder / "loaded").exists()


def test_a_folder_is_replaced_with_modes_and_times(head, ran, monkeypatch, tmp_path, capsys):
    (head.spool / "hash.1").mkdir()
    (head.spool / "hash.1" / "script").write_text("echo")
    (head.spool / "hash.1" / "script").chmod(0o4750)
    os.utime(head.spool / "hash.1" / "script", (1e9, 1e9))
    head.spool.chmod(0o700)
    packed = archived(head.spool)
    target = tmp_path / "target"
    target.mkdir()
    (target / "job_state").write_text("newer")
    (target / "left").write_text("of an empty cluster")
    assert put(monkeypatch, {"folder": str(target)}, packed) == 0
    assert there(target) == {"hash.1/script": "echo", "job_state": "jobs"}
    script = (target / "hash.1" / "script").stat()
    assert (script.st_mode & 0o7777, script.st_mtime) == (0o750, 1e9)
    assert target.stat().st_mode & 0o777 == 0o700
    assert capsys.readouterr().out == "2 files\n"


@pytest.mark.parametrize("calls", range(1, 8))
def test_a_folder_put_back_in_part_is_put_back_again(head, monkeypatch, tmp_path, calls):
    """Killed at any rename: the next attempt ends as if there had been one."""
    packed, target = archived(head.spool), tmp_path / "target"
    target.mkdir()
    for name in ("job_state", "left", "other"):
        (target / name).write_text("before")
    rename, count = os.rename, 0

    def killed(*paths):
        nonlocal count
        count += 1
        if count == calls:
            raise KeyboardInterrupt
        rename(*paths)

    monkeypatch.setattr(archive.os, "rename", killed)
    with contextlib.suppress(KeyboardInterrupt):
        archive.put_back(str(target), io.BytesIO(packed))
    monkeypatch.setattr(archive.os, "rename", rename)
    archive.put_back(str(target), io.BytesIO(packed))
    assert there(target) == {"job_state": "jobs"}


def member(name, kind=tarfile.REGTYPE):
    info = tarfile.TarInfo(name)
    info.type = kind
    return info


@pytest.mark.parametrize(
    ("info", "why"),
    [
        (member("../etc/passwd"), "the archive has the path '../etc/passwd'"),
        (member("/etc/passwd"), "the archive has the path '/etc/passwd'"),
        (member("link", tarfile.SYMTYPE), "the archive's link is neither a file nor a folder"),
        (member("hard", tarfile.LNKTYPE), "the archive's hard is neither a file nor a folder"),
        (member("disk", tarfile.BLKTYPE), "the archive's disk is neither a file nor a folder"),
    ],
)
def test_an_archive_cannot_write_elsewhere(head, ran, monkeypatch, capsys, info, why):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        tar.addfile(info)
    with pytest.raises(archive.Unsafe, match=re.escape(why)):
        archive.check(io.BytesIO(out.getvalue()))
    assert put(monkeypatch, {"folder": str(head.spool)}, out.getvalue()) == 1
    assert why in capsys.readouterr().err
    assert there(head.spool) == {"job_state": "jobs"}


def test_two_steps_at_once_are_refused(head, ran, capsys):
    import fcntl

    os.mkdir(places.RESTORE)
    with open(places.RESTORE_LOCK, "a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert step(step="state") == 1
    assert "is still running here" in capsys.readouterr().err


def test_files_that_are_being_replaced_are_archived(tmp_path, monkeypatch):
    """job_state is unlinked for a moment, and a job's script may go while the archive is written."""
    for name in ("job_state.new", "job_state.old", "node_state"):
        (tmp_path / name).write_text(name)
    listed, calls = os.listdir, []

    def listdir(path):
        calls.append(path)
        if len(calls) == 3:
            (tmp_path / "job_state").write_text("whole")
        return [*listed(path), "gone"]

    monkeypatch.setattr(archive.os, "listdir", listdir)
    monkeypatch.setattr(archive, "_PAUSE_SECONDS", 0)
    with tarfile.open(fileobj=io.BytesIO(archived(tmp_path))) as tar:
        assert tar.getnames() == [".", "job_state", "job_state.new", "job_state.old", "node_state"]


def test_a_file_with_two_names_comes_back_as_two_files(head, ran, monkeypatch, tmp_path):
    """slurmctld links job_state to job_state.old before it replaces it."""
    os.link(head.spool / "job_state", head.spool / "job_state.old")
    target = tmp_path / "target"
    assert put(monkeypatch, {"folder": str(target)}, archived(head.spool)) == 0
    assert there(target) == {"job_state": "jobs", "job_state.old": "jobs"}


def test_a_folder_that_is_a_link_comes_back_with_its_own_mode(head, ran, monkeypatch, tmp_path):
    head.spool.chmod(0o700)
    (tmp_path / "link").symlink_to(head.spool)
    target = tmp_path / "target"
    assert put(monkeypatch, {"folder": str(target)}, archived(tmp_path / "link")) == 0
    assert target.stat().st_mode & 0o777 == 0o700


def test_files_come_before_folders(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "script").touch()
    (tmp_path / "z").touch()
    (tmp_path / archive.STAGING).mkdir()
    with tarfile.open(fileobj=io.BytesIO(archived(tmp_path))) as tar:
        assert tar.getnames() == [".", "z", "a", "a/script"]


def test_a_missing_folder_is_an_error(tmp_path):
    with pytest.raises(OSError, match="No such file"):
        archived(tmp_path / "none")

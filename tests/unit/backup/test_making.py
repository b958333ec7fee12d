"""Making backups: whole or not at all, encrypted, pruned, refused in the wrong place."""

from __future__ import annotations

import gzip
import io
import json
import os
import signal
import tarfile
import threading
import time

import pytest

from rackwright.backup import main, make, places
from rackwright.backup.catalogue import backups, damage, kept, name_of
from tests.unit.backup.conftest import HEADER


@pytest.fixture
def clock(monkeypatch):
    """Time as the test has it, so that two backups do not have one name."""

    class Clock:
        now = 1764124200.0  # 2025-11-26T02:30:00Z

        def time(self):
            return self.now

    clock = Clock()
    monkeypatch.setattr(main, "time", clock)
    return clock


def content(head, name, part):
    data = (head.place / name / f"{part}.gz.age").read_bytes()
    assert data.startswith(HEADER)
    return gzip.decompress(data.removeprefix(HEADER))


def test_a_backup_has_every_part_and_a_manifest(head, clock, capsys):
    (head.folder / "exporter").mkdir()
    assert main.main([]) == 0
    assert head.backups() == ["head1-20251126T023000Z"]
    assert content(head, "head1-20251126T023000Z", "database") == b"rows"
    with tarfile.open(fileobj=io.BytesIO(content(head, "head1-20251126T023000Z", "slurmctld"))) as archive:
        assert archive.getnames() == [".", "job_state"]
    (found,), broken = backups(str(head.place), "head1")
    assert (broken, damage(str(head.place), found)) == ([], [])
    assert found.manifest["recipients"] == ["age1a", "age1b"]
    assert head.place.stat().st_mode & 0o777 == 0o700
    assert "2 parts" in capsys.readouterr().out
    assert head.last()["error"] is None
    metrics = (head.folder / "exporter" / "backup.prom").read_text()  # by a link
    assert 'rackwright_backup_failed{cluster="test",node="head1"} 0' in metrics
    assert (
        'rackwright_backup_last_success_timestamp_seconds{cluster="test",node="head1"} 1764124200.0'
        in metrics
    )


@pytest.mark.parametrize(
    ("dump", "age", "why"),
    [
        ("printf rows; echo 'Access denied' >&2; exit 2", None, "its command exited 2: Access denied"),
        ("printf rows", "#!/bin/sh\necho 'no recipients' >&2\nexit 1\n", "exited 1: no recipients"),
    ],
)
def test_a_part_that_fails_leaves_no_backup(head, clock, monkeypatch, capsys, dump, age, why):
    monkeypatch.setattr(make, "time", type("Now", (), {"sleep": lambda s: None, "time": time.time}))
    head.parts[0]["dump"] = dump
    head.declare()
    if age is not None:
        head.program("age", age)
    assert main.main([]) == 1
    assert list(head.place.iterdir()) == []
    assert why in capsys.readouterr().err
    assert why in head.last()["error"]
    assert "rackwright_backup_failed{" in (head.folder / "metrics" / "backup.prom").read_text()


@pytest.mark.parametrize(
    ("ready", "why"),
    [
        ("echo '/shared is not mounted'; exit 1", "exited 1: /shared is not mounted"),
        ("mountpoint -q {folder}", "`mountpoint -q {folder}` exited 32"),
        ("sleep 5", "`sleep 5` did not finish within 0.1 s"),
        # gone while it was archived
        ("test ! -e {folder}/asked || exit 3; touch {folder}/asked", "exited 3"),
    ],
)
def test_a_folder_without_its_filesystem_is_not_backed_up(head, clock, monkeypatch, capsys, ready, why):
    monkeypatch.setattr(make, "_TRIES", 1)
    if "sleep" in ready:
        monkeypatch.setattr(make, "_READY_SECONDS", 0.1)
    head.parts = [{**head.parts[1], "ready": ready.format(folder=head.folder)}]
    head.declare()
    assert main.main([]) == 1
    assert list(head.place.iterdir()) == []
    said = capsys.readouterr().err
    assert "state was not backed up: " in said
    assert why.format(folder=head.folder) in said


def test_a_missing_age_is_named(head, clock, monkeypatch, capsys):
    monkeypatch.setattr(make, "_TRIES", 1)
    (head.programs / "age").unlink()
    monkeypatch.setenv("PATH", str(head.programs))
    assert main.main([]) == 1
    assert "cannot start age" in capsys.readouterr().err


def test_old_backups_and_what_a_killed_run_left_are_removed(head, clock):
    for day in range(4):
        clock.now += 86400
        assert main.main([]) == 0
        left = head.place / f".rackwright-partial-head1-2025112{day}T000000Z"
        left.mkdir()
        other = head.place / ".rackwright-partial-head1-b-20251120T000000Z"
        other.mkdir(exist_ok=True)
    clock.now += 86400
    main.main([])
    assert head.backups() == ["head1-20251130T023000Z", "head1-20251201T023000Z"]
    assert [path.name for path in head.place.iterdir() if path.name.startswith(".")] == [other.name]


def test_what_a_killed_run_left_makes_room_before_the_next_one(head, clock, capsys):
    main.main([])
    left = head.place / ".rackwright-partial-head1-20251120T000000Z"
    left.mkdir()
    clock.now += 60
    head.parts[0]["dump"] = f"test ! -e {left}"
    head.declare()
    assert main.main([]) == 0


WAITS = "touch {folder}/waits; exec sleep 60"


@pytest.mark.parametrize(
    ("dump", "age", "size"),
    [
        (WAITS, None, 0),
        ("printf rows", f"#!/bin/sh\n{WAITS}\n", 0),
        (
            "printf rows",
            f"#!/bin/sh\n{WAITS}\n",
            4_000_000,
        ),  # more than pipes hold: writing the archive waits
    ],
)
def test_a_backup_that_is_stopped_is_noted_and_leaves_nothing(head, clock, capsys, dump, age, size):
    """Its time limit: systemd sends SIGTERM, and SIGKILL later."""
    head.parts = [
        {**one, **({"dump": dump.format(folder=head.folder)} if one["dump"] else {})} for one in head.parts
    ]
    if size:
        (head.spool / "large").write_bytes(os.urandom(size))
        head.parts = head.parts[1:]
    head.declare()
    if age is not None:
        head.program("age", age.format(folder=head.folder))

    def stop():
        while not (head.folder / "waits").exists():
            time.sleep(0.01)
        time.sleep(0.2)
        os.kill(os.getpid(), signal.SIGTERM)

    before, began = signal.getsignal(signal.SIGTERM), time.monotonic()
    thread = threading.Thread(target=stop)
    thread.start()
    assert main.main([]) == 1
    thread.join()
    assert time.monotonic() - began < 30
    assert signal.getsignal(signal.SIGTERM) is before
    assert list(head.place.iterdir()) == []
    assert "stopped by SIGTERM" in head.last()["error"]
    assert (
        'rackwright_backup_failed{cluster="test",node="head1"} 1'
        in (head.folder / "metrics" / "backup.prom").read_text()
    )


def test_what_is_kept():
    names = [name_of("head1", 1764124200 + day * 86400) for day in range(30)]
    assert kept(names, 2, 0) == set(names[-2:])
    assert kept(names, 1, 3) == {
        names[-1],
        names[25],
        names[18],
    }  # the last of each week, which ends on Sunday
    assert kept(names, 0, 0) == {names[-1]}


def test_an_emptied_head_does_not_add_to_the_backups_of_the_old_one(head, clock, capsys):
    main.main([])
    (head.state / "installation").unlink()
    (head.state / "last.json").unlink()
    clock.now += 60
    assert main.main(["--first"]) == 0
    assert "earlier installation of head1" in head.last()["error"]
    assert main.main([]) == 1
    assert "rackwright restore" in capsys.readouterr().err
    assert len(head.backups()) == 1
    assert main.main(["--anew"]) == 0
    assert len(head.backups()) == 2
    clock.now += 60
    main.main([])
    clock.now += 60
    main.main([])
    assert len(head.backups()) == 3  # two new ones, and the old one, which is never removed


def test_no_backup_while_a_restore_is_unfinished(head, clock, capsys):
    os.mkdir(places.RESTORE)
    marker = head.folder / "restore" / "unfinished.json"
    for text, of in (
        ("{}", ""),
        ("?", ""),
        ('{"run": 1}', ""),
        ('{"run": ["head1-20251126T023000Z"]}', " of head1-20251126T023000Z"),
    ):
        marker.write_text(text)
        assert main.main([]) == 1
        assert f"a restore{of} is unfinished on this node" in capsys.readouterr().err


def test_a_place_that_others_can_write_is_refused(head, clock, capsys):
    head.place.mkdir()
    head.place.chmod(0o777)
    assert main.main([]) == 1
    assert "can be written by users other than root" in capsys.readouterr().err


def test_one_at_a_time(head, clock):
    import fcntl

    with open(places.LOCK, "a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(SystemExit, match="another backup"):
            main.main([])


@pytest.mark.parametrize(
    ("lines", "mount", "why"),
    [
        ("1 1 0:1 / / rw - ext4 /dev/sda rw\n", {"path": "/b", "types": []}, "nothing is mounted on /b"),
        (
            "1 1 0:1 / /b rw - autofs systemd-1 rw\n",
            {"path": "/b", "types": ["nfs4"]},
            "nothing is mounted on /b",
        ),
        (
            "1 1 0:1 / /b rw - autofs systemd-1 rw\n2 1 0:2 / /b rw shared:1 - nfs4 s:/b rw\n",
            {"path": "/b", "types": ["nfs4", "nfs"]},
            None,
        ),
        ("1 1 0:1 / /b rw - tmpfs x rw\n", {"path": "/b", "types": ["nfs4"]}, "/b is tmpfs, not nfs4"),
        ("1 1 0:1 / /a\\040b rw - ext4 x rw\n", {"path": "/a b", "types": []}, None),
    ],
)
def test_the_place_has_to_be_mounted(monkeypatch, lines, mount, why):
    monkeypatch.setattr("builtins.open", lambda path, **_: io.StringIO(lines))
    assert main.not_mounted(mount) == why


def test_nothing_is_written_below_a_mount_point_without_its_mount(head, clock, capsys):
    head.declare(mount={"path": str(head.folder), "types": ["nfs4"]})
    assert main.main([]) == 1
    assert not head.place.exists()
    assert main.main(["--list"]) == 0
    assert "nothing is mounted" in json.loads(capsys.readouterr().out)["refused"]


def test_the_report(head, clock, capsys):
    main.main([])
    capsys.readouterr()
    main.main(["--report"])
    found = json.loads(capsys.readouterr().out)
    assert [one["name"] for one in found["backups"]] == head.backups()
    assert found["settings_changed"] == (head.folder / "settings.json").stat().st_mtime
    assert (found["damage"], found["headers"]) == ([], {"database": 2, "slurmctld": 2})
    part = head.place / head.backups()[0] / "database.gz.age"
    part.write_bytes(part.read_bytes() + b"x")
    (head.place / "head1-20251126T023000Z" / "slurmctld.gz.age").unlink()
    (head.place / "head1-20251126T033000Z").mkdir()
    main.main(["--report"])
    found = json.loads(capsys.readouterr().out)
    assert "does not match the manifest" in found["damage"][0]
    assert "cannot read " in found["damage"][1]
    assert "head1-20251126T033000Z/manifest.json" in found["broken"][0]
    assert found["headers"]["slurmctld"] is None


def test_a_file_that_is_not_encrypted_has_no_recipients():
    assert main.recipients_in(b"rows") is None
    assert main.recipients_in(b"age-encryption.org/v1\n-> X25519 a\n") is None
    assert main.recipients_in(HEADER) == 2


def test_usage_and_missing_settings(head, capsys):
    assert main.main(["--what"]) == 64
    (head.folder / "settings.json").unlink()
    assert main.main([]) == 1
    assert main.main(["--list"]) == 1

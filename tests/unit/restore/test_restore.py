"""Putting a backup back: what is compared first, the order of the steps, and what an interruption leaves."""

from __future__ import annotations

import gzip
import json
import os
import tarfile

import pyrage
import pytest

from rackwright.backup import places
from rackwright.errors import ConnectionFailed, RestoreError
from rackwright.restore.copy import fetch, local, opened
from rackwright.restore.run import fetch_backup, restore
from tests.unit.restore.conftest import CONTENT, NAME, NEWER, QUEUE, backup, tar

STEPS = [
    "head1: begin records.service queue.service",
    "head1: part database",
    "head1: part state",
    "head1: end records.service queue.service",
    "head1: systemctl start records.service",
    "head1: answers records",
    "head1: systemctl start queue.service",
    "head1: answers queue",
    "head1: done abc",
]
FETCHES = ["head1: fetch database.gz.age", "head1: fetch state.gz.age"]
QUESTIONS = ["head1: ready database", "head1: true", "head1: probe queue"]


def put_back(cluster, source=None, agree=lambda restoring: True, heads=None):
    return restore(cluster, heads or [cluster.primary], source, agree=agree)


def test_a_backup_is_fetched_and_put_back_in_order(cluster, head):
    backup(head.place)
    done = put_back(cluster)
    assert head.asked == [*QUESTIONS, *FETCHES, *QUESTIONS, *STEPS]
    assert head.put == CONTENT
    assert [line.rpartition(":")[0] for line in done.lines] == ["head1: database", "head1: queue"]
    assert head.left == {}


def test_the_newest_is_taken_unless_one_is_named(cluster, head):
    backup(head.place)
    backup(head.place, "head1-20251127T023000Z", content={**CONTENT, "state": NEWER})
    put_back(cluster)
    assert head.put["state"] == NEWER
    put_back(cluster, NAME)
    assert head.put["state"] == QUEUE


def test_a_copy_here_needs_no_place(cluster, head, tmp_path):
    folder = backup(tmp_path / "copies")
    put_back(cluster, str(folder))
    assert head.asked == [*QUESTIONS, *QUESTIONS, *STEPS]


def test_nothing_is_done_when_declined(cluster, head):
    backup(head.place)
    assert put_back(cluster, agree=lambda restoring: False) is None
    assert head.asked == QUESTIONS


@pytest.mark.parametrize(
    ("answers", "destroyed", "unknown", "typing"),
    [
        ({}, {}, {}, False),
        ({"probe queue": (0, "2 jobs\n")}, {"head1": ("2 jobs",)}, {}, True),
        ({"probe queue": (1, "no answer")}, {}, {"head1": ("the queue: no answer",)}, True),
    ],
)
def test_what_would_be_destroyed_is_shown(cluster, head, answers, destroyed, unknown, typing):
    backup(head.place)
    head.answers = answers
    shown = []
    put_back(cluster, agree=lambda restoring: bool(shown.append(restoring)))
    assert (shown[0].destroyed, shown[0].unknown, shown[0].needs_typing) == (destroyed, unknown, typing)
    assert shown[0].stopped == (("head1", "records.service"), ("head1", "queue.service"))
    head.left = {"head1": {"run": [NAME], "stopped": True}}
    put_back(cluster, agree=lambda restoring: bool(shown.append(restoring)))
    assert (shown[1].unfinished, shown[1].needs_typing) == (("head1",), False)
    head.left = {"head1": {"run": [NAME]}}  # interrupted before its units were stopped
    put_back(cluster, agree=lambda restoring: bool(shown.append(restoring)))
    assert (shown[2].unfinished, shown[2].needs_typing) == (("head1",), typing)


def test_a_head_that_comes_into_use_meanwhile_is_left_alone(cluster, head):
    backup(head.place)

    def agree(restoring):
        head.answers = {"probe queue": (0, "1 job\n")}
        return not restoring.needs_typing

    with pytest.raises(RestoreError, match="head1 is now in use"):
        put_back(cluster, agree=agree)
    assert not any("begin" in one for one in head.asked)


def test_a_head_without_its_programs_is_applied_first(cluster, head):
    backup(head.place)
    head.answers = {"ready database": (127, "mariadb: not found")}
    with pytest.raises(RestoreError, match="head1 cannot restore database: mariadb: not found") as refused:
        put_back(cluster)
    assert "rackwright apply" in refused.value.hint


@pytest.mark.parametrize("fails_at", ["begin", "part database", "part state", "end"])
def test_an_interrupted_restore_is_run_again(cluster, head, fails_at):
    backup(head.place)
    head.fails_at = fails_at
    with pytest.raises(ConnectionFailed):
        put_back(cluster)
    if fails_at != "begin":
        assert head.left == {"head1": {"run": [NAME], "stopped": True}}
    head.fails_at, head.asked = None, []
    head.answers = {"probe queue": (1, "no answer")}  # everything is stopped
    assert (
        put_back(cluster, agree=lambda restoring: not restoring.needs_typing or fails_at == "begin")
        is not None
    )
    assert head.asked[-len(STEPS) :] == STEPS
    assert (head.put, head.left) == (CONTENT, {})


@pytest.mark.parametrize("fails_at", ["start records", "start queue", "answers queue", "done"])
def test_a_restore_that_is_interrupted_while_units_start_is_only_finished(cluster, head, fails_at):
    """Jobs may have been submitted since: nothing is overwritten, and nothing needs to be typed."""
    backup(head.place)
    head.fails_at = fails_at
    with pytest.raises((ConnectionFailed, RestoreError)):
        put_back(cluster)
    assert head.left == {"head1": {"run": [NAME], "ended": True}}
    head.fails_at, head.asked, head.put = None, [], {}
    head.answers = {"probe queue": (0, "12 jobs\n")}
    shown = []
    assert put_back(cluster, agree=lambda restoring: shown.append(restoring) or True) is not None
    assert (shown[0].finishes, shown[0].needs_typing) == (True, False)
    assert head.asked == ["head1: ready database", "head1: true", *STEPS[3:]]
    assert (head.put, head.left) == ({}, {})


def test_another_backup_replaces_a_restore_whose_units_may_run_only_when_typed(cluster, head):
    backup(head.place)
    backup(head.place, "head1-20251127T023000Z")
    head.left = {"head1": {"run": [NAME], "ended": True}}
    head.answers = {"probe queue": (0, "12 jobs\n")}
    shown = []
    assert put_back(cluster, agree=lambda restoring: bool(shown.append(restoring))) is None
    assert (shown[0].finishes, shown[0].destroyed) == (False, {"head1": ("12 jobs",)})


@pytest.mark.parametrize(
    ("left", "same", "finishes", "typing"),
    [
        ({"head1": "ended", "head2": "ended"}, True, True, False),
        ({"head1": "stopped", "head2": "stopped"}, True, False, False),
        ({"head1": "stopped", "head2": "ended"}, True, False, True),  # slurmctld of head2 may run
        ({"head1": "stopped"}, True, False, True),
        ({"head2": "ended"}, True, True, False),  # head1 was done
        ({"head2": "ended"}, False, False, True),  # head1 was installed anew
        ({"head1": "ended"}, True, True, False),
    ],
)
def test_how_far_a_restore_of_two_heads_came(pair, head, left, same, finishes, typing):
    names = [NAME, NAME.replace("head1", "head2")]
    backup(head.place)
    backup(head.place, names[1], node="head2", installation="def")
    head.only = dict(zip(("head1", "head2"), names, strict=True))
    head.left = {name: {"run": names, how: True} for name, how in left.items()}
    head.answers = {"probe queue": (0, "12 jobs\n")}
    for installation in ("abc", "def"):
        asked = f"grep -qxF -e {installation} {places.INSTALLATION}"
        head.answers[asked] = (0 if same else 1, "")
    shown = []
    put_back(pair, heads=pair.nodes[:2], agree=lambda restoring: bool(shown.append(restoring)))
    assert (shown[0].finishes, shown[0].needs_typing) == (finishes, typing)


def test_a_unit_that_does_not_serve_is_an_error(cluster, head):
    backup(head.place)
    head.answers = {"answers queue": (1, "cluster id mismatch")}
    with pytest.raises(RestoreError, match=r"queue.service does not respond: cluster id mismatch"):
        put_back(cluster)
    assert head.left


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"cluster": "other"}, "is of cluster other, not of test"),
        ({"node": "head2"}, "is of node head2, not of head1"),
        ({"content": {"database": b"x"}}, "lacks parts that head1 declares: queue"),
        (
            {"content": {**CONTENT, "state": tar(("job_state.old", b""), kind=tarfile.LNKTYPE)}},
            r"Cannot unpack .*state\.gz\.age: the archive's job_state.old is neither a file nor a folder",
        ),
        ({"content": {**CONTENT, "state": b"queue"}}, r"Cannot unpack .*state\.gz\.age: "),
        ({"content": {**CONTENT, "state": QUEUE[:700]}}, r"Cannot unpack .*state\.gz\.age: "),
        (
            {"recipients": [pyrage.x25519.Identity.generate().to_public()]},
            "is not encrypted to your identity",
        ),
    ],
)
def test_backups_that_are_refused(cluster, head, changes, message):
    backup(head.place, **changes)
    with pytest.raises(RestoreError, match=message):
        put_back(cluster)
    assert not any("begin" in one for one in head.asked)


def test_no_backup(cluster, head):
    with pytest.raises(RestoreError, match="of head1 has no backup"):
        put_back(cluster)
    backup(head.place)
    with pytest.raises(RestoreError, match="has no backup head1-x") as refused:
        put_back(cluster, "head1-x")
    assert refused.value.hint == f"the newest is {NAME}"


def test_a_damaged_backup_changes_nothing(cluster, head):
    folder = backup(head.place)
    data = (folder / "state.gz.age").read_bytes()
    (folder / "state.gz.age").write_bytes(data[:-1] + b"x")
    with pytest.raises(RestoreError, match=r"is damaged: .*state\.gz\.age does not match the manifest"):
        put_back(cluster)
    with pytest.raises(RestoreError, match="is damaged"):
        local(folder)
    with pytest.raises(RestoreError, match=r"Cannot decrypt .*state\.gz\.age"):
        opened(folder, {"name": "state"})
    assert not any("begin" in one for one in head.asked)


def test_a_part_that_is_no_gzip_stream(head, tmp_path):
    for content in (b"rows", b""):
        (tmp_path / "x.gz.age").write_bytes(pyrage.encrypt(content, _mine()))
        with pytest.raises(RestoreError):
            opened(tmp_path, {"name": "x"})


def test_a_large_archive_is_checked_to_its_end(head, tmp_path):
    """In chunks, with nothing of it kept."""
    members = [(f"job.{number}", os.urandom(1 << 19)) for number in range(4)]
    (tmp_path / "x.gz.age").write_bytes(pyrage.encrypt(gzip.compress(tar(*members)), _mine()))
    found = opened(tmp_path, {"name": "x", "folder": "/x"})
    assert gzip.decompress(b"".join(found.chunks())) == tar(*members)
    (tmp_path / "x.gz.age").write_bytes(pyrage.encrypt(gzip.compress(tar(*members, ("../x", b""))), _mine()))
    with pytest.raises(RestoreError, match=r"Cannot unpack .*: the archive has the path '\.\./x'"):
        opened(tmp_path, {"name": "x", "folder": "/x"})


def _mine():
    from rackwright.secrets.identity import load_identities

    return [load_identities()[0].to_public()]


def test_fetching_keeps_it_encrypted(cluster, head, tmp_path):
    folder = backup(head.place)
    copied = fetch_backup(cluster, cluster.primary, None, tmp_path / "copies", lambda text: None)
    assert copied == tmp_path / "copies" / NAME
    assert (copied / "database.gz.age").read_bytes() == (folder / "database.gz.age").read_bytes()
    assert local(copied).installation == "abc"
    assert copied.stat().st_mode & 0o777 == 0o700
    with pytest.raises(RestoreError, match="already exists"):
        fetch_backup(cluster, cluster.primary, NAME, tmp_path / "copies", lambda text: None)


def test_a_fetch_that_fails_leaves_nothing(cluster, head, tmp_path):
    backup(head.place)
    head.fails_at = "fetch state"
    with pytest.raises(ConnectionFailed):
        fetch(
            head,
            "head1",
            str(head.place),
            head.backups("head1").backups[0],
            tmp_path / "copies",
            lambda text: None,
        )
    assert list((tmp_path / "copies").iterdir()) == []


def test_a_backup_that_does_not_fit_is_not_fetched(cluster, head, tmp_path):
    folder = backup(head.place)
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["parts"][0]["size"] = 10**18
    (folder / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(RestoreError, match="has only"):
        fetch_backup(cluster, cluster.primary, None, tmp_path / "copies", lambda text: None)
    assert head.asked == []


def test_a_folder_that_is_no_backup(head, tmp_path):
    (tmp_path / "head1-20251126T023000Z").mkdir()
    for name in ("head1-20251126T023000Z", "nothing"):
        with pytest.raises(RestoreError, match="is not a backup"):
            local(tmp_path / name)


def test_two_heads_are_put_back_together(pair, head):
    """The database on one, slurmctld on the other: neither serves with the other's old state."""
    other = NAME.replace("head1", "head2")
    backup(head.place)
    backup(head.place, other, node="head2", installation="def")
    head.only = {"head1": NAME, "head2": other}
    done = put_back(pair, heads=pair.nodes[:2])
    assert len(done.lines) == 4
    changing = [
        one
        for one in head.asked
        if any(f": {word} " in f"{one} " for word in ("begin", "part", "end", "done"))
    ]
    begins = [one for one in changing if ": begin" in one]
    assert changing[:2] == begins
    assert changing[-2:] == ["head1: done abc", "head2: done def"]
    starts = [one for one in head.asked if "systemctl start" in one]
    assert starts == [
        f"head{number}: systemctl start {unit}.service" for unit in ("records", "queue") for number in (1, 2)
    ]
    with pytest.raises(RestoreError, match="--from names one backup, but 2 heads"):
        put_back(pair, NAME, heads=pair.nodes[:2])


def test_one_of_two_heads(pair, head):
    """The units of the other one stop as well; its own backups go on."""
    backup(head.place)
    head.only = {"head1": NAME}
    put_back(pair, heads=pair.nodes[:1])
    assert "head2: begin records.service queue.service" in head.asked
    assert "head2: done None" in head.asked
    assert not any(one.startswith("head2: part") for one in head.asked)

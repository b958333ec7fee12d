"""The program of the dataset_cache role: fetched whole or not at all, within the limit, never out from under a reader."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from rackwright.node_folders.mounted import FOLDER
from rackwright.node_folders.quota import NoQuota
from rackwright.node_programs import one_text
from rackwright.roles.dataset_cache import node, node_cache, node_copy, node_fetch
from rackwright.roles.dataset_cache.node_cache import Cache, CacheMistake, locked
from rackwright.roles.dataset_cache.node_fetch import command_of, fetch, fill
from rackwright.roles.dataset_cache.node_files import differences, size_of
from rackwright.roles.dataset_cache.node_readers import reader_of

MIB = 1 << 20


@pytest.fixture
def world(tmp_path, monkeypatch):
    """A cache on a folder, and a source; GiB are MiB here."""
    for folder in (
        "root/datasets/.incoming",
        "root/datasets/.manifests",
        "data/a",
        "data/b",
        "data/c",
    ):
        (tmp_path / folder).mkdir(parents=True)
    for hidden in (".incoming", ".manifests"):
        (tmp_path / "root/datasets" / hidden).chmod(0o700)
    for name in "abc":
        (tmp_path / "data" / name / "sub").mkdir()
        (tmp_path / "data" / name / "sub/file").write_bytes(name.encode() * MIB)
    for module in (node_cache, node_fetch):
        monkeypatch.setattr(module, "GIB", MIB)
    monkeypatch.setattr(node_copy, "mounted_folder", lambda path: os.open(path, FOLDER))
    return tmp_path


def cache(world: Path, **changes: Any) -> Cache:
    def dataset(name: str) -> dict[str, Any]:
        source = {"mount": str(world / "data"), "from": str(world / "data" / name)}
        return {**source, "gib": 2, "keep": False, "checksums": None, **changes.pop(name, {})}

    settings = {
        "root": str(world / "root"),
        "folder": "datasets",
        "limit_gib": 5,
        "project": 0,
        "group": None,
        "rclone_config": "/r.conf",
        "fetch_seconds": 20,
        "datasets": {name: dataset(name) for name in "abc"},
        **changes,
    }
    root, folder = (os.open(world / name, FOLDER) for name in ("root", "root/datasets"))
    return Cache(settings, root, folder, str(world / "run"))


def names(world: Path) -> list[str]:
    return sorted(path.name for path in (world / "root/datasets").iterdir() if path.name[0] != ".")


def test_a_dataset_comes_whole_and_readable_alone(world):
    (world / "data/a/sub/file").chmod(0o600)
    (world / "data/a/link").symlink_to("sub/file")
    there = cache(world)
    path = Path(fetch(there, "a"))
    assert path == world / "root/datasets/a"
    modes = [oct(one.stat().st_mode)[-3:] for one in (path, path / "sub", path / "sub/file")]
    assert modes == ["755", "755", "644"]
    assert (path / "link").is_symlink()
    digest = hashlib.sha256(b"a" * MIB).hexdigest()
    assert Path(there.manifest("a")).read_text() == f"{digest}  sub/file\n"
    assert list(differences(str(path), there.manifest("a"))) == []
    assert not Path(there.incoming("a")).exists()
    (world / "data/a/more").write_text("x")
    fetch(there, "a")  # it is there: nothing is copied
    assert not (path / "more").exists()


def test_a_dataset_has_its_name_only_when_it_is_on_the_drive(world, monkeypatch):
    flushed = []

    def flush(folder):
        flushed.append((names(world), (world / "root/datasets/.manifests/a.sha256").exists()))
        real(folder)

    real = node_fetch.flush
    monkeypatch.setattr(node_fetch, "flush", flush)
    fetch(cache(world), "a")
    assert (flushed, names(world)) == ([([], True)], ["a"])
    with pytest.raises(FileNotFoundError):
        real(str(world / "nowhere"))


def test_what_copies_is_never_a_shell(world):
    there = cache(world)
    assert command_of({"mount": None, "from": "store:b/x"}, "/t", there.settings) == [
        *("rclone", "sync", "--config", "/r.conf", "store:b/x", "/t")
    ]


@pytest.fixture
def store(world, monkeypatch):
    """An rclone that does what it is given."""

    def does(text: str) -> None:
        (world / "bin").mkdir(exist_ok=True)
        (world / "bin/rclone").write_text(f"#!/bin/sh\n{text}")
        (world / "bin/rclone").chmod(0o755)

    monkeypatch.setenv("PATH", f"{world / 'bin'}:/usr/bin:/bin")
    return does


def test_a_copy_that_breaks_off_is_not_in_the_cache_and_goes_on_later(world, store):
    copies = f'cp -a {world / "data/a"}/. "$5"\n'
    store(f'{copies}echo "rclone: connection lost" >&2\nexit 12\n')
    there = cache(world, a={"mount": None, "from": "store:a"})
    with pytest.raises(CacheMistake, match="a: rclone exited 12: rclone: connection lost"):
        fetch(there, "a")
    assert names(world) == []
    assert there.listing()["datasets"]["a"]["state"] == "incomplete"
    store(copies)
    fetch(there, "a")
    assert there.listing()["datasets"]["a"] == {"state": "complete", "bytes": size_of(there.path("a"))}


def test_rclone_does_not_see_the_bundle_of_aws_s_tools(world, store, monkeypatch):
    """root's login shell has it from the role object_store, and rclone refuses S3 then; the timer does not."""
    monkeypatch.setenv("AWS_CA_BUNDLE", "/etc/ca.pem")
    monkeypatch.setenv("AWS_REGION", "here")
    store(
        f'[ "${{AWS_CA_BUNDLE-unset}} $AWS_REGION" = "unset here" ] || exit 1\ncp -a {world / "data/a"}/. "$5"\n'
    )
    fetch(cache(world, a={"mount": None, "from": "store:a"}), "a")
    assert names(world) == ["a"]


def test_a_copy_that_takes_too_long(world, store, monkeypatch):
    store("exec sleep 20\n")
    message = ": the copy took longer than `fetch_hours`; the next fetch resumes"
    there = cache(world, fetch_seconds=0.2, a={"mount": None, "from": "store:a"})
    with pytest.raises(CacheMistake, match=f"a{message}"):
        fetch(there, "a")
    monkeypatch.setattr(node_copy, "mounted_folder", lambda path: time.sleep(20))
    with pytest.raises(CacheMistake, match=f"b{message}"):
        fetch(there, "b")


def test_a_source_that_is_not_mounted_an_empty_one_and_a_larger_one(world, monkeypatch):
    there = cache(world, b={"gib": 1, "from": str(world / "data")})
    (world / "data/a/sub/file").unlink()
    with pytest.raises(CacheMistake, match="a: its source is empty"):
        fetch(there, "a")
    with pytest.raises(CacheMistake, match=r"b has 2\.\d GiB, but 1 are declared"):
        fetch(there, "b")
    monkeypatch.undo()
    with pytest.raises(CacheMistake, match="data is not mounted"):
        fetch(there, "c")
    assert names(world) == []
    assert list((world / "root/datasets/.incoming").iterdir()) == []


def test_a_dataset_that_a_user_replaced_by_a_link_is_not_published(world):
    (world / "etc").mkdir()
    (world / "etc/shadow").write_text("root:secret")
    (world / "data/a").rename(world / "data/away")
    (world / "data/a").symlink_to(world / "etc")
    with pytest.raises(CacheMistake, match="a: 'a' is a link or a file, not a folder"):
        fetch(cache(world), "a")
    assert names(world) == []


def test_declared_checksums_are_kept(world):
    digest = hashlib.sha256(b"a" * MIB).hexdigest()
    (world / "data/a/SUMS").write_text(f"{digest} *./sub/file\n")
    there = cache(world, a={"checksums": "SUMS"}, b={"checksums": "SUMS"}, c={"checksums": "SUMS"})
    fetch(there, "a")
    (world / "data/b/SUMS").write_text(f"{digest}  sub/file\n{digest}  other\n")
    with pytest.raises(CacheMistake, match="b: 'other' is missing; 'sub/file' has another checksum"):
        fetch(there, "b")
    with pytest.raises(CacheMistake, match=r"c: .*No such file"):
        fetch(there, "c")
    (world / "data/c/SUMS").write_text("rubbish\n")
    with pytest.raises(CacheMistake, match="c: 'rubbish' in SUMS is not a line of sha256sum's"):
        fetch(there, "c")
    assert names(world) == ["a"]


@pytest.mark.parametrize("kind", ["fifo", "line break"])
def test_what_a_dataset_may_not_have(world, kind):
    if kind == "fifo":
        os.mkfifo(world / "data/a/pipe")
    else:
        (world / "data/a/x\ny").write_text("x")
    with pytest.raises(CacheMistake, match=r"is neither a file nor a folder|has a line break"):
        fetch(cache(world), "a")
    assert names(world) == []


def test_the_one_fetched_longest_ago_makes_room(world):
    there = cache(world, limit_gib=3.5)
    fetch(there, "a")
    fetch(there, "b")
    os.utime(there.manifest("b"), (1, 1))
    fetch(there, "a")  # asked for again
    fetch(there, "c")
    assert names(world) == ["a", "c"]
    assert not Path(there.manifest("b")).exists()
    assert list((world / "root" / ".rackwright-removing-datasets").iterdir()) == []


def test_what_is_kept_or_read_stays(world):
    there = cache(world, limit_gib=3.5, a={"keep": True})
    fetch(there, "a")
    fetch(there, "b")
    os.utime(there.manifest("b"), (1, 1))
    assert reader_of(there.path("b")) is None
    with open(Path(there.path("b")) / "sub/file", "rb"):
        assert reader_of(there.path("b")) == os.getpid()
        message = rf"no room for c: 0\.\d GiB short: b is in use by process {os.getpid()}"
        with pytest.raises(CacheMistake, match=message):
            fetch(there, "c")
    reader = subprocess.Popen(["sleep", "20"], cwd=there.path("b"))
    try:
        end = time.monotonic() + 10
        while reader_of(there.path("b")) != reader.pid and time.monotonic() < end:
            time.sleep(0.05)
        assert reader_of(there.path("b")) == reader.pid
    finally:
        reader.kill()
        reader.wait(10)
    fetch(there, "c")
    assert names(world) == ["a", "c"]


def test_what_is_being_fetched_counts(world):
    there = cache(world, limit_gib=3)
    Path(there.incoming("b")).mkdir()
    with pytest.raises(CacheMistake, match="no room for a"):
        fetch(there, "a")


@pytest.fixture
def kernel(monkeypatch):
    """Projects of folders by inode, limits in KiB by project, and the limits that were set."""
    projects: dict[int, int] = {}
    limits: dict[int, int] = {}
    calls: list[tuple[str, int, int]] = []

    def set_limit(mount, project, gib):
        calls.append((mount, project, gib))
        limits[project] = gib << 20

    monkeypatch.setattr(node_cache, "project_of", lambda folder: projects.get(os.fstat(folder).st_ino, 0))
    monkeypatch.setattr(
        node_cache, "set_project", lambda folder, project: projects.update({os.fstat(folder).st_ino: project})
    )
    monkeypatch.setattr(
        node_cache, "usage", lambda mount: {project: (0, kib) for project, kib in limits.items()}
    )
    monkeypatch.setattr(node_cache, "set_limit", set_limit)
    return projects, limits, calls


def test_the_kernel_keeps_the_limit_that_is_declared_now(world, kernel, monkeypatch):
    projects, _, calls = kernel
    root = str(world / "root")

    def fails(mount, project, gib):
        raise NoQuota("xfs_quota exited 1")

    with monkeypatch.context() as patch:
        patch.setattr(node_cache, "set_limit", fails)
        with pytest.raises(NoQuota):
            fetch(cache(world, project=7), "a")
    fetch(cache(world, project=7), "a")
    fetch(cache(world, project=7), "b")
    assert calls == [(root, 7, 5)]
    assert fill(cache(world, project=7, limit_gib=6)) == 0
    assert calls[1:] == [(root, 7, 6)]
    folders = [world / "root/datasets" / name for name in (".", ".incoming", ".manifests")]
    assert {projects[folder.stat().st_ino] for folder in folders} == {7}


def test_a_limit_that_cannot_be_set_stops_no_job_and_no_other_part_of_the_timer(
    world, kernel, monkeypatch, capsys
):
    fetch(cache(world), "a")
    (world / "root/datasets/old").mkdir()

    def fails(mount):
        raise NoQuota("xfs_quota exited 1")

    monkeypatch.setattr(node_cache, "usage", fails)
    there = cache(world, project=7)
    fetch(there, "a")
    assert fill(there) == 1
    assert names(world) == ["a"]
    assert capsys.readouterr().err == "rackwright-dataset: xfs_quota exited 1\n"
    assert there.listing()["kernel_silent"] == "xfs_quota exited 1"


def test_what_was_being_fetched_before_there_was_a_project_is_fetched_again(world, kernel):
    """XFS does not rename it into a folder of another project."""
    there = cache(world, project=7)
    Path(there.incoming("a"), "sub").mkdir(parents=True)
    there.keep_limit()
    assert os.listdir(world / "root/datasets/.incoming") == []
    assert os.listdir(world / "root/.rackwright-removing-datasets") == []
    Path(there.incoming("b")).mkdir()
    there.keep_limit()
    assert os.listdir(world / "root/datasets/.incoming") == ["b"]
    assert there.listing()["kernel_kib"] == 5 << 20


def test_two_processes_fetch_one_dataset_once(world):
    there = cache(world)
    with (
        locked("a.fetch", there.state),
        pytest.raises(CacheMistake, match=r"another process is working on a\.fetch"),
    ):
        fetch(there, "a")


def test_the_timer_brings_what_is_kept_and_removes_what_is_not_declared(world, capsys):
    there = cache(world, a={"keep": True, "from": str(world / "data/none")}, b={"keep": True})
    (world / "root/datasets/old").mkdir()
    assert fill(there) == 1
    assert names(world) == ["b"]
    assert capsys.readouterr().err == "rackwright-dataset: a: 'none' is missing\n"


def test_the_timer_removes_the_rest_of_a_copy_that_is_no_longer_declared(world, capsys):
    """Outside the datasets it took space that no command showed; a fetch that still runs is left alone."""
    there = cache(world)
    rest = Path(there.incoming("old"))
    rest.mkdir()
    (rest / "file").write_bytes(b"x" * MIB)
    listed = there.listing()
    assert listed["datasets"]["old"]["state"] == "incomplete"
    assert listed["bytes"] >= MIB
    with locked("old.fetch", there.state):
        assert fill(there) == 1
    assert rest.exists()
    assert capsys.readouterr().err == "rackwright-dataset: another process is working on old.fetch\n"
    assert fill(there) == 0
    assert not rest.exists()
    assert "old" not in there.listing()["datasets"]


def test_the_timer_leaves_what_a_job_uses_and_goes_on(world, capsys, monkeypatch):
    """A dataset gets another name in the cluster file while jobs use it; another one cannot be removed."""
    there = cache(world, b={"keep": True})
    for name in ("old", "stuck", "unused"):
        (world / "root/datasets" / name).mkdir()
    drop = Cache.drop

    def drops(self, name):
        if name == "stuck":
            raise CacheMistake("stuck was not fully removed")
        drop(self, name)

    monkeypatch.setattr(Cache, "drop", drops)
    descriptor = os.open(world / "root/datasets/old", os.O_RDONLY)
    try:
        assert fill(there) == 1
    finally:
        os.close(descriptor)
    assert names(world) == ["b", "old", "stuck"]
    printed = capsys.readouterr()
    assert printed.out == (
        f"rackwright-dataset: old is no longer declared but in use by process {os.getpid()}: kept for now\n"
    )
    assert printed.err == "rackwright-dataset: stuck was not fully removed\n"
    (world / "root/datasets/stuck").rmdir()
    assert fill(there) == 0
    assert names(world) == ["b"]


def test_a_changed_dataset_is_reported(world):
    there = cache(world)
    top = Path(fetch(there, "a"))
    (top / "sub/file").write_text("other")
    (top / "more").write_text("x")
    assert list(differences(str(top), there.manifest("a"))) == [
        "'sub/file' has another checksum",
        "'more' is new",
    ]
    (top / "sub/file").unlink()
    assert "'sub/file' is missing" in list(differences(str(top), there.manifest("a")))


def test_a_group_alone_may_read(world, monkeypatch):
    monkeypatch.setattr(Cache, "group", property(lambda self: os.getegid()))
    top = Path(fetch(cache(world, group="lab"), "a"))
    assert [oct(one.stat().st_mode)[-3:] for one in (top, top / "sub/file")] == ["750", "640"]


def test_a_group_that_is_not_there(world):
    with pytest.raises(CacheMistake, match="group no-such-group does not exist"):
        fetch(cache(world, group="no-such-group"), "a")


def test_arguments_names_and_users(world, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(node.os, "umask", lambda mask: 0)
    for wrong in ([], ["fetch"], ["list", "a"], ["what", "a"]):
        assert node.main(wrong) == 64
    there = cache(world)
    fetch(there, "a")
    with pytest.raises(CacheMistake, match=r"dataset '\.\./x' is not declared; declared: a, b, c"):
        node.run("path", "../x", dict(there.settings))
    assert node.run("path", "a", dict(there.settings)) == 0
    with pytest.raises(CacheMistake, match="b is not on this node"):
        node.run("path", "b", dict(there.settings))
    assert node.main(["list"], str(tmp_path / "none")) == 1
    captured = capsys.readouterr()
    assert captured.out == f"{there.path('a')}\n"
    assert "Traceback" not in captured.err


WHOLE = r"""
set -e
mount -t tmpfs -o mode=755 none "$1/scratch"
mount -t tmpfs -o mode=755 none "$1/data"
mkdir "$1/data/a"; head -c 100000 /dev/urandom >"$1/data/a/f"
python3 -IS "$2" fetch a | sed "s|$1||"
setpriv --reuid 3001 --regid 3001 --clear-groups sh -c 'python3 -IS "$2" path a; cat "$1/scratch/datasets/a/f" >/dev/null; python3 -IS "$2" drop a; ls "$1/scratch/datasets/.manifests"; touch "$1/scratch/datasets/a/x"; :' sh "$1" "$2" 2>&1 | sed "s|$1||g"
python3 -IS "$2" verify a && echo verified
python3 -IS "$2" drop a
ls -A "$1/scratch/datasets"
umount "$1/data"
python3 -IS "$2" fetch a 2>&1 | sed "s|$1||g"
"""


@pytest.mark.slow
def test_the_whole_program_as_root_with_a_user_beside_it(shared_path):
    """In a mount namespace of the test's own."""
    for name in ("scratch", "data"):
        (shared_path / name).mkdir()
    settings = {
        "root": str(shared_path / "scratch"),
        "folder": "datasets",
        "limit_gib": 1,
        "project": 0,
        "group": None,
        "rclone_config": "/r.conf",
        "fetch_seconds": 60,
        "datasets": {
            "a": {
                "mount": str(shared_path / "data"),
                "from": str(shared_path / "data/a"),
                "gib": 1,
                "keep": False,
                "checksums": None,
            }
        },
    }
    (shared_path / "settings.json").write_text(json.dumps(settings))
    text = one_text("rackwright.roles.dataset_cache.node")
    for old, new in (
        ("/run/rackwright-dataset", str(shared_path / "run")),
        ("/etc/rackwright/dataset-cache.json", str(shared_path / "settings.json")),
    ):
        assert old in text
        text = text.replace(old, new)
    (shared_path / "program.py").write_text(text)
    done = subprocess.run(
        ["unshare", "-m", "sh", "-c", WHOLE, "sh", str(shared_path), str(shared_path / "program.py")],
        env={"PATH": f"{Path(sys.executable).parent}:/usr/sbin:/usr/bin:/sbin:/bin"},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.stdout.splitlines() == [
        "/scratch/datasets/a",
        "/scratch/datasets/a",
        "rackwright-dataset: this command needs root; users can run `rackwright-dataset path NAME`",
        "ls: cannot open directory '/scratch/datasets/.manifests': Permission denied",
        "touch: cannot touch '/scratch/datasets/a/x': Permission denied",
        "verified",
        ".incoming",
        ".manifests",
        "rackwright-dataset: a: /data is not mounted",
    ], done.stderr

"""Copies of datasets: the same tree, and nothing that a user's links lead to."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from rackwright.node_folders.mounted import FOLDER
from rackwright.roles.dataset_cache import node_copy
from rackwright.roles.dataset_cache.node_child import ChildFailed, in_child
from rackwright.roles.dataset_cache.node_copy import copy, mounted_folder
from rackwright.roles.dataset_cache.node_files import FilesMistake


@pytest.fixture
def world(tmp_path, monkeypatch):
    """A dataset of a team, and files that root alone may read."""
    for folder in ("data/team/set/sub", "target", "etc"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "data/team/set/sub/file").write_bytes(b"x" * 5_000_000)
    (tmp_path / "etc/shadow").write_text("root:secret")
    (tmp_path / "etc/shadow").chmod(0o600)
    monkeypatch.setattr(node_copy, "mounted_folder", lambda path: os.open(path, FOLDER))
    return tmp_path


def copied(world: Path) -> list[str]:
    """What is in the target afterwards, by path."""
    copy(str(world / "data"), "team/set", str(world / "target"))
    return there(world)


def there(world: Path) -> list[str]:
    return sorted(str(path.relative_to(world / "target")) for path in (world / "target").rglob("*"))


@pytest.mark.parametrize("replaced", ["team/set", "team"])
def test_no_link_leads_to_a_dataset(world, replaced):
    """The user's folder `set` becomes a link to root's files."""
    (world / "data" / replaced).rename(world / "data/away")
    (world / "etc/set").mkdir()
    (world / "data" / replaced).symlink_to(world / "etc")
    with pytest.raises(
        FilesMistake, match=rf"'{replaced[-4:].strip('/m')}\w*' is a link or a file, not a folder"
    ):
        copied(world)
    assert there(world) == []


@pytest.mark.parametrize("name", ["sub", "file"])
def test_what_becomes_a_link_in_mid_copy_is_not_read(world, monkeypatch, name):
    """A user is faster than root: between the look at an entry and its opening it becomes a link."""
    opens = os.open

    def swapped(path, flags, mode=0o777, *, dir_fd=None):
        if path == name and dir_fd is not None:
            at = world / "data/team/set" / ("sub" if name == "sub" else "sub/file")
            at.rename(world / "away")
            at.symlink_to(world / ("etc" if name == "sub" else "etc/shadow"))
        return opens(path, flags, mode, dir_fd=dir_fd)

    monkeypatch.setattr(os, "open", swapped)
    with pytest.raises((FilesMistake, OSError), match=r"is a link|symbolic links"):
        copied(world)
    assert [path for path in there(world) if path not in ("sub",)] == []


def test_links_out_of_the_dataset_stay_behind(world):
    links = {
        "in": "sub/file",
        "sub/up": "../sub/file",
        "sub/here": "./file",
        "out": "../other",
        "absolute": str(world / "etc/shadow"),
        "sub/far": "../../other",
        "sub/odd": "../sub/../../other",
    }
    for name, leads_to in links.items():
        (world / "data/team/set" / name).symlink_to(leads_to)
    assert copied(world) == ["in", "sub", "sub/file", "sub/here", "sub/up"]
    assert os.readlink(world / "target/sub/up") == "../sub/file"


def test_a_copy_is_brought_up_to_date(world):
    assert copied(world) == ["sub", "sub/file"]
    source, file = world / "data/team/set", world / "target/sub/file"
    assert file.read_bytes() == (source / "sub/file").read_bytes()
    assert file.stat().st_mtime_ns == (source / "sub/file").stat().st_mtime_ns
    made = file.stat().st_ino
    (world / "target/old/sub").mkdir(parents=True)
    (world / "target/link").symlink_to(world / "etc/shadow")
    assert copied(world) == ["sub", "sub/file"]
    assert file.stat().st_ino == made  # the same size and time: it stays
    (source / "sub/file").write_text("new")
    (source / "link").mkdir()
    assert copied(world) == ["link", "sub", "sub/file"]
    assert file.read_text() == "new"
    (source / "sub/file").unlink()
    (source / "sub").rmdir()
    (source / "sub").write_text("a file now")
    assert copied(world) == ["link", "sub"]


def test_a_copy_that_broke_off_in_a_file_is_no_copy(world, monkeypatch):
    def full(descriptor, block):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(node_copy, "_write", full)
        with pytest.raises(OSError, match="No space left"):
            copied(world)
    copied(world)
    assert (world / "target/sub/file").stat().st_size == 5_000_000


def test_a_tree_that_is_too_deep(world, monkeypatch):
    monkeypatch.setattr(node_copy, "_DEEPEST", 3)
    (world / "data/team/set/a/b").mkdir(parents=True)
    copied(world)
    (world / "data/team/set/a/b/c").mkdir()
    with pytest.raises(FilesMistake, match="a folder is more than 3 folders deep"):
        copied(world)


def test_another_filesystem_in_the_dataset(world, monkeypatch):
    """As with a mount of the machine's own drive; a volume of the same server is of the same kind."""
    kinds = {"declared": "nfs4", "volume": "nfs4", "drive": "xfs"}
    monkeypatch.setattr(node_copy, "_kind_of", lambda mount: kinds[mount])
    mounts = iter(["declared", "declared", "volume", "volume", "volume"])
    monkeypatch.setattr(node_copy, "mount_id", lambda folder: next(mounts))
    assert copied(world) == ["sub", "sub/file"]
    mounts = iter(["declared", "declared", "declared", "declared", "drive"])
    with pytest.raises(FilesMistake, match="'sub' is on another filesystem: xfs, not nfs4"):
        copied(world)


def test_a_folder_that_nothing_is_mounted_on(tmp_path):
    with pytest.raises(FilesMistake, match="is not mounted"):
        mounted_folder(str(tmp_path))
    folder = mounted_folder("/proc")
    assert os.listdir(folder)
    os.close(folder)


def test_work_in_a_child_ends_in_time(monkeypatch):
    fork, children = os.fork, []
    monkeypatch.setattr(os, "fork", lambda: children.append(fork()) or children[-1])
    in_child(lambda: None, 20)
    with pytest.raises(ChildFailed, match="no room here"):
        in_child(lambda: (_ for _ in ()).throw(ValueError("no room here")), 20)  # type: ignore[arg-type]
    with pytest.raises(ChildFailed, match="its process exited without a message"):
        in_child(lambda: os.kill(os.getpid(), signal.SIGKILL), 20)
    began = time.monotonic()
    with pytest.raises(TimeoutError):
        in_child(lambda: time.sleep(60), 0.2)
    assert time.monotonic() - began < 30
    assert len(children) == 4
    for child in children:
        with pytest.raises(ChildProcessError):
            os.waitpid(child, os.WNOHANG)


BIND = r"""
set -e
mount -t tmpfs none "$1/data"
mkdir -p "$1/data/team/set/sub"
mount --bind "$1/etc" "$1/data/team/set/sub"
exec "$2" -c '
import sys
from rackwright.roles.dataset_cache.node_copy import copy
try:
    copy(sys.argv[1] + "/data", "team/set", sys.argv[1] + "/target")
except ValueError as error:
    print(error)
' "$1"
"""


@pytest.mark.slow
def test_a_bind_mount_of_the_machines_own_drive(world):
    """In a mount namespace of the test's own."""
    done = subprocess.run(
        ["unshare", "-m", "sh", "-c", BIND, "sh", str(world), sys.executable],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[3])},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert done.stdout.startswith("'sub' is on another filesystem: "), done
    assert there(world) == ["sub"]

"""Trees of users are removed whole, within a deadline, and nothing outside of them is touched."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from rackwright.node_folders import removal
from rackwright.node_folders.mounted import FOLDER, Unsafe, mount_id, mounted, opened, own
from rackwright.node_folders.removal import Aged, clear, move_away, remove_aged

ROOT = Path(__file__).resolve().parents[3]
ME = os.getuid()
HOSTILE = ("-rf", "a\nb", "*", "$(touch x)", "..x", "\udcff", " ", "'\"")


@pytest.fixture
def bin_folder(tmp_path):
    path = tmp_path / "bin"
    path.mkdir(mode=0o700)
    descriptor = os.open(path, FOLDER)
    yield descriptor
    os.close(descriptor)


def test_names_links_and_depth(tmp_path, bin_folder):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "kept").write_text("kept")
    tree = tmp_path / "bin" / "tree"
    deep = tree
    for name in HOSTILE:
        deep /= name
    deep.mkdir(parents=True)
    (deep / "link").symlink_to(outside)
    (tree / "absolute").symlink_to("/")
    for name in HOSTILE:
        (deep / f"{name}.file").write_text("x")
    os.mkfifo(tree / "fifo")
    removed = clear(bin_folder, 10)
    assert removed.is_complete
    assert os.listdir(bin_folder) == []
    assert (outside / "kept").read_text() == "kept"


@pytest.mark.slow
def test_a_tree_deeper_than_any_path(tmp_path, bin_folder):
    """2,000 nested folders with long names: the path exceeds PATH_MAX, and no process has that many descriptors."""
    os.mkdir("top", dir_fd=bin_folder)
    inner = os.open("top", FOLDER, dir_fd=bin_folder)
    for _ in range(2000):
        os.mkdir("d" * 50, dir_fd=inner)
        deeper = os.open("d" * 50, FOLDER, dir_fd=inner)
        os.close(inner)
        inner = deeper
    os.close(inner)
    assert clear(bin_folder, 60).is_complete
    assert os.listdir(bin_folder) == []


def test_the_time_is_kept(tmp_path, bin_folder):
    for number in range(50):
        (tmp_path / "bin" / str(number)).mkdir()
    removed = clear(bin_folder, 0)
    assert not removed.in_time
    assert len(os.listdir(bin_folder)) == 49
    assert clear(bin_folder, 10).is_complete


def test_what_cannot_be_removed_is_named_once_and_ends_the_work(tmp_path, bin_folder, monkeypatch):
    (tmp_path / "bin/tree/held").mkdir(parents=True)
    real = os.rename

    def refuse(source, *arguments, **more):
        if source == "held":
            raise OSError(16, "Device or resource busy")
        real(source, *arguments, **more)

    monkeypatch.setattr(removal.os, "rename", refuse)
    removed = clear(bin_folder, 10)
    assert removed.left == ["'held': Device or resource busy", "'tree': Directory not empty"]


def test_moving_away_is_one_rename(tmp_path, bin_folder):
    (tmp_path / "job").mkdir()
    (tmp_path / "job/file").write_text("x")
    with opened(str(tmp_path)) as within:
        move_away("job", within, bin_folder)
    assert not (tmp_path / "job").exists()
    (there,) = (tmp_path / "bin").iterdir()
    assert (there / "file").read_text() == "x"


def aged(tmp_path: Path, hours: float, *, uid: int = ME, spared: frozenset[int] = frozenset()) -> list[str]:
    """What is left after old files of uids from `uid` on are removed."""
    with opened(str(tmp_path / "place")) as place:
        age = Aged(time.time() - hours * 3600, uid, spared)
        remove_aged(place, mount_id(place), age, time.monotonic() + 10)
    return sorted(str(path.relative_to(tmp_path / "place")) for path in (tmp_path / "place").rglob("*"))


def test_old_files_and_the_folders_they_leave_empty(tmp_path, monkeypatch):
    place = tmp_path / "place"
    (place / "a/b").mkdir(parents=True)
    (place / "a/b/file").write_text("x")
    (place / "link").symlink_to(tmp_path)
    (tmp_path / "kept").write_text("x")
    everything = ["a", "a/b", "a/b/file", "link"]
    assert aged(tmp_path, 1) == everything
    assert aged(tmp_path, -1, uid=ME + 1) == everything  # an account of a service
    assert aged(tmp_path, -1, spared=frozenset({ME})) == everything  # its user is here
    assert aged(tmp_path, -1) == []
    assert (tmp_path / "kept").exists()
    assert place.exists()


def test_a_time_that_a_user_sets_keeps_no_file(tmp_path):
    (tmp_path / "place").mkdir()
    (tmp_path / "place/file").write_text("x")
    ahead = time.time() + 10**9
    os.utime(tmp_path / "place/file", (ahead, ahead))
    assert aged(tmp_path, -1) == []


def test_folders_below_each_other_end_somewhere(tmp_path, monkeypatch):
    monkeypatch.setattr(removal, "DEEPEST", 3)
    (tmp_path / "place/1/2/3/4").mkdir(parents=True)
    with opened(str(tmp_path / "place")) as place:
        found = remove_aged(
            place, mount_id(place), Aged(time.time() + 60, ME, frozenset()), time.monotonic() + 9
        )
    assert found.left == ["'4': Too many levels of symbolic links"]


def test_nothing_is_written_below_an_empty_mount_point(tmp_path):
    with pytest.raises(Unsafe, match="nothing is mounted on"), mounted(str(tmp_path)):
        pass
    with pytest.raises(Unsafe, match="is missing"), mounted(str(tmp_path / "none")):
        pass
    (tmp_path / "link").symlink_to("/proc")
    with pytest.raises(Unsafe, match="is not a folder"), mounted(str(tmp_path / "link")):
        pass


def test_a_folder_of_roots_is_no_link_and_no_other_users(tmp_path):
    with opened(str(tmp_path)) as within:
        with own(within, "made", 0o711):
            assert oct((tmp_path / "made").stat().st_mode)[-3:] == "711"
        (tmp_path / "open").mkdir(mode=0o777)
        (tmp_path / "open").chmod(0o777)
        with pytest.raises(Unsafe, match="other users can write to it"), own(within, "open", 0o755):
            pass
        (tmp_path / "link").symlink_to("made")
        with pytest.raises(Unsafe, match="link is not a folder"), own(within, "link", 0o755):
            pass


SCRIPT = r"""
set -e
cd "$1"
mount -t tmpfs none place; mkdir place/bin place/bin/tree place/old other; touch other/kept place/bin/tree/file place/old/file
mkdir place/bin/tree/bound place/old/bound place/same; touch place/same/kept
mount --bind other place/bin/tree/bound
mount --bind place/same place/old/bound
exec "$2" -c "$3" "$1"
"""
PROGRAM = r"""
import json, os, sys, time
from rackwright.node_folders.mounted import mount_id, mounted, opened
from rackwright.node_folders.removal import Aged, clear, remove_aged
os.chdir(sys.argv[1])
with mounted(os.path.abspath("place")) as place:
    with opened("bin", place) as bin_folder:
        left = clear(bin_folder, 10).left
    with opened("old", place) as old:
        remove_aged(old, mount_id(old), Aged(time.time() + 60, os.getuid(), frozenset()), time.monotonic() + 10)
print(json.dumps([left, os.listdir("other"), os.listdir("place/same"), os.listdir("place/old")]))
"""


@pytest.mark.slow
def test_no_mount_is_crossed_a_bind_mount_of_the_same_filesystem_neither(tmp_path):
    """In a mount namespace of the test's own, as root."""
    (tmp_path / "place").mkdir()
    done = subprocess.run(
        ["unshare", "-m", "sh", "-c", SCRIPT, "sh", str(tmp_path), sys.executable, PROGRAM],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        timeout=60,
    )
    left, other, same, old = json.loads(done.stdout)
    assert left[0] == "'bound': Device or resource busy"
    assert (other, same, old) == (["kept"], ["kept"], ["bound"])

"""Who uses a dataset: on the node, and in a container that has it elsewhere."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from rackwright.node_folders.mounts import Mount, mounts
from rackwright.roles.dataset_cache.node_readers import _place, reader_of


@pytest.fixture
def dataset(tmp_path) -> Path:
    folder = tmp_path / "scratch/datasets/a b"
    (folder / "sub").mkdir(parents=True)
    return folder


def process(proc: Path, number: int, seen: list[tuple[str, str]], device: str, **links: str) -> None:
    """A process with mounts (folder of the filesystem, mount point) and links, e.g. `cwd` or `fd_3`."""
    folder = proc / str(number)
    for name in ("ns", "fd"):
        (folder / name).mkdir(parents=True)
    (folder / "ns/mnt").symlink_to(f"mnt:[{number}]")
    for name, target in {"root": "/", "cwd": "/", **links}.items():
        (folder / name.replace("_", "/")).symlink_to(target)
    (folder / "maps").write_text("")
    (folder / "mountinfo").write_text(
        "1 0 0:1 / / rw - overlay overlay rw\n"
        + "".join(
            f"{place} 1 {device} {root.replace(' ', chr(92) + '040')} {point} ro,relatime shared:1 - xfs /dev/md0 rw\n"
            for place, (root, point) in enumerate(seen, 100)
        )
    )


@pytest.mark.parametrize(
    ("root", "point", "links", "used"),
    [
        ("{a}", "/data", {}, True),
        ("{a}/sub", "/data", {}, True),
        ("{a} c", "/data", {}, False),
        ("{above}", "/sets", {}, False),
        ("{above}", "/sets", {"fd_3": "/sets/a b/sub/file"}, True),
        ("{above}", "/sets", {"cwd": "/sets/a b"}, True),
        ("{above}", "/sets", {"fd_3": "/sets/b/file"}, False),
        ("{above}", "/sets", {"root": "/images/1", "fd_3": "/images/1/sets/a b/file"}, True),
        ("{other}", "/data", {"fd_3": "/data/a b/file"}, False),
    ],
)
def test_a_container(tmp_path, dataset, root, point, links, used):
    """What is mounted there is the dataset, a folder of it, the cache, or something else of its filesystem."""
    where = _place(str(dataset))
    places = {
        "a": where.root,
        "above": os.path.dirname(where.root),
        "other": f"{os.path.dirname(where.root)}-jobs",
    }
    process(tmp_path / "proc", 41, [], where.device)
    process(tmp_path / "proc", 42, [(root.format(**places), point)], where.device, **links)
    assert reader_of(str(dataset), str(tmp_path / "proc")) == (42 if used else None)


def test_another_filesystem_with_such_a_folder(tmp_path, dataset):
    process(tmp_path / "proc", 42, [(_place(str(dataset)).root, "/data")], "7:77")
    assert reader_of(str(dataset), str(tmp_path / "proc")) is None


def test_a_mapped_file_a_process_that_ended_and_a_dataset_that_is_gone(tmp_path, dataset):
    where = _place(str(dataset))
    (tmp_path / "proc/40").mkdir(parents=True)
    process(tmp_path / "proc", 42, [(os.path.dirname(where.root), "/sets")], where.device)
    line = "7f00-7f01 r--s 0 09:7f 131 /sets/a b/sub/file\n"
    assert reader_of(str(dataset), str(tmp_path / "proc")) is None
    (tmp_path / "proc/42/maps").write_text(line)
    assert reader_of(str(dataset), str(tmp_path / "proc")) == 42
    assert reader_of(str(dataset / "none"), str(tmp_path / "proc")) is None
    (dataset / "file").write_text("x")
    assert reader_of(str(dataset / "file"), str(tmp_path / "proc")) is None


def test_mounts_as_the_kernel_prints_them(tmp_path):
    (tmp_path / "mountinfo").write_text(
        "36 35 98:0 /mnt1 /mnt\\0402 rw,noatime master:1 propagate_from:2 - ext3 /dev/root rw,errors=continue\n"
        "37 35 0:5 / /x rw - nfs4 10.0.0.1:/a rw\n"
    )
    assert mounts(str(tmp_path)) == [
        Mount(36, "98:0", "/mnt1", "/mnt 2", "ext3"),
        Mount(37, "0:5", "/", "/x", "nfs4"),
    ]


IN_CONTAINER = r"""
set -e
mkdir "$1/image"
mount -t tmpfs none "$1/image"
mkdir "$1/image/data" "$1/image/old"
mount --bind "$2" "$1/image/data"
cd "$1/image"
echo ready
exec sleep 60
"""


@pytest.mark.slow
@pytest.mark.parametrize(("bound", "used"), [("scratch/datasets/a b", True), ("scratch/jobs", False)])
def test_a_bind_mount_in_another_mount_namespace(tmp_path, dataset, bound, used):
    """As a container has it: no process has the dataset open at the node's path."""
    (tmp_path / "scratch/jobs").mkdir()
    container = subprocess.Popen(
        ["unshare", "-m", "sh", "-c", IN_CONTAINER, "sh", str(tmp_path), str(tmp_path / bound)],
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert container.stdout is not None
        assert container.stdout.readline() == "ready\n"
        assert reader_of(str(dataset)) == (container.pid if used else None)
    finally:
        container.kill()
        container.communicate(timeout=10)

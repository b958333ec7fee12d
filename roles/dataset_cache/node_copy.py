"""Copies a dataset out of a mounted filesystem as root, although users write there. On the node: standard library, Python 3.9.

rsync opens what it copies by path. A user who puts a link in place of the dataset, or of a folder in it while rsync runs, has
root read /etc/shadow, and the cache shows it to every user. Running rsync as the folder's owner does not help: its receiver
writes as root what a process of that owner sends, and files that the owner's groups alone may read stay behind.

So every folder is opened from the one above it, through no link, and has to be on the declared filesystem or on one of its kind
(an NFS server's volumes are separate mounts). Even if users rename things meanwhile, root reads no local file.
"""

from __future__ import annotations

import os
import shutil
import stat
from contextlib import suppress

from rackwright.node_folders.mounted import FOLDER, mount_id
from rackwright.node_folders.mounts import mounts
from rackwright.roles.dataset_cache.node_files import FilesMistake

_BLOCK = 4 << 20
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_DEEPEST = 200
"""Folders below each other; each holds a descriptor."""


def copy(mount: str, folder: str, target: str) -> None:
    """Make a folder of root's alone the same as one below a mount; files of the same size and time stay."""
    at = mounted_folder(mount)
    try:
        source = _Source(at)
        for name in folder.split("/"):
            below = source.opened(name, at)
            os.close(at)
            at = below
        os.makedirs(target, 0o700, exist_ok=True)
        source.copy_folder(at, target, 0)
    finally:
        os.close(at)


def mounted_folder(path: str) -> int:
    """Descriptor of what is mounted on a path: an empty mount point would be an empty dataset."""
    folder = os.open(
        f"{path}/.", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
    )  # `.`: lets the automounter mount it
    parent = os.open(os.path.dirname(path), os.O_RDONLY | os.O_CLOEXEC)
    try:
        if mount_id(folder) == mount_id(parent):
            raise FilesMistake(f"{path} is not mounted")
    except FilesMistake:
        os.close(folder)
        raise
    finally:
        os.close(parent)
    return folder


class _Source:
    """The filesystem that a dataset is copied from."""

    def __init__(self, mount: int) -> None:
        self.kind = _kind_of(mount_id(mount))
        self.known = {mount_id(mount)}

    def opened(self, name: str, within: int) -> int:
        """Descriptor of a folder in another one."""
        try:
            folder = os.open(name, FOLDER, dir_fd=within)
        except NotADirectoryError:
            raise FilesMistake(f"{name!a} is a link or a file, not a folder") from None
        except FileNotFoundError:
            raise FilesMistake(f"{name!a} is missing") from None
        try:
            self._require_kind(name, mount_id(folder))
        except FilesMistake:
            os.close(folder)
            raise
        return folder

    def _require_kind(self, name: str, mount: int) -> None:
        if mount not in self.known:
            kind = _kind_of(mount)
            if kind != self.kind:
                raise FilesMistake(f"{name!a} is on another filesystem: {kind}, not {self.kind}")
            self.known.add(mount)

    def copy_folder(self, source: int, target: str, depth: int) -> None:
        """Everything in a folder, which is `depth` folders below the dataset's."""
        if depth == _DEEPEST:
            raise FilesMistake(f"a folder is more than {_DEEPEST} folders deep")
        names = sorted(os.listdir(source))
        for name in set(os.listdir(target)).difference(names):
            _remove(os.path.join(target, name))
        for name in names:
            found = os.stat(name, dir_fd=source, follow_symlinks=False)
            path = os.path.join(target, name)
            if stat.S_ISREG(found.st_mode):
                _copy_file(name, source, path)
            elif stat.S_ISLNK(found.st_mode):
                _copy_link(os.readlink(name, dir_fd=source), path, depth)
            elif stat.S_ISDIR(found.st_mode):
                self._copy_below(name, source, path, depth + 1)
            else:
                raise FilesMistake(f"{name!a} is neither a file nor a folder")

    def _copy_below(self, name: str, within: int, path: str, depth: int) -> None:
        if not stat.S_ISDIR(_mode_of(path)):
            _remove(path)
            os.mkdir(path, 0o700)
        folder = self.opened(name, within)
        try:
            self.copy_folder(folder, path, depth)
            found = os.fstat(folder)
        finally:
            os.close(folder)
        os.utime(path, ns=(found.st_atime_ns, found.st_mtime_ns))


def _kind_of(mount: int) -> str:
    for one in mounts():
        if one.id == mount:
            return one.kind
    raise FilesMistake("the kernel does not show its mount")


def _copy_file(name: str, within: int, path: str) -> None:
    """The time is set last, so that an interrupted copy is not taken for a complete one."""
    source = os.open(name, _FILE, dir_fd=within)
    try:
        found = os.fstat(source)
        if not stat.S_ISREG(found.st_mode):
            raise FilesMistake(f"{name!a} is neither a file nor a folder")
        with suppress(FileNotFoundError):
            there = os.lstat(path)
            same = (there.st_size, there.st_mtime_ns) == (found.st_size, found.st_mtime_ns)
            if stat.S_ISREG(there.st_mode) and same:
                return
        _remove(path)
        with open(os.open(path, _NEW, 0o600), "wb", buffering=0) as target:
            while block := os.read(source, _BLOCK):
                _write(target.fileno(), block)
            os.utime(target.fileno(), ns=(found.st_atime_ns, found.st_mtime_ns))
    finally:
        os.close(source)


def _write(descriptor: int, block: bytes) -> None:
    rest = memoryview(block)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def _copy_link(leads_to: str, path: str, depth: int) -> None:
    """Links out of the dataset stay behind: `..` only at the start, as what comes before it may be a link itself."""
    _remove(path)
    steps = [step for step in leads_to.split("/") if step not in ("", ".")]
    up = next((number for number, step in enumerate(steps) if step != ".."), len(steps))
    if not leads_to.startswith("/") and up <= depth and ".." not in steps[up:]:
        os.symlink(leads_to, path)


def _mode_of(path: str) -> int:
    try:
        return os.lstat(path).st_mode
    except FileNotFoundError:
        return 0


def _remove(path: str) -> None:
    """What an earlier copy left; only root writes there."""
    mode = _mode_of(path)
    if stat.S_ISDIR(mode):
        shutil.rmtree(path)
    elif mode:
        os.unlink(path)

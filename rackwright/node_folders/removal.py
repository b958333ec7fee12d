"""Removes trees of users, however deep, within a deadline. Python 3.9, standard library.

A tree is first renamed into a folder that root alone can enter: from then on no user reaches it by a path. There each
folder is emptied by renaming its folders beside it, so that a tree of any depth needs one descriptor at a time. rename(2)
refuses what is on another mount (EXDEV), bind mounts of the same filesystem too, and mount points (EBUSY): no mount is
crossed, and no link is followed (unlinkat(2), O_NOFOLLOW).
"""

from __future__ import annotations

import errno
import os
import stat
import time
from binascii import hexlify
from dataclasses import dataclass, field

from rackwright.node_folders.mounted import mount_id, opened

_MESSAGES = 20


@dataclass
class Removed:
    """What came of it."""

    files: int = 0
    in_time: bool = True
    left: list[str] = field(default_factory=list)
    """What could not be removed, and why."""

    @property
    def is_complete(self) -> bool:
        """Whether nothing is left."""
        return self.in_time and not self.left

    def leave(self, name: str, error: OSError) -> None:
        """Note what stays."""
        if len(self.left) < _MESSAGES:
            self.left.append(f"{name!a}: {os.strerror(error.errno or 0)}")


def move_away(name: str, within: int, bin_folder: int) -> None:
    """Take an entry out of a folder, whole and at once."""
    os.rename(name, _unused(), src_dir_fd=within, dst_dir_fd=bin_folder)


def _unused() -> str:
    return hexlify(os.urandom(12)).decode()


def clear(bin_folder: int, seconds: float) -> Removed:
    """Remove what is in a folder that root alone can enter; stops when the time is over."""
    removed, end = Removed(), time.monotonic() + seconds
    while True:
        before, removed.left = removed.files, []
        with os.scandir(bin_folder) as entries:
            names = [entry.name for _, entry in zip(range(10_000), entries)]  # noqa: B905 - Python 3.9
        for name in names:
            try:
                _remove(name, bin_folder, removed, end)
            except OSError as error:
                removed.leave(name, error)
            if time.monotonic() >= end:
                removed.in_time = _is_empty(bin_folder)
                return removed
        if not names or removed.files == before:
            return removed


def _is_empty(folder: int) -> bool:
    with os.scandir(folder) as entries:
        return next(entries, None) is None


def _remove(name: str, within: int, removed: Removed, end: float) -> None:
    """One entry of the folder: a file, or a folder whose own folders move beside it."""
    if not stat.S_ISDIR(os.stat(name, dir_fd=within, follow_symlinks=False).st_mode):
        os.unlink(name, dir_fd=within)
        removed.files += 1
        return
    with opened(name, within) as folder, os.scandir(folder) as entries:
        for entry in entries:
            if time.monotonic() >= end:
                return
            try:
                if entry.is_dir(follow_symlinks=False):
                    os.rename(entry.name, _unused(), src_dir_fd=folder, dst_dir_fd=within)
                else:
                    os.unlink(entry.name, dir_fd=folder)
                removed.files += 1
            except FileNotFoundError:
                continue  # a process of the user's was faster
            except OSError as error:
                removed.leave(entry.name, error)
    os.rmdir(name, dir_fd=within)
    removed.files += 1


@dataclass(frozen=True)
class Aged:
    """Which files are leftovers: those of users that are not spared, unchanged and unread since a time."""

    before: float
    """Seconds since 1970."""
    least_uid: int
    spared: frozenset[int]

    def holds(self, found: os.stat_result, now: float) -> bool:
        """Whether a file is one. A user can set the time of a file's content, but not that of its last change."""
        last = max(found.st_ctime, min(found.st_atime, now))
        return found.st_uid >= self.least_uid and found.st_uid not in self.spared and last < self.before


DEEPEST = 200
"""Folders below each other that are looked into; each holds a descriptor."""


def remove_aged(folder: int, mount: int, aged: Aged, end: float, depth: int = 0) -> Removed:
    """Remove old files and the folders they leave empty; the folder itself, other mounts and other users' files stay."""
    removed, now = Removed(), time.time()
    with os.scandir(folder) as entries:
        for entry in entries:
            if time.monotonic() >= end:
                removed.in_time = False
                break
            try:
                found = os.stat(entry.name, dir_fd=folder, follow_symlinks=False)
                if stat.S_ISDIR(found.st_mode):
                    below = _below(entry.name, folder, mount, aged, end, depth)
                    removed.files += below.files
                    removed.in_time = removed.in_time and below.in_time
                    removed.left += below.left[: _MESSAGES - len(removed.left)]
                if aged.holds(found, now):
                    _unlink(entry.name, folder, found)
                    removed.files += 1
            except FileNotFoundError:
                continue  # a process of the user's was faster
            except OSError as error:
                if error.errno != errno.ENOTEMPTY:  # something newer is in it
                    removed.leave(entry.name, error)
    return removed


def _below(name: str, folder: int, mount: int, aged: Aged, end: float, depth: int) -> Removed:
    if depth == DEEPEST:
        raise OSError(errno.ELOOP, "")
    with opened(name, folder) as inner:
        return remove_aged(inner, mount, aged, end, depth + 1) if mount_id(inner) == mount else Removed()


def _unlink(name: str, folder: int, found: os.stat_result) -> None:
    if stat.S_ISDIR(found.st_mode):
        os.rmdir(name, dir_fd=folder)
    else:
        os.unlink(name, dir_fd=folder)

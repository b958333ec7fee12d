"""Folders opened by descriptor: of a mounted filesystem, root's alone, through no link. Python 3.9, standard library."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress

FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class Unsafe(Exception):  # noqa: N818 - carried to the log as a sentence
    """A folder is missing, is another user's, or its filesystem is not mounted."""


def mount_id(descriptor: int) -> int:
    """Which mount a descriptor is on: two bind mounts of one filesystem have one st_dev and two of these."""
    with open(f"/proc/self/fdinfo/{descriptor}", encoding="ascii") as text:
        for line in text:
            if line.startswith("mnt_id:"):
                return int(line.split()[1])
    raise Unsafe("the kernel does not report mounts in /proc/self/fdinfo")


@contextmanager
def opened(name: str, within: int | None = None) -> Iterator[int]:
    """A folder, through no link in its last step."""
    descriptor = os.open(name, FOLDER, dir_fd=within)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


@contextmanager
def mounted(path: str) -> Iterator[int]:
    """The root of what is mounted on a path. Unsafe where nothing is, so that nothing is written below an empty mount point."""
    try:
        with opened(path) as root:
            with opened(os.path.dirname(path) or "/") as parent:
                if mount_id(root) == mount_id(parent):
                    raise Unsafe(f"nothing is mounted on {path}")
            found = os.fstat(root)
            writable = found.st_mode & 0o022 and not found.st_mode & stat.S_ISVTX
            if found.st_uid != os.geteuid() or writable:
                raise Unsafe(f"other users can rename what is in {path}")
            yield root
    except FileNotFoundError:
        raise Unsafe(f"{path} is missing") from None
    except NotADirectoryError:
        raise Unsafe(f"{path} is not a folder") from None


@contextmanager
def own(within: int, name: str, mode: int) -> Iterator[int]:
    """A folder of root's in another one, made if it is missing. Unsafe where another user owns or can write it."""
    with suppress(FileExistsError):
        os.mkdir(name, mode, dir_fd=within)
    try:
        with opened(name, within) as folder:
            found = os.fstat(folder)
            if found.st_uid != os.geteuid() or found.st_mode & 0o022:
                raise Unsafe(f"{name} belongs to uid {found.st_uid}, or other users can write to it")
            if mount_id(folder) != mount_id(within):
                raise Unsafe(f"something else is mounted on {name}")
            os.fchmod(folder, mode)  # mkdir(2) takes the umask off
            yield folder
    except NotADirectoryError:
        raise Unsafe(f"{name} is not a folder") from None

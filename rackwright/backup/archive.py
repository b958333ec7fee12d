"""A folder as a tar archive, and back. Standard library only.

The folder may be written to in the meantime. Files come before folders: slurmctld's `job_state` names jobs whose scripts
are in folders next to it, so a script that is archived after the list exists at least as long as it is needed.
The folder belongs to another user, who can swap a name for a link at any time: below it nothing is opened by its path.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import stat
import tarfile
import time
from typing import IO, cast

from rackwright.node_folders.mounted import opened

STAGING = ".rackwright-restore"
"""Folders, inside the restored one, for what was unpacked and what it replaces."""
_TRIES = 20
_PAUSE_SECONDS = 0.02
_REPLACED = (".new", ".old")
_DEEPEST = 200
"""Deepest archived folder level; each needs a descriptor."""
_BELOW = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
"""Follow no link, and do not wait for the writer of a pipe that replaced a file."""


class Unsafe(Exception):  # noqa: N818 - a state, not an error class
    """An archive has contents that cannot be unpacked safely; the text names them."""


def write(folder: str, out: IO[bytes]) -> int:
    """Write the archive of a folder; returns the number of files. OSError if one cannot be read completely."""
    into = _Out(out)
    # dereference: a file with two names is stored twice, since `put_back` unpacks no links
    with tarfile.open(
        fileobj=cast("IO[bytes]", into), mode="w|", format=tarfile.PAX_FORMAT, dereference=True
    ) as tar:
        try:
            with opened(os.path.realpath(folder)) as top:  # the site may have made the folder itself a link
                tar.addfile(_member(tar, top, "."))
                return _add(tar, top, "")
        except BaseException:
            into.given_up = True
            raise


class _Out:
    """Discards further output of an aborted archive: tarfile writes its buffer even after an exception.

    That could block, or raise another exception in place of the one that ended the backup.
    """

    def __init__(self, out: IO[bytes]) -> None:
        self._out = out
        self.given_up = False

    def write(self, data: bytes) -> int:
        return len(data) if self.given_up else self._out.write(data)


def _add(tar: tarfile.TarFile, folder: int, below: str) -> int:
    if below.count("/") == _DEEPEST:
        raise OSError(errno.ELOOP, f"folders nested more than {_DEEPEST} deep")
    count, folders = 0, []
    for name in _listed(folder):
        if not below and name == STAGING:
            continue
        # a file removed in the meantime may be missing
        with contextlib.suppress(FileNotFoundError):
            found = os.stat(name, dir_fd=folder, follow_symlinks=False)
            if stat.S_ISDIR(found.st_mode):
                folders.append(name)
            elif stat.S_ISREG(found.st_mode):
                _add_file(tar, folder, name, os.path.join(below, name))
                count += 1
    for name in folders:
        with contextlib.suppress(FileNotFoundError), opened(name, folder) as inner:
            path = os.path.join(below, name)
            tar.addfile(_member(tar, inner, path))
            count += _add(tar, inner, path)
    return count


def _listed(folder: int) -> list[str]:
    """Names in a folder, none of them missing only because its file is being replaced.

    slurmctld links `job_state` to `job_state.old`, unlinks it and links `job_state.new` in its place
    (src/common/state_save.c, read 2026-11-26): for a moment there is no `job_state`.
    """
    names: list[str] = []
    for _ in range(_TRIES):
        names = sorted(os.listdir(folder))
        there = set(names)
        if all(name[:-4] in there for name in names if name.endswith(_REPLACED)):
            break
        time.sleep(_PAUSE_SECONDS)
    return names


def _add_file(tar: tarfile.TarFile, folder: int, name: str, path: str) -> None:
    """Read from one descriptor: a file replaced in the meantime is archived as the old or the new one. OSError if it is not a file."""
    for attempt in range(_TRIES):
        try:
            with open(
                name, "rb", opener=lambda one, flags: os.open(one, flags | _BELOW, dir_fd=folder)
            ) as file:
                if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                    raise OSError(errno.EINVAL, "no longer a regular file", path)
                tar.addfile(tar.gettarinfo(arcname=path, fileobj=file), file)
            return
        except FileNotFoundError:
            if attempt == _TRIES - 1:
                raise
            time.sleep(_PAUSE_SECONDS)


def _member(tar: tarfile.TarFile, folder: int, path: str) -> tarfile.TarInfo:
    # tarfile accepts only paths and files; this path opens the descriptor's file, even after a rename
    return tar.gettarinfo(f"/proc/self/fd/{folder}", arcname=path)


def put_back(folder: str, stream: IO[bytes]) -> int:
    """Replace everything in a folder with an archive's content; returns the number of files. Safe to repeat after an interruption.

    Everything is unpacked next to it first, so that a damaged archive changes nothing.
    """
    staging = os.path.join(folder, STAGING)
    fresh, before = os.path.join(staging, "new"), os.path.join(staging, "before")
    os.makedirs(folder, exist_ok=True)
    shutil.rmtree(staging, ignore_errors=True)
    os.mkdir(staging, 0o700)
    os.mkdir(fresh, 0o700)
    os.mkdir(before, 0o700)
    count, top = _unpack(stream, fresh)
    for name in os.listdir(folder):
        if name != STAGING:
            os.rename(os.path.join(folder, name), os.path.join(before, name))
    for name in os.listdir(fresh):
        os.rename(os.path.join(fresh, name), os.path.join(folder, name))
    if top is not None:
        _give(folder, top)
    shutil.rmtree(staging)
    os.sync()
    return count


def check(stream: IO[bytes]) -> None:
    """Read an archive to its end; Unsafe or tarfile.TarError if `put_back` would refuse it."""
    with tarfile.open(fileobj=stream, mode="r|") as tar:
        for member in tar:
            if member.name != ".":
                _safe(member)


def _unpack(stream: IO[bytes], into: str) -> tuple[int, tarfile.TarInfo | None]:
    """The number of files, and the folder itself as the archive has it."""
    count, top, folders = 0, None, []
    with tarfile.open(fileobj=stream, mode="r|") as tar:
        for member in tar:
            if member.name == ".":
                top = member
                continue
            path = os.path.join(into, _safe(member))
            if member.isdir():
                os.mkdir(path, 0o700)
                folders.append((path, member))
                continue
            content = tar.extractfile(member)
            if content is None:
                raise Unsafe(f"the archive's {member.name} has no content")
            with open(path, "xb") as file:
                shutil.copyfileobj(content, file)
            _give(path, member)
            count += 1
    for path, member in folders:
        _give(path, member)
    return count, top


def _safe(member: tarfile.TarInfo) -> str:
    """The member's path below the folder."""
    steps = member.name.split("/")
    if any(step in ("", ".", "..") for step in steps) or "\0" in member.name:
        raise Unsafe(f"the archive has the path {member.name!r}")
    if not (member.isreg() or member.isdir()):
        raise Unsafe(f"the archive's {member.name} is neither a file nor a folder")
    return member.name


def _give(path: str, member: tarfile.TarInfo) -> None:
    """Owner and mode as archived: by name if the node knows it, since numbers may differ on a new installation."""
    try:
        shutil.chown(path, member.uname or member.uid, member.gname or member.gid)
    except LookupError:
        os.chown(path, member.uid, member.gid)
    os.chmod(path, member.mode & 0o777)
    os.utime(path, (member.mtime, member.mtime))

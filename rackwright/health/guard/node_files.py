"""The files of a node's health check, and its log."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import syslog
import time
from contextlib import ExitStack, contextmanager, suppress
from typing import IO, Any, Iterator  # noqa: UP035 - Python 3.9

from rackwright.health.guard import places

LOCK_SECONDS = 10.0


class NodeFiles:
    """Files below `root`; tests set it in place of /."""

    def __init__(self, root: str = "") -> None:
        self._root = root

    def mapping(self, path: str) -> dict[str, Any]:
        """The JSON object in a file; raises OSError, ValueError or TypeError for anything else."""
        with open(self._root + path, encoding="utf-8") as handle:
            data = json.load(handle)
        if not isinstance(data, dict):
            raise TypeError(f"{path} is not a JSON object")
        return data

    def maybe(self, path: str) -> dict[str, Any]:
        """The JSON object in a file; empty if it is missing or damaged."""
        try:
            return self.mapping(path)
        except (OSError, ValueError, TypeError):
            return {}

    def keep(self, path: str, text: str, mode: int = 0o600) -> bool:
        """Write the whole file and sync it; if that fails (disk full), remove it, because an old file would mislead.

        Writes only into a folder that root alone may write: elsewhere a planted link could redirect the write.
        """
        folder, _, name = (self._root + path).rpartition("/")
        try:
            with _own_folder(folder) as at:
                return _replaced(at, name, text, mode)
        except OSError as error:
            log(f"{path} cannot be written: {error.strerror}")
            return False

    def link(self, folder: str, target: str) -> None:
        """Link to a file of the health check in a folder that another user may own: opens and follows nothing in it."""
        name = target.rpartition("/")[2]
        there = self._root + folder
        with suppress(OSError):  # the folder is missing, or its owner removed the link: nothing to do
            at = os.open(there, os.O_RDONLY | os.O_DIRECTORY)
            try:
                if not _links_of_others(there) and _target(name, at) != target:
                    with suppress(FileNotFoundError):
                        os.unlink(f".{name}.new", dir_fd=at)
                    os.symlink(target, f".{name}.new", dir_fd=at)
                    os.replace(f".{name}.new", name, src_dir_fd=at, dst_dir_fd=at)
            finally:
                os.close(at)

    def switches(self) -> dict[str, str]:
        """The kill switches of this node: the reason by check name, or `all`."""
        folder, found = self._root + places.DISABLED, {}
        with suppress(OSError):
            for name in sorted(os.listdir(folder)):
                with open(f"{folder}/{name}", encoding="utf-8", errors="replace") as handle:
                    text = handle.readline(120).strip()
                found[name] = f"on this node: {text or 'no reason given'}"
        return found

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Lock against other passes on this node; stops waiting after a while."""
        with ExitStack() as stack:
            with suppress(OSError):  # disk full: two concurrent passes are better than none
                os.makedirs(self._root + places.STATE, mode=0o700, exist_ok=True)
                handle = stack.enter_context(open(f"{self._root}{places.STATE}/lock", "w", encoding="utf-8"))
                _wait_for(handle)
            yield


@contextmanager
def _own_folder(path: str) -> Iterator[int]:
    """A descriptor of a folder that root owns and no other user may write; raises OSError for any other folder."""
    at = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        found = os.fstat(at)
        if found.st_uid != os.geteuid() or found.st_mode & 0o022:
            raise PermissionError(errno.EPERM, "other users may write its folder")
        yield at
    finally:
        os.close(at)


def _replaced(at: int, name: str, text: str, mode: int) -> bool:
    new = f"{name}.{os.getpid()}.new"  # another pass may be writing the same file: the lock is not waited for forever
    try:
        _remove_left(at, name)
        made = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600, dir_fd=at)
        with open(made, "w", encoding="utf-8") as handle:
            os.fchmod(made, mode)
            handle.write(text + "\n")
            handle.flush()
            os.fsync(made)
        os.replace(new, name, src_dir_fd=at, dst_dir_fd=at)
    except OSError:
        for left in (new, name):
            with suppress(OSError):
                os.unlink(left, dir_fd=at)
        raise
    return True


def _remove_left(at: int, name: str) -> None:
    """Remove what passes that were killed have left of a new file."""
    for one in os.listdir(at):
        if one.startswith(f"{name}.") and one.endswith(".new"):
            writer = one[len(name) : -len("new")].strip(".")
            if not writer.isdigit() or int(writer) == os.getpid() or not os.path.exists(f"/proc/{writer}"):
                with suppress(FileNotFoundError):
                    os.unlink(one, dir_fd=at)


def _links_of_others(path: str) -> bool:
    """Whether another user could have made one of the links in the path, e.g. to a folder owned by root."""
    while path not in ("", "/"):
        above = os.path.dirname(path)
        if os.path.islink(path):
            found = os.stat(above)
            if found.st_uid not in (0, os.geteuid()) or found.st_mode & 0o022:
                return True
        path = above
    return False


def _target(name: str, at: int) -> str | None:
    try:
        return os.readlink(name, dir_fd=at)
    except OSError:
        return None


def _wait_for(handle: IO[str]) -> None:
    for _ in range(int(LOCK_SECONDS / 0.05)):
        with suppress(BlockingIOError):
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        time.sleep(0.05)


def log(text: str, *, urgent: bool = False) -> None:
    """To the node's journal or syslog."""
    syslog.openlog("rackwright-health", 0, syslog.LOG_DAEMON)
    syslog.syslog(syslog.LOG_CRIT if urgent else syslog.LOG_NOTICE, text)

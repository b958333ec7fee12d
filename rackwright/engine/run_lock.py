"""One run at a time per user and machine; rackwright.engine.head_lock coordinates several of them."""

from __future__ import annotations

import errno
import fcntl
import getpass
import json
import os
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import IO, Any

from rackwright.boundary import printable, read_json
from rackwright.errors import RackwrightError, RunLocked
from rackwright.state_folder import state_folder


def who() -> dict[str, Any]:
    """Who runs what, where and since when."""
    return {
        "pid": os.getpid(),
        "user": getpass.getuser(),
        "host": socket.gethostname(),
        "since": datetime.now(UTC).isoformat(timespec="seconds"),
        "command": " ".join(["rackwright", *sys.argv[1:]]),
    }


@contextmanager
def run_lock(cluster: str) -> Iterator[None]:
    """Hold the cluster's lock; RunLocked, naming the holder, if another run has it.

    The lock is the kernel's (flock): it ends with the process that held it, even a killed one.
    RackwrightError if the state folder cannot be written: a run could not record what it changes.
    """
    path = state_folder(cluster) / "run.lock"
    try:
        handle = path.open("a+", errors="replace")
    except OSError as error:
        raise _unwritable(path.parent, error) from error
    with handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            handle.seek(0)
            raise RunLocked(
                f"Cluster {cluster} is locked by {_holder(handle.read(65536))}.",
                hint="wait for that run to end, or stop it",
            ) from None
        try:
            _write(handle)
        except OSError as error:
            raise _unwritable(path.parent, error) from error
        yield


def _write(handle: IO[str]) -> None:
    """Write past the handle's buffer, which would be flushed, and fail, again on close."""
    os.ftruncate(handle.fileno(), 0)
    text = json.dumps(who()).encode()
    if os.write(handle.fileno(), text) < len(text):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def _unwritable(folder: object, error: OSError) -> RackwrightError:
    return RackwrightError(
        f"Cannot write to the state folder {folder}: {error.strerror}. Nothing was changed.",
        hint="free space there, or set XDG_STATE_HOME to a folder on another disk, e.g. /var/tmp/state",
    )


def _holder(text: str) -> str:
    try:
        holder = read_json(text)
        words = "{user}@{host} (pid {pid}, `{command}`) since {since}".format(**holder)
    except (ValueError, KeyError, TypeError, IndexError, AttributeError):
        return "another run that has not written its name yet"
    return printable(words, 400)

"""Benches that were run, for comparison with the next, and those that are under way."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager

from rackwright.errors import StorageError
from rackwright.result_store import ResultStore

RESULTS = ResultStore("storage", StorageError)
_OPEN = "open-"


@contextmanager
def under_way(cluster: str, run: str) -> Iterator[None]:
    """Holds a file locked while a run writes; what a killed run leaves is unlocked, and so is known to be over."""
    path = RESULTS.folder(cluster) / f"{_OPEN}{run}"
    try:
        path.parent.mkdir(mode=0o700, exist_ok=True)
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(handle, fcntl.LOCK_EX)
    except OSError as error:
        raise StorageError(f"The run cannot be recorded at {path}: {error.strerror}.") from error
    try:
        yield
    finally:
        os.close(handle)


def done(cluster: str, run: str) -> None:
    """Forget a run whose folder is gone."""
    (RESULTS.folder(cluster) / f"{_OPEN}{run}").unlink(missing_ok=True)


def unfinished(cluster: str) -> list[str]:
    """Runs of this host that are over and whose folders may still be there."""
    found = []
    for path in sorted(RESULTS.folder(cluster).glob(f"{_OPEN}*")):
        with contextlib.suppress(OSError):
            handle = os.open(path, os.O_RDWR | os.O_CLOEXEC)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                found.append(path.name.removeprefix(_OPEN))
            finally:
                os.close(handle)
    return found

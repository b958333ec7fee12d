"""A lock that one process at a time holds; the wait for it is bounded."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

_PAUSE_SECONDS = 0.1


class LockHeld(Exception):  # noqa: N818 - a state, not an error class
    """Another process kept the lock for longer than the caller waits."""


@contextmanager
def locked(path: str, seconds: float) -> Iterator[None]:
    """Hold the lock on a file, which is made in a folder of root's; LockHeld after that many seconds.

    The kernel lets go of it when the process ends, however it ends.
    """
    with suppress(FileExistsError):
        os.mkdir(os.path.dirname(path), 0o700)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        end = time.monotonic() + seconds
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() >= end:
                    raise LockHeld(path) from None
                time.sleep(_PAUSE_SECONDS)
        yield
    finally:
        os.close(descriptor)

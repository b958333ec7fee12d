"""Folders that appear only when complete: one builder at a time, and no leftovers of a killed one."""

from __future__ import annotations

import fcntl
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def locked(target: Path) -> Iterator[None]:
    """Only one builder of a folder at a time; a second one waits and finds the image."""
    handle = os.open(target.with_name(f".{target.name}.lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def discard(unfinished: Path) -> None:
    """Remove an unfinished build; the processes of a killed builder end a moment after it."""
    deadline = time.monotonic() + 10
    while unfinished.exists():
        try:
            shutil.rmtree(unfinished)
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)

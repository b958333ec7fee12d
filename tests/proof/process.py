"""A program in a separate process group: bounded in time, its output in a file and on the terminal."""

from __future__ import annotations

import codecs
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

_POLL_SECONDS = 0.1


@dataclass(frozen=True)
class Ended:
    """How a program ended."""

    status: int
    """As subprocess has it: negative for the signal that killed it."""
    timed_out: bool


@dataclass(frozen=True)
class Limits:
    """How long a program may run, and how long it may take to clean up after SIGINT."""

    seconds: float
    grace_seconds: float = 120.0


def run_bounded(
    argv: Sequence[str],
    *,
    folder: Path,
    environment: dict[str, str],
    log: Path,
    limits: Limits,
    keep: int,
    meanwhile: Callable[[], None],
) -> Ended:
    """Run to the end or to the limit; an interruption of this process stops the program first.

    The program writes to the file itself, not through a pipe to this process: if this process is killed, it can still
    clean up. It inherits the descriptor `keep`; `meanwhile` is called ten times a second.
    """
    with log.open("ab") as out:
        process = subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            cwd=folder,
            env=environment,
            start_new_session=True,
            pass_fds=(keep,),
        )
        echo = _Echo(log, out.tell())
    deadline = time.monotonic() + limits.seconds
    try:
        while not _has_ended(process) and time.monotonic() < deadline:
            echo.copy()
            meanwhile()
            time.sleep(_POLL_SECONDS)
        if _has_ended(process):
            return Ended(process.wait(), timed_out=False)
        _stop(process, limits.grace_seconds)
        return Ended(process.wait(), timed_out=True)
    except BaseException:
        _stop(process, limits.grace_seconds)
        raise
    finally:
        echo.copy()


def _has_ended(process: subprocess.Popen[bytes]) -> bool:
    """Without reaping it: until then no other process or group can get its number."""
    if process.returncode is not None:
        return True
    return os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def _stop(process: subprocess.Popen[bytes], grace_seconds: float) -> None:
    """SIGINT, so that pytest takes its fixtures down; then SIGKILL for what is left of the group."""
    if process.returncode is not None:
        return
    try:
        os.killpg(process.pid, signal.SIGINT)
        deadline = time.monotonic() + grace_seconds
        while not _has_ended(process) and time.monotonic() < deadline:
            time.sleep(_POLL_SECONDS)
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


class _Echo:
    """Copies what is appended to a file to our own output."""

    def __init__(self, path: Path, offset: int) -> None:
        self._path, self._offset = path, offset
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def copy(self) -> None:
        with self._path.open("rb") as file:
            file.seek(self._offset)
            content = file.read()
        self._offset += len(content)
        if content:
            sys.stdout.write(self._decoder.decode(content))
            sys.stdout.flush()

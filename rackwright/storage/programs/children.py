"""Processes of a node: all that touches the filesystem is done in children, so that a hung filesystem hangs no parent."""

from __future__ import annotations

import json
import os
import pwd
import select
import signal
import time
from collections.abc import Callable
from typing import Any

MARK = "rackwright-storage "
"""Prefix of each result line; all other output is ignored."""
ANSWER_MAX_BYTES = 4 * 2**20


def say(document: dict[str, Any]) -> None:
    """Print a result: one line, in one write, since other nodes print to the same place."""
    os.write(1, (MARK + json.dumps(document) + "\n").encode())


def one_line(error: BaseException) -> str:
    """An error in one printable line, which is all that the control node takes."""
    text = f"{type(error).__name__}: {error}"[:500]
    return "".join(one if one.isprintable() else " " for one in text).strip()


def become(user: str | None) -> str | None:
    """Go on as a user for good, with no group but the user's own; why that failed, or None."""
    if user is None:
        return None
    try:
        entry = pwd.getpwnam(user)
        if os.geteuid() == entry.pw_uid:
            return None
        os.initgroups(user, entry.pw_gid)
        os.setgid(entry.pw_gid)
        os.setuid(entry.pw_uid)
    except (KeyError, OSError) as error:
        return f"cannot switch to user {user}: {one_line(error)}"
    return None


def in_child(work: Callable[[], dict[str, Any]], seconds: float) -> dict[str, Any]:
    """What a function returns, run in a child; `{"hung": seconds}` when that takes longer, `{"error": text}` when it fails.

    A child that the kernel does not let die is left behind: it holds none of our files, so nothing waits for it.
    """
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        os.close(reading)
        _answer(work, writing)
    os.close(writing)
    deadline = time.monotonic() + seconds
    parts: list[bytes] = []
    while sum(map(len, parts)) < ANSWER_MAX_BYTES:
        ready, _, _ = select.select([reading], [], [], max(0.0, deadline - time.monotonic()))
        part = os.read(reading, 65536) if ready else b""
        if not part:
            break
        parts.append(part)
    ended = bool(ready)
    os.close(reading)
    if not ended:
        os.kill(child, signal.SIGKILL)
        return {"hung": seconds}
    os.waitpid(child, 0)
    try:
        found = json.loads(b"".join(parts))
    except ValueError:
        return {"error": "the process ended without an answer"}
    return found if isinstance(found, dict) else {"error": "the process gave no answer"}


def _answer(work: Callable[[], dict[str, Any]], writing: int) -> None:
    """In the child: leave the parent's output alone, work, write the answer, end."""
    try:
        nothing = os.open(os.devnull, os.O_RDWR)
        for number in (0, 1, 2):
            os.dup2(nothing, number)
        try:
            found = work()
        except Exception as error:  # noqa: BLE001 - any error belongs into the answer
            found = {"error": one_line(error)}
        data = json.dumps(found).encode()
        while data:
            data = data[os.write(writing, data) :]
    finally:
        os._exit(0)


class Children:
    """Forked processes, whose output goes through this one, line by line.

    A child that the kernel holds would keep the job's output open, and with it the job.
    """

    def __init__(self, count: int, work: Callable[[int], None]) -> None:
        self._running: dict[int, int] = {}
        self._output: dict[int, bytes] = {}
        for number in range(count):
            reading, writing = os.pipe()
            child = os.fork()
            if not child:
                _child(lambda own=number: work(own), writing)  # type: ignore[misc]
            os.close(writing)
            os.set_blocking(reading, False)
            self._running[child] = number
            self._output[reading] = b""

    def wait(self, deadline: float) -> dict[int, int | None]:
        """Exit status of each child by its number, below 0 the signal that ended it, None: it had to be killed.

        Children that do not die within two seconds of SIGKILL are in the kernel's hands and are left behind.
        """
        ended: dict[int, int | None] = {}
        while self._running and time.monotonic() < deadline:
            self._collect(ended)
            time.sleep(0.02)
        for child in self._running:
            os.kill(child, signal.SIGKILL)
        ended.update(dict.fromkeys(self._running.values()))
        last = time.monotonic() + 2
        while self._running and time.monotonic() < last:
            self._collect({})
            time.sleep(0.02)
        self._forward()
        return ended

    def _collect(self, ended: dict[int, int | None]) -> None:
        self._forward()
        for child in list(self._running):
            done, status = os.waitpid(child, os.WNOHANG)
            if done:
                number = self._running.pop(child)
                ended[number] = -os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)

    def _forward(self) -> None:
        """Whole lines of what the children have printed."""
        for pipe, kept in self._output.items():
            try:
                while part := os.read(pipe, 65536):
                    kept += part
            except BlockingIOError:
                pass
            lines, newline, rest = kept.rpartition(b"\n")
            self._output[pipe] = rest
            data = lines + newline
            while data:
                data = data[os.write(1, data) :]


def _child(work: Callable[[], None], writing: int) -> None:
    """In the child: all output to the parent, work, end."""
    status = 1
    try:
        nothing = os.open(os.devnull, os.O_RDONLY)
        for number, target in ((0, nothing), (1, writing), (2, writing)):
            os.dup2(target, number)
        work()
        status = 0
    except BaseException as error:  # noqa: BLE001 - a child must not go on as its parent
        os.write(2, f"{one_line(error)}\n".encode())
    finally:
        os._exit(status)

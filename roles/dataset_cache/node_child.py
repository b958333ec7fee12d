"""Work in a child process, which is killed when its time is over. Runs on the node: standard library, Python 3.9."""

from __future__ import annotations

import os
import select
import signal
import time
from collections.abc import Callable

from rackwright.node_folders.mounted import Unsafe

_KILLED_SECONDS = 10.0
_TEXT = 4096


class ChildFailed(Exception):  # noqa: N818 - printed as a sentence
    """The work failed, for this reason."""


def in_child(work: Callable[[], None], seconds: float) -> None:
    """ChildFailed with the reason; TimeoutError when the time is over: a read from a server that is gone never returns.

    The child keeps the locks of its parent: one that the kernel does not let die keeps others from working beside it.
    """
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        _work(work, writer)
    os.close(writer)
    ended = False
    try:
        if not select.select([reader], [], [], seconds)[0]:
            raise TimeoutError
        reason = os.read(reader, _TEXT).decode("utf-8", "replace")
        status = os.waitpid(child, 0)[1]
        ended = True
        if status != 0:
            raise ChildFailed(reason or "its process exited without a message")
    finally:
        os.close(reader)
        if not ended:
            _kill(child)


def _work(work: Callable[[], None], writer: int) -> None:
    """Never returns: what the parent does at its end is the parent's."""
    status = 1
    try:
        work()
        status = 0
    except (OSError, ValueError, Unsafe) as error:
        os.write(writer, str(error).encode("utf-8", "replace")[:_TEXT])
    finally:
        os._exit(status)


def _kill(child: int) -> None:
    os.kill(child, signal.SIGKILL)
    end = time.monotonic() + _KILLED_SECONDS
    while os.waitpid(child, os.WNOHANG)[0] == 0 and time.monotonic() < end:
        time.sleep(0.05)

"""Connections that a busy sshd closes before login, tried again a few times.

sshd's stock `MaxStartups 10:30:100` (sshd_config(5), OpenSSH 10.0, read 2026-11-23) lets ten connections log in at
a time and closes more at random, without a banner. With many worker processes, or several operators, a jump host
gets that many at once; a second later it has room.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import TypeVar

import paramiko

from rackwright.errors import ConnectionFailed

T = TypeVar("T")

PAUSES_SECONDS = (0.3, 0.6, 1.2, 2.0, 3.0, 3.0, 4.0, 4.0)
"""Between attempts, each varied by half, so that those dropped together do not come back together."""


class Dropped(ConnectionFailed):
    """The other side closed the connection before the login began."""


def patiently(attempt: Callable[[], T]) -> T:
    """What `attempt` returns, tried again after Dropped; the last Dropped when every attempt was."""
    for pause in PAUSES_SECONDS:
        try:
            return attempt()
        except Dropped:
            time.sleep(pause * random.uniform(0.5, 1.5))
    return attempt()


def was_dropped(error: BaseException, transport: paramiko.Transport | None) -> bool:
    """Whether the other side closed the connection before the key exchange ended; no answer at all is not that."""
    if transport is None or transport.initial_kex_done:
        return False
    return any(
        isinstance(one, EOFError | ConnectionResetError | BrokenPipeError)
        for one in (error, error.__context__)
    )


def dropped(label: str, said: str) -> Dropped:
    """The error, with the line that the other side wrote in place of a banner."""
    wrote = f", and wrote {said!r}" if said else ""
    return Dropped(
        f"The ssh session with {label} could not be opened: it closes every connection before login{wrote}.",
        hint="is sshd answering, and not out of connections (MaxStartups)?",
    )

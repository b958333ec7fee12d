"""Retries connections that a busy sshd drops before login.

sshd's default `MaxStartups 10:30:100` (sshd_config(5), OpenSSH 10.0, read 2026-11-23) allows ten unauthenticated
connections and drops more at random, without a banner. Many worker processes or several operators can hit this
limit on a jump host at the same moment; a second later it accepts connections again.
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
"""Delays between attempts, with 50% jitter so that connections dropped together do not retry together."""


class Dropped(ConnectionFailed):
    """The peer closed the connection before login."""


def patiently(attempt: Callable[[], T]) -> T:
    """Result of `attempt`, which is retried after Dropped; raises the last Dropped if every attempt fails."""
    for pause in PAUSES_SECONDS:
        try:
            return attempt()
        except Dropped:
            time.sleep(pause * random.uniform(0.5, 1.5))
    return attempt()


def was_dropped(error: BaseException, transport: paramiko.Transport | None) -> bool:
    """Whether the peer closed the connection before key exchange ended; a timeout does not count."""
    if transport is None or transport.initial_kex_done:
        return False
    return any(
        isinstance(one, EOFError | ConnectionResetError | BrokenPipeError)
        for one in (error, error.__context__)
    )


def dropped(label: str, output: str) -> Dropped:
    """The error, with the line that the peer sent instead of a banner."""
    wrote = f", and wrote {output!r}" if output else ""
    return Dropped(
        f"The SSH session with {label} could not be opened: the server closes every connection before login{wrote}.",
        hint="is sshd running, and below its connection limit (MaxStartups)?",
    )

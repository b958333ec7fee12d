"""Connections to nodes: ssh with host keys that are always checked.

Used by the engine's pyinfra connector (greenlets), by verify and by burn-in (threads). Nothing here
creates at import time what gevent's monkey patching would have to replace.
"""

from rackwright.ssh.command import (
    KILLED,
    OUTPUT_MAX_BYTES,
    TIMED_OUT,
    TOO_MUCH_OUTPUT,
    run,
)
from rackwright.ssh.connection import NodeClient, connect
from rackwright.ssh.pool import Pool, RootShell

__all__ = [
    "KILLED",
    "OUTPUT_MAX_BYTES",
    "TIMED_OUT",
    "TOO_MUCH_OUTPUT",
    "NodeClient",
    "Pool",
    "RootShell",
    "connect",
    "run",
]

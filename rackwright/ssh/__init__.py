"""SSH connections to nodes; host keys are always checked.

Used by the engine's pyinfra connector (greenlets), by verify and by burn-in (threads). Nothing here
creates objects at import time that gevent's monkey patching would have to replace.
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

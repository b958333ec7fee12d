"""One run at a time on a cluster."""

from __future__ import annotations

import fcntl
import getpass
import json
import os
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

from rackwright.errors import RunLocked
from rackwright.state_folder import state_folder


@contextmanager
def run_lock(cluster: str) -> Iterator[None]:
    """Hold the cluster's lock; RunLocked, naming the holder, if another run has it.

    The lock is the kernel's (flock): it ends with the process that held it, even a killed one.
    """
    path = state_folder(cluster) / "run.lock"
    with path.open("a+") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            handle.seek(0)
            raise RunLocked(
                f"Cluster {cluster} is locked by {_holder(handle.read())}.",
                hint="wait for that run to end, or stop it",
            ) from None
        handle.seek(0)
        handle.truncate()
        json.dump(
            {
                "pid": os.getpid(),
                "user": getpass.getuser(),
                "host": socket.gethostname(),
                "since": datetime.now(UTC).isoformat(timespec="seconds"),
                "command": " ".join(["rackwright", *sys.argv[1:]]),
            },
            handle,
        )
        handle.flush()
        yield


def _holder(text: str) -> str:
    try:
        holder = json.loads(text)
        return "{user}@{host} (pid {pid}, `{command}`) since {since}".format(**holder)
    except (ValueError, KeyError, TypeError):
        return "another run that has not written its name yet"

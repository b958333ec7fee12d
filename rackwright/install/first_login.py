"""The first login on a newly installed node: only with the host key that it reported."""

from __future__ import annotations

import time
from collections.abc import Callable

from rackwright.bmc.open import connector
from rackwright.errors import ConnectionFailed
from rackwright.install.known_hosts import trust
from rackwright.install.limits import Tempo
from rackwright.install.record import Record
from rackwright.model.cluster import Cluster, Node
from rackwright.ssh.command import run
from rackwright.ssh.connection import connect

_PROBE_SECONDS = 5.0
_COMMAND_SECONDS = 60.0


def answers(cluster: Cluster, node: Node) -> bool:
    """Whether the node's address accepts connections on the SSH port."""
    try:
        opened = connector(cluster, node)(
            str(cluster.management_address(node)), cluster.ssh.port, _PROBE_SECONDS
        )
    except OSError:
        return False
    opened.close()
    return True


def kernel_arguments(cluster: Cluster, node: Node, host_key: str) -> str | None:
    """The kernel command line of a node, which also proves that sudo works; None: no login yet."""
    trust(cluster, node, host_key)
    try:
        client = connect(cluster, node)
    except ConnectionFailed:
        return None
    try:
        done = run(
            client,
            "cat /proc/cmdline",
            sudo=True,
            stdin=None,
            timeout=_COMMAND_SECONDS * cluster.ssh.time_factor,
        )
    except (TimeoutError, ConnectionFailed):
        return None
    finally:
        client.close()
    return done.stdout if done.exit_status == 0 else None


def wait_for(
    logged_in: Callable[[str], str | None], record: Record, tempo: Tempo, pause: Callable[[], None]
) -> str | None:
    """Wait for the first login to the new installation; the reason if it never came, else None."""
    deadline = time.monotonic() + tempo.first_boot
    while time.monotonic() < deadline:
        line = logged_in(record.host_key)
        if line is not None and f"rackwright.run={record.run}" in line.split():
            return None
        if line is not None:
            return "it booted another installation than the one just written: check its boot order"
        pause()
    return f"no login within {tempo.first_boot / 60:g} min: see rackwright bmc console"

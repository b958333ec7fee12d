"""The jump host: one connection per process, shared by all nodes behind it.

Each node uses a channel on that connection, which counts neither as a login (MaxStartups) nor as a session
(MaxSessions: sshd_config(5), read 2026-11-23, names only shell, login and subsystem sessions).
"""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import paramiko

from rackwright.errors import ConnectionFailed
from rackwright.model.cluster import Cluster
from rackwright.ssh.again import Dropped, patiently
from rackwright.ssh.hostkeys import in_words, parse_jump_host
from rackwright.ssh.transport import is_broken

PAUSE_SECONDS = 10
"""How long an unreachable jump host is not retried, so that a thousand nodes wait for it only once."""

Key = tuple[int, str, int, str]
"""Process, host, port, user: a forked worker cannot use its parent's connection."""
OpenJump = Callable[[Cluster, str, str, int], paramiko.SSHClient]
"""Connects to the jump host: cluster, user, host, port."""


@dataclass
class _Jump:
    lock: threading.Lock = field(default_factory=threading.Lock)
    client: paramiko.SSHClient | None = None
    failure: ConnectionFailed | None = None
    failed_at: float = 0.0


_jumps: dict[Key, _Jump] = {}


def through_jump(
    cluster: Cluster, jump_host: str, address: str, label: str, open_jump: OpenJump
) -> paramiko.Channel:
    """A channel from the jump host to the node; ConnectionFailed names whichever is unreachable."""
    transport = _transport(cluster, jump_host, open_jump)
    try:
        return transport.open_channel(
            "direct-tcpip",
            (address, cluster.ssh.port),
            ("127.0.0.1", 0),
            timeout=cluster.ssh.connect_timeout_seconds,
        )
    except (paramiko.SSHException, OSError, EOFError) as error:
        if is_broken(transport):
            raise Dropped(
                f"Cannot connect to {label}: lost the connection to the jump host {jump_host}: "
                f"{in_words(error)}.",
                hint="is the jump host up, and its sshd not restarting repeatedly?",
            ) from error
        raise ConnectionFailed(
            f"Cannot connect to {label}: the jump host {jump_host} cannot reach it: {in_words(error)}.",
            hint="is the node on, and does the jump host allow TCP forwarding (AllowTcpForwarding)?",
        ) from error


def _transport(cluster: Cluster, jump_host: str, open_jump: OpenJump) -> paramiko.Transport:
    user, host, port = parse_jump_host(jump_host)
    jump = _jumps.setdefault((os.getpid(), host, port, user), _Jump())
    asked_at = time.monotonic()
    with jump.lock:
        transport = jump.client.get_transport() if jump.client is not None else None
        if transport is not None and not is_broken(transport):
            return transport
        if jump.failure is not None and jump.failed_at > asked_at - PAUSE_SECONDS:
            raise jump.failure
        try:
            jump.client = patiently(lambda: open_jump(cluster, user, host, port))
        except ConnectionFailed as error:
            # not Dropped: retries to the jump host are exhausted, so its nodes do not retry either
            jump.failure = ConnectionFailed(error.message, hint=error.hint)
            jump.failed_at = time.monotonic()
            raise jump.failure from error
        jump.failure = None
        opened = jump.client.get_transport()
        if opened is None:
            raise Dropped(f"The jump host {jump_host} closed the connection immediately.")
        return opened


def jump_socket(host: str, port: int, label: str, timeout: float) -> socket.socket:
    """A TCP connection to the jump host."""
    try:
        return socket.create_connection((host, port), timeout)
    except OSError as error:
        kind = Dropped if isinstance(error, ConnectionResetError) else ConnectionFailed
        cause = f"no answer within {timeout:g} s" if isinstance(error, TimeoutError) else in_words(error)
        raise kind(
            f"Cannot connect to {label}: {cause}.", hint="check ssh.jump_host in the cluster file"
        ) from error

"""The jump host: one connection to it per process, shared by all nodes behind it.

A node costs a channel on that connection, which counts neither as a login (MaxStartups) nor as a session
(MaxSessions: sshd_config(5), read 2026-11-23, names shell, login and subsystem sessions alone).
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
"""How long a jump host that could not be reached is not tried again: a thousand nodes wait for it once."""

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
    """A channel from the jump host to the node; ConnectionFailed names the one that cannot be reached."""
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
                f"Cannot connect to {label}: the connection to the jump host {jump_host} was lost: "
                f"{in_words(error)}.",
                hint="is the jump host up, and its sshd not restarted over and over?",
            ) from error
        raise ConnectionFailed(
            f"Cannot connect to {label}: the jump host {jump_host} could not reach it: {in_words(error)}.",
            hint="is the node on, and may the jump host open TCP connections (AllowTcpForwarding)?",
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
            # a plain one: what the jump host has refused again and again, its nodes need not try again
            jump.failure = ConnectionFailed(error.message, hint=error.hint)
            jump.failed_at = time.monotonic()
            raise jump.failure from error
        jump.failure = None
        opened = jump.client.get_transport()
        if opened is None:
            raise Dropped(f"The connection to the jump host {jump_host} was closed at once.")
        return opened


def jump_socket(host: str, port: int, label: str, timeout: float) -> socket.socket:
    """A TCP connection to the jump host."""
    try:
        return socket.create_connection((host, port), timeout)
    except OSError as error:
        kind = Dropped if isinstance(error, ConnectionResetError) else ConnectionFailed
        cause = f"no answer within {timeout:g} s" if isinstance(error, TimeoutError) else in_words(error)
        raise kind(f"Cannot connect to {label}: {cause}.", hint="is ssh.jump_host right?") from error

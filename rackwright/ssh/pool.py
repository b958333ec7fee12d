"""One persistent connection per node, shared by threads."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Protocol, Self

import paramiko

from rackwright.command import CommandResult
from rackwright.errors import ConnectionFailed
from rackwright.model.cluster import Cluster, Node
from rackwright.open_files import allow_open_files
from rackwright.ssh.command import run
from rackwright.ssh.connection import connect

CHANNELS_PER_NODE = 6
"""Concurrent commands per node; sshd's MaxSessions is 10 by default."""
PAUSE_SECONDS = 30
"""How long an unreachable node is not retried."""


class RootShell(Protocol):
    """Runs commands as root on nodes by name; the part of ssh that verify and burn-in need."""

    def run(
        self, node: str, command: str, *, stdin: str | bytes | None = None, timeout: float
    ) -> CommandResult:
        """Run a shell command to completion; ConnectionFailed if the node is unreachable."""
        ...


class _Connection:
    """The connection to one node."""

    def __init__(self) -> None:
        self.opening = threading.Lock()
        self.slots = threading.BoundedSemaphore(CHANNELS_PER_NODE)
        self.client: paramiko.SSHClient | None = None
        self.root = False
        """A command has already run as root on this connection."""
        self.failure: ConnectionFailed | None = None
        self.failed_at = 0.0


class Pool:
    """Connections to the nodes of a cluster, opened on first use; a context manager."""

    def __init__(
        self, cluster: Cluster, *, dial: Callable[[Cluster, Node], paramiko.SSHClient] = connect
    ) -> None:
        self._cluster = cluster
        self._dial = dial
        self._sudo = cluster.ssh.become == "sudo"
        self._connections = {node.name: _Connection() for node in cluster.nodes}
        self._closed = False
        allow_open_files(2 * len(self._connections))

    def run(
        self, node: str, command: str, *, stdin: str | bytes | None = None, timeout: float
    ) -> CommandResult:
        """Run a command as root on a node (see rackwright.ssh.run); KeyError for an unknown node.

        At most six commands run on one node at once; time spent waiting for a slot does not count against
        `timeout`.
        """
        connection = self._connections[node]
        with connection.slots:
            client = self._client(node, connection)
            try:
                result = run(client, command, sudo=self._sudo, stdin=stdin, timeout=timeout)
                if result.exit_status != 0 and self._sudo and not connection.root:
                    self._prove_root(node, connection, client)  # did the command fail, or sudo?
                connection.root = True
            except ConnectionFailed:
                client.close()
                raise
            return result

    def _client(self, node: str, connection: _Connection) -> paramiko.SSHClient:
        with connection.opening:
            transport = connection.client.get_transport() if connection.client is not None else None
            if connection.client is not None and transport is not None and transport.is_active():
                return connection.client
            if connection.failure is not None and time.monotonic() - connection.failed_at < PAUSE_SECONDS:
                raise connection.failure
            if self._closed:
                raise ConnectionFailed(f"The connection to {node} was closed because the run has ended.")
            try:
                connection.client = self._dial(self._cluster, self._cluster.by_name[node])
                connection.root = False
            except ConnectionFailed as error:
                connection.failure, connection.failed_at = error, time.monotonic()
                raise
            connection.failure = None
            return connection.client

    def _prove_root(self, node: str, connection: _Connection, client: paramiko.SSHClient) -> None:
        done = run(client, "true", sudo=True, stdin=None, timeout=30)
        if done.exit_status != 0:
            reason = (done.stderr.strip().splitlines() or [f"exit status {done.exit_status}"])[-1]
            connection.failure, connection.failed_at = self._no_root(node, reason), time.monotonic()
            raise connection.failure

    def _no_root(self, node: str, reason: str) -> ConnectionFailed:
        return ConnectionFailed(
            f"{self._cluster.ssh.user} cannot become root on {node}: {reason}",
            hint="rackwright needs passwordless sudo (NOPASSWD: ALL) for ssh.user",
        )

    def forget(self, node: str) -> None:
        """Close the connection to a rebooted node, and connect without delay on the next command."""
        connection = self._connections[node]
        with connection.opening:
            if connection.client is not None:
                connection.client.close()
            connection.client, connection.failure = None, None

    def close(self) -> None:
        """Close every connection; running commands fail with ConnectionFailed."""
        self._closed = True
        for connection in self._connections.values():
            if connection.client is not None:
                connection.client.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

"""One kept connection per node, shared by threads."""

from __future__ import annotations

import resource
import threading
import time
from collections.abc import Callable
from typing import Protocol, Self

import paramiko

from rackwright.command import CommandResult
from rackwright.errors import ConnectionFailed
from rackwright.model.cluster import Cluster, Node
from rackwright.ssh.command import run
from rackwright.ssh.connection import connect

CHANNELS_PER_NODE = 6
"""Commands of one node running at once; sshd's MaxSessions is 10 unless a site lowers it."""
PAUSE_SECONDS = 30
"""How long a node that could not be reached is not tried again."""


class RootShell(Protocol):
    """Runs commands as root on nodes by name; what verify and burn-in need of ssh."""

    def run(
        self, node: str, command: str, *, stdin: str | bytes | None = None, timeout: float
    ) -> CommandResult:
        """Run a shell command to its end; ConnectionFailed when the node cannot be reached."""
        ...


class _Line:
    """The connection to one node."""

    def __init__(self) -> None:
        self.opening = threading.Lock()
        self.slots = threading.BoundedSemaphore(CHANNELS_PER_NODE)
        self.client: paramiko.SSHClient | None = None
        self.root = False
        """Commands were seen to run as root on this connection."""
        self.failure: ConnectionFailed | None = None
        self.failed_at = 0.0


class Pool:
    """Connections to the nodes of a cluster, opened when first used; a context manager."""

    def __init__(
        self, cluster: Cluster, *, dial: Callable[[Cluster, Node], paramiko.SSHClient] = connect
    ) -> None:
        self._cluster = cluster
        self._dial = dial
        self._sudo = cluster.ssh.become == "sudo"
        self._lines = {node.name: _Line() for node in cluster.nodes}
        self._closed = False
        _allow_open_files(len(self._lines))

    def run(
        self, node: str, command: str, *, stdin: str | bytes | None = None, timeout: float
    ) -> CommandResult:
        """Run a command as root on a node (see rackwright.ssh.run); KeyError for an unknown node.

        At most six commands of one node run at once, the others wait their turn (the wait does
        not count against `timeout`).
        """
        line = self._lines[node]
        with line.slots:
            client = self._client(node, line)
            try:
                result = run(client, command, sudo=self._sudo, stdin=stdin, timeout=timeout)
                if result.exit_status != 0 and self._sudo and not line.root:
                    self._prove_root(node, line, client)  # was it the command that failed, or sudo?
                line.root = True
            except ConnectionFailed:
                client.close()
                raise
            return result

    def _client(self, node: str, line: _Line) -> paramiko.SSHClient:
        with line.opening:
            transport = line.client.get_transport() if line.client is not None else None
            if line.client is not None and transport is not None and transport.is_active():
                return line.client
            if line.failure is not None and time.monotonic() - line.failed_at < PAUSE_SECONDS:
                raise line.failure
            if self._closed:
                raise ConnectionFailed(f"The connection to {node} was closed because the run ended.")
            try:
                line.client = self._dial(self._cluster, self._cluster.by_name[node])
                line.root = False
            except ConnectionFailed as error:
                line.failure, line.failed_at = error, time.monotonic()
                raise
            line.failure = None
            return line.client

    def _prove_root(self, node: str, line: _Line, client: paramiko.SSHClient) -> None:
        said = run(client, "true", sudo=True, stdin=None, timeout=30)
        if said.exit_status != 0:
            reason = (said.stderr.strip().splitlines() or [f"exit status {said.exit_status}"])[-1]
            line.failure, line.failed_at = self._no_root(node, reason), time.monotonic()
            raise line.failure

    def _no_root(self, node: str, reason: str) -> ConnectionFailed:
        return ConnectionFailed(
            f"{self._cluster.ssh.user} cannot become root on {node}: {reason}",
            hint="rackwright needs passwordless sudo (NOPASSWD: ALL) for ssh.user",
        )

    def close(self) -> None:
        """Close every connection; commands still running fail with ConnectionFailed."""
        self._closed = True
        for line in self._lines.values():
            if line.client is not None:
                line.client.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _allow_open_files(connections: int) -> None:
    """Raise this process's soft limit, commonly 1024, as far as a big cluster needs and it may."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = connections * 2 + 256
    if soft != resource.RLIM_INFINITY and soft < wanted:
        ceiling = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, ceiling), hard))

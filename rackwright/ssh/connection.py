"""Opening connections: socket or jump host, host key, login."""

from __future__ import annotations

import os
import socket
import threading
from functools import lru_cache
from pathlib import Path

import paramiko

from rackwright.errors import ConnectionFailed
from rackwright.model.cluster import Cluster, Node
from rackwright.ssh.hostkeys import (
    OnlyKnownKeys,
    algorithms_not_for,
    in_words,
    known_keys,
    parse_jump_host,
    refusal,
)
from rackwright.ssh.transport import QuietTransport

KEEPALIVE_SECONDS = 15

_jumps: dict[tuple[int, str, int, str], NodeClient] = {}
_jump_locks: dict[tuple[int, str, int, str], threading.Lock] = {}


class NodeClient(paramiko.SSHClient):
    """An SSHClient with a label for messages: node, address and port."""

    def __init__(self, label: str) -> None:
        super().__init__()
        self.label = label


def connect(cluster: Cluster, node: Node) -> NodeClient:
    """Open an authenticated connection to a node; the caller closes it.

    ConnectionFailed names the node, its address, the cause and what to do. Host keys are read from
    `cluster.ssh.known_hosts` and never added.
    """
    address = str(cluster.management_address(node))
    label = f"{node.name} ({address}, port {cluster.ssh.port})"
    keys = known_keys(cluster.ssh.known_hosts, label, address, cluster.ssh.port, in_lab=node.lab is not None)
    if cluster.ssh.jump_host is not None:
        channel = _through_jump(cluster, cluster.ssh.jump_host, address, label)
        return _handshake(cluster, label, address, cluster.ssh.port, cluster.ssh.user, channel, keys)
    opened = _open_socket(cluster, node, address, label)
    return _handshake(cluster, label, address, cluster.ssh.port, cluster.ssh.user, opened, keys)


def _open_socket(cluster: Cluster, node: Node, address: str, label: str) -> socket.socket:
    timeout = cluster.ssh.connect_timeout_seconds
    try:
        opened: socket.socket | None = None
        if node.lab is not None:
            from rackwright.lab.netns import open_socket  # a real site never loads the lab

            opened = open_socket(cluster.name, address, cluster.ssh.port, timeout)
        if opened is None:
            opened = socket.create_connection((address, cluster.ssh.port), timeout)
    except OSError as error:
        cause = f"no answer within {timeout} s" if isinstance(error, TimeoutError) else in_words(error)
        hint = (
            "is the rack up? `rackwright lab status`" if node.lab is not None else "is it on, and is sshd up?"
        )
        raise ConnectionFailed(f"Cannot connect to {label}: {cause}.", hint=hint) from error
    return _tuned(opened)


def _tuned(opened: socket.socket) -> socket.socket:
    """Send at once, and notice within a minute that the other side is gone."""
    opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if hasattr(socket, "TCP_USER_TIMEOUT"):  # paramiko's keepalives do not wait for an answer
        opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, 60_000)
    return opened


def _through_jump(cluster: Cluster, jump_host: str, address: str, label: str) -> paramiko.Channel:
    """A channel from the jump host to the node; all nodes share one connection to the jump host."""
    user, host, port = parse_jump_host(jump_host)
    key = (os.getpid(), host, port, user)  # a forked worker cannot use its parent's connection
    with _jump_locks.setdefault(key, threading.Lock()):
        jump = _jumps.get(key)
        if jump is None or not _alive(jump):
            jump = _jumps[key] = _connect_jump(cluster, user, host, port)
    try:
        return transport_of(jump).open_channel(
            "direct-tcpip",
            (address, cluster.ssh.port),
            ("127.0.0.1", 0),
            timeout=cluster.ssh.connect_timeout_seconds,
        )
    except (paramiko.SSHException, OSError, EOFError) as error:
        raise ConnectionFailed(
            f"Cannot connect to {label}: the jump host {jump_host} could not reach it: {in_words(error)}.",
            hint="is the node on, and may the jump host open TCP connections (AllowTcpForwarding)?",
        ) from error


def _alive(client: paramiko.SSHClient) -> bool:
    transport = client.get_transport()
    return transport is not None and transport.is_active()


def transport_of(client: paramiko.SSHClient) -> paramiko.Transport:
    """The live transport of a client; EOFError when it is gone."""
    transport = client.get_transport()
    if transport is None or not transport.is_active():
        raise EOFError("it was closed")
    return transport


def _connect_jump(cluster: Cluster, user: str, host: str, port: int) -> NodeClient:
    label = f"the jump host {host} (port {port})"
    keys = known_keys(cluster.ssh.known_hosts, label, host, port, in_lab=False)
    timeout = cluster.ssh.connect_timeout_seconds
    try:
        opened = socket.create_connection((host, port), timeout)
    except OSError as error:
        raise ConnectionFailed(
            f"Cannot connect to {label}: {in_words(error)}.", hint="is ssh.jump_host right?"
        ) from error
    return _handshake(cluster, label, host, port, user, _tuned(opened), keys)


def _handshake(
    cluster: Cluster,
    label: str,
    host: str,
    port: int,
    user: str,
    opened: socket.socket | paramiko.Channel,
    keys: list[paramiko.PKey],
) -> NodeClient:
    """Check the host key, log in; closes what it was given when that fails."""
    settings = cluster.ssh
    client = NodeClient(label)
    client.set_missing_host_key_policy(OnlyKnownKeys(keys))
    try:
        client.connect(
            host,
            port,
            user,
            pkey=_load_key(settings.key) if settings.key is not None else None,
            allow_agent=settings.key is None,
            look_for_keys=settings.key is None,
            sock=opened,
            compress=False,
            timeout=settings.connect_timeout_seconds,
            banner_timeout=settings.connect_timeout_seconds,
            auth_timeout=settings.connect_timeout_seconds,
            channel_timeout=settings.connect_timeout_seconds,
            disabled_algorithms={"keys": algorithms_not_for(keys)},
            transport_factory=QuietTransport,
        )
    except ConnectionFailed:
        client.close()
        opened.close()
        raise
    except (paramiko.SSHException, OSError, EOFError) as error:
        client.close()
        opened.close()
        raise refusal(error, label, settings.known_hosts, user, settings.key) from error
    transport_of(client).set_keepalive(KEEPALIVE_SECONDS)
    return client


def _load_key(path: Path) -> paramiko.PKey:
    try:
        return _key_as_of(path, path.stat().st_mtime_ns)
    except OSError as error:
        raise ConnectionFailed(
            f"The ssh key {path} cannot be read: {error.strerror}.", hint="see ssh.key in the cluster file"
        ) from error
    except TypeError as error:  # what cryptography raises for an encrypted key without passphrase
        raise ConnectionFailed(
            f"The ssh key {path} is protected by a passphrase, which rackwright does not ask for.",
            hint="add it to an ssh agent and leave ssh.key out of the cluster file",
        ) from error
    except (ValueError, paramiko.SSHException) as error:
        raise ConnectionFailed(f"The ssh key {path} cannot be used: {in_words(error)}.") from error


@lru_cache(maxsize=4)
def _key_as_of(path: Path, changed_ns: int) -> paramiko.PKey:
    """Read once for all connections, until the file changes."""
    key: paramiko.PKey = paramiko.PKey.from_path(path)
    return key

"""Opens connections: socket or jump host, host key check, login."""

from __future__ import annotations

import socket
from functools import lru_cache
from pathlib import Path

import paramiko

from rackwright.errors import ConnectionFailed
from rackwright.model.cluster import Cluster, Node
from rackwright.ssh.again import Dropped, dropped, patiently, was_dropped
from rackwright.ssh.hostkeys import (
    OnlyKnownKeys,
    algorithms_not_for,
    in_words,
    known_keys,
    refusal,
)
from rackwright.ssh.jump import jump_socket, through_jump
from rackwright.ssh.transport import QuietTransport

KEEPALIVE_SECONDS = 15


class NodeClient(paramiko.SSHClient):
    """An SSHClient with a label for messages: node, address and port."""

    def __init__(self, label: str) -> None:
        super().__init__()
        self.label = label


def connect(cluster: Cluster, node: Node) -> NodeClient:
    """Open an authenticated connection to a node; the caller closes it.

    ConnectionFailed names the node, its address, the cause and what to do. Host keys are read from
    `cluster.ssh.known_hosts` and never added. If a busy sshd closes the connection before login, the attempt is
    repeated for about twenty seconds.
    """
    address = str(cluster.management_address(node))
    label = f"{node.name} ({address}, port {cluster.ssh.port})"
    keys = known_keys(cluster.ssh.known_hosts, label, address, cluster.ssh.port, in_lab=node.lab is not None)

    def attempt() -> NodeClient:
        opened: socket.socket | paramiko.Channel
        if cluster.ssh.jump_host is not None:
            opened = through_jump(cluster, cluster.ssh.jump_host, address, label, _connect_jump)
        else:
            opened = _open_socket(cluster, node, address, label)
        return _handshake(cluster, label, address, cluster.ssh.port, cluster.ssh.user, opened, keys)

    return patiently(attempt)


def _open_socket(cluster: Cluster, node: Node, address: str, label: str) -> socket.socket:
    timeout = cluster.ssh.connect_timeout_seconds
    try:
        opened: socket.socket | None = None
        if node.lab is not None:
            from rackwright.lab.netns import open_socket  # only the lab needs it

            opened = open_socket(cluster.name, address, cluster.ssh.port, timeout)
        if opened is None:
            opened = socket.create_connection((address, cluster.ssh.port), timeout)
    except OSError as error:
        cause = f"no answer within {timeout} s" if isinstance(error, TimeoutError) else in_words(error)
        hint = (
            "is the rack up? check with `rackwright lab status`"
            if node.lab is not None
            else "is the node on, and is sshd running?"
        )
        kind = Dropped if isinstance(error, ConnectionResetError) else ConnectionFailed
        raise kind(f"Cannot connect to {label}: {cause}.", hint=hint) from error
    return _tuned(opened)


def _tuned(opened: socket.socket) -> socket.socket:
    """Disable Nagle, and detect a dead peer within a minute."""
    opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if hasattr(socket, "TCP_USER_TIMEOUT"):  # paramiko's keepalives do not wait for an answer
        opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, 60_000)
    return opened


def transport_of(client: paramiko.SSHClient) -> paramiko.Transport:
    """The live transport of a client; EOFError if it is gone."""
    transport = client.get_transport()
    if transport is None or not transport.is_active():
        raise EOFError("the connection was closed")
    return transport


def _connect_jump(cluster: Cluster, user: str, host: str, port: int) -> NodeClient:
    label = f"the jump host {host} (port {port})"
    keys = known_keys(cluster.ssh.known_hosts, label, host, port, in_lab=False)
    opened = jump_socket(host, port, label, cluster.ssh.connect_timeout_seconds)
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
    """Check the host key and log in; closes the socket on failure."""
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
        transport = client.get_transport()
        client.close()
        opened.close()
        if was_dropped(error, transport):
            raise dropped(label, transport.said if isinstance(transport, QuietTransport) else "") from error
        raise refusal(error, label, settings.known_hosts, user, settings.key) from error
    transport_of(client).set_keepalive(KEEPALIVE_SECONDS)
    return client


def _load_key(path: Path) -> paramiko.PKey:
    try:
        return _key_as_of(path, path.stat().st_mtime_ns)
    except OSError as error:
        raise ConnectionFailed(
            f"Cannot read the SSH key {path}: {error.strerror}.", hint="check ssh.key in the cluster file"
        ) from error
    except TypeError as error:  # cryptography raises it for an encrypted key without passphrase
        raise ConnectionFailed(
            f"The SSH key {path} has a passphrase; rackwright cannot ask for it.",
            hint="add the key to an ssh agent and remove ssh.key from the cluster file",
        ) from error
    except (ValueError, paramiko.SSHException) as error:
        raise ConnectionFailed(f"The SSH key {path} is not usable: {in_words(error)}.") from error


@lru_cache(maxsize=4)
def _key_as_of(path: Path, changed_ns: int) -> paramiko.PKey:
    """Read once for all connections, and again when the file changes."""
    key: paramiko.PKey = paramiko.PKey.from_path(path)
    return key

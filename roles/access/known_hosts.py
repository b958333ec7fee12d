"""Host keys of the nodes: from the cluster's known_hosts file to the one every node gets."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from rackwright.errors import RackwrightError
from rackwright.model.cluster import Cluster, Node
from rackwright.render import render


@dataclass(frozen=True)
class HostKey:
    """One public host key, as known_hosts writes it."""

    kind: str
    key: str


@dataclass(frozen=True)
class Entry:
    """One line of known_hosts."""

    names: tuple[str, ...]
    kind: str
    key: str


class KnownHosts:
    """A known_hosts file read once: plain and hashed names; patterns and @markers do not count.

    A key that a @revoked line names is left out, under every name.
    """

    def __init__(self, text: str) -> None:
        self._plain: dict[str, list[HostKey]] = {}
        self._hashed: list[tuple[bytes, bytes, HostKey]] = []
        self._revoked: set[HostKey] = set()
        for line in text.splitlines():
            self._read(line.split())

    def _read(self, fields: list[str]) -> None:
        marker = fields.pop(0) if fields and fields[0].startswith("@") else None
        if len(fields) < 3 or fields[0].startswith("#"):
            return
        key = HostKey(fields[1], fields[2])
        if marker == "@revoked":
            self._revoked.add(key)
        if marker is not None:
            return
        for name in fields[0].split(","):
            if name.startswith("|1|"):
                self._read_hashed(name, key)
            else:
                self._plain.setdefault(name, []).append(key)

    def _read_hashed(self, name: str, key: HostKey) -> None:
        _, _, salt, digest = (*name.split("|", 3), "", "")[:4]
        try:
            self._hashed.append((base64.b64decode(salt), base64.b64decode(digest), key))
        except (binascii.Error, ValueError):
            return  # a line nobody can read vouches for nothing

    def keys(self, name: str) -> tuple[HostKey, ...]:
        """The keys of a host, in file order; `name` as ssh looks it up: "n1" or "[n1]:2222"."""
        found = list(self._plain.get(name, ()))
        found += [
            key
            for salt, digest, key in self._hashed
            if hmac.compare_digest(hmac.new(salt, name.encode(), hashlib.sha1).digest(), digest)
        ]
        return tuple(key for key in dict.fromkeys(found) if key not in self._revoked)


@lru_cache(maxsize=4)
def _read(path: Path, changed_ns: int, size: int) -> KnownHosts:
    return KnownHosts(path.read_text(encoding="utf-8", errors="replace"))


def _stamp(path: Path) -> tuple[int, int]:
    try:
        status = path.stat()
    except FileNotFoundError:
        return (0, 0)
    return (status.st_mtime_ns, status.st_size)


def host_names(cluster: Cluster, node: Node) -> tuple[str, ...]:
    """Everything a node may be called, or seen as coming from, inside the cluster."""
    addresses = tuple(str(entry.address) for entry in node.addresses)
    names = (node.name, node.fqdn, *addresses)
    if cluster.ssh.port == 22:
        return names
    return (*names, *(f"[{name}]:{cluster.ssh.port}" for name in names))


def node_keys(cluster: Cluster, node: Node) -> tuple[HostKey, ...]:
    """The declared host keys of a node: those under the address rackwright itself reaches it on."""
    path = cluster.ssh.known_hosts
    stamp = _stamp(path)
    if stamp == (0, 0):
        return ()
    try:
        known = _read(path, *stamp)
    except OSError as error:
        raise RackwrightError(f"{path} cannot be read: {error.strerror}.") from error
    address = str(cluster.management_address(node))
    return known.keys(address if cluster.ssh.port == 22 else f"[{address}]:{cluster.ssh.port}")


def without_key(cluster: Cluster) -> tuple[str, ...]:
    """Nodes whose host key the cluster's known_hosts file does not have."""
    return tuple(node.name for node in cluster.nodes if not node_keys(cluster, node))


def _entries(cluster: Cluster) -> Iterator[Entry]:
    for node in cluster.nodes:
        for key in node_keys(cluster, node):
            yield Entry(host_names(cluster, node), key.kind, key.key)


_texts: dict[tuple[str, Path, tuple[int, int]], str] = {}


def ssh_known_hosts(cluster: Cluster) -> str:
    """/etc/ssh/ssh_known_hosts, the same on every node.

    A node without a declared key is named in a comment and left out: a cluster is brought up node
    by node, and the check of this file says what is missing.
    """
    key = (cluster.sha256, cluster.ssh.known_hosts, _stamp(cluster.ssh.known_hosts))
    if key not in _texts:  # asked for once per node, and it lists them all
        _texts[key] = render(
            "access/known_hosts.j2", entries=list(_entries(cluster)), unknown=without_key(cluster)
        )
    return _texts[key]


def shosts_equiv(cluster: Cluster) -> str:
    """/etc/ssh/shosts.equiv: whose users are who they say they are. Plain names: no ports here."""
    hosts = [
        name
        for node in cluster.nodes
        for name in (node.name, node.fqdn, *(str(entry.address) for entry in node.addresses))
    ]
    return render("access/shosts.equiv.j2", cluster=cluster.name, hosts=hosts)

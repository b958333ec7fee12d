"""Host keys of the nodes: from the cluster's known_hosts file to the one every node gets."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from rackwright.errors import RackwrightError
from rackwright.model.cluster import Cluster, Node
from rackwright.render import render
from rackwright.roles.access import trust
from rackwright.ssh.known_hosts import HostKey, KnownHosts, host_name, read_known_hosts

_EMPTY = KnownHosts("")


@dataclass(frozen=True)
class Entry:
    """One line of known_hosts."""

    names: tuple[str, ...]
    kind: str
    key: str


def host_names(cluster: Cluster, node: Node) -> tuple[str, ...]:
    """Every name and address that a node has inside the cluster."""
    addresses = tuple(str(entry.address) for entry in node.addresses)
    names = (node.name, node.fqdn, *addresses)
    if cluster.ssh.port == 22:
        return names
    return (*names, *(host_name(name, cluster.ssh.port) for name in names))


def node_keys(cluster: Cluster, node: Node) -> tuple[HostKey, ...]:
    """The declared host keys of a node: those under the address rackwright itself reaches it on."""
    return _known(cluster).keys(host_name(str(cluster.management_address(node)), cluster.ssh.port))


def _known(cluster: Cluster) -> KnownHosts:
    """The cluster's known_hosts file, the same object until it changes; empty if there is none."""
    path = cluster.ssh.known_hosts
    try:
        return read_known_hosts(path)
    except FileNotFoundError:
        return _EMPTY
    except OSError as error:
        raise RackwrightError(f"{path} cannot be read: {error.strerror}.") from error


def without_key(cluster: Cluster) -> tuple[str, ...]:
    """Nodes whose host key the cluster's known_hosts file does not have."""
    return tuple(node.name for node in cluster.nodes if not node_keys(cluster, node))


def _entries(cluster: Cluster) -> Iterator[Entry]:
    for node in cluster.nodes:
        for key in node_keys(cluster, node):
            yield Entry(host_names(cluster, node), key.kind, key.key)


_texts: dict[tuple[str, KnownHosts], str] = {}


def ssh_known_hosts(cluster: Cluster) -> str:
    """/etc/ssh/ssh_known_hosts, the same on every node.

    A node without a declared key is named in a comment and left out: a cluster is brought up node
    by node, and the check of this file reports what is missing.
    """
    key = (cluster.sha256, _known(cluster))
    if key not in _texts:  # asked for once per node, and it lists them all
        _texts[key] = render(
            "access/known_hosts.j2", entries=list(_entries(cluster)), unknown=without_key(cluster)
        )
    return _texts[key]


def shosts_equiv(cluster: Cluster, node: Node) -> str:
    """/etc/ssh/shosts.equiv of a node: the nodes whose users are trusted by name. Plain names, no ports."""
    hosts = [
        name
        for other in trust.trusted(cluster, node)
        for name in (other.name, other.fqdn, *(str(entry.address) for entry in other.addresses))
    ]
    return render("access/shosts.equiv.j2", cluster=cluster.name, hosts=hosts)

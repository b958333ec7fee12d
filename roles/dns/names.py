"""The names that the heads answer, as records of unbound."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from ipaddress import IPv4Network

from rackwright.model.cluster import Cluster, Node
from rackwright.model.host_names import host_names
from rackwright.model.interfaces import NamesHosts

_OCTET = 8


@dataclass(frozen=True)
class Record:
    """A name, without the dot at the end, and its address."""

    name: str
    address: str
    canonical: bool
    """Whether the address resolves back to it."""


@dataclass(frozen=True)
class Zone:
    """A zone of unbound: `static` has no other names, of `transparent` ones others are asked."""

    name: str
    kind: str


def records(cluster: Cluster, node: Node) -> Iterator[Record]:
    """Every name of /etc/hosts on this node, short ones below the cluster's domain; each once."""
    hosts = node.offers(NamesHosts)
    seen, reversed_to = set(), set()
    for entry in host_names(cluster, () if hosts is None else hosts.extra_hosts):
        for short in entry.names:
            name = (short if "." in short else f"{short}.{cluster.domain}").lower()
            if (name, entry.address) in seen:
                continue
            seen.add((name, entry.address))
            yield Record(name, entry.address, canonical=entry.address not in reversed_to)
            reversed_to.add(entry.address)


def known_names(cluster: Cluster, node: Node) -> frozenset[str]:
    """Every name of /etc/hosts, as written there and whole."""
    hosts = node.offers(NamesHosts)
    entries = host_names(cluster, () if hosts is None else hosts.extra_hosts)
    return frozenset(name for entry in entries for name in entry.names) | {
        record.name for record in records(cluster, node)
    }


def zones(cluster: Cluster, *, complete: bool) -> Iterator[Zone]:
    """The cluster's domain, and the reverse zones of its networks: unknown names in them are answered at once."""
    yield Zone(cluster.domain, "static" if complete else "transparent")
    yield from dict.fromkeys(
        zone for network in cluster.inner_networks for zone in reverse_zones(network.cidr)
    )


def reverse_zones(network: IPv4Network) -> Iterator[Zone]:
    """The reverse zones of a network, which end at whole octets; one that others share is not complete."""
    length = -(-network.prefixlen // _OCTET) * _OCTET
    if length == 0 or network.prefixlen > 3 * _OCTET:
        network, length, kind = network.supernet(new_prefix=3 * _OCTET), 3 * _OCTET, "transparent"
    else:
        kind = "static"
    for part in network.subnets(new_prefix=length):
        octets = str(part.network_address).split(".")[: length // _OCTET]
        yield Zone(f"{'.'.join(reversed(octets))}.in-addr.arpa", kind)

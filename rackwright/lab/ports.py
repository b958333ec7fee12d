"""The network ports of a node as the lab and Vagrant make them: one for each address, with a MAC that stays."""

from __future__ import annotations

from dataclasses import dataclass

from rackwright.lab import names
from rackwright.model.cluster import Cluster, Node


@dataclass(frozen=True, slots=True)
class Port:
    """One port of a node."""

    network: str
    rail: int
    address: str
    prefix_length: int
    mtu: int
    mac: str | None
    """The MAC address of the virtual port; on a node without a lab size, that of the declared management port."""


def ports(cluster: Cluster, node: Node) -> tuple[Port, ...]:
    """A node's ports, the management port first, the others in the order of the addresses."""
    management = cluster.management.name
    entries = sorted(node.addresses, key=lambda entry: entry.network != management)
    return tuple(
        Port(
            network=entry.network,
            rail=entry.rail,
            address=str(entry.address),
            prefix_length=cluster.networks[entry.network].subnet(entry.rail).prefixlen,
            mtu=cluster.networks[entry.network].mtu,
            mac=_mac(cluster, node, number),
        )
        for number, entry in enumerate(entries)
    )


def _mac(cluster: Cluster, node: Node, number: int) -> str | None:
    if node.lab is None:
        return node.mac if number == 0 else None
    return names.port_mac(cluster.name, node.name, number)

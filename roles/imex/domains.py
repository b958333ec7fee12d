"""Which nodes share an NVLink domain. Pure functions."""

from __future__ import annotations

from ipaddress import IPv4Address

from rackwright.model.cluster import Cluster, Node
from rackwright.model.ranges import expand
from rackwright.roles.imex.options import ImexOptions


def domain_of(cluster: Cluster, node: Node, options: ImexOptions) -> tuple[Node, ...]:
    """Every node of the domain this one is in, itself included, in the order of the file."""
    everybody = ImexOptions.nodes(cluster)
    if options.domains:
        for nodes in options.domains.values():
            names = set(expand(nodes))
            if node.name in names:
                return tuple(peer for peer in everybody if peer.name in names)
        return ()
    return tuple(peer for peer in everybody if peer.rack == node.rack and peer.rack is not None)


def addresses(cluster: Cluster, node: Node, options: ImexOptions) -> tuple[IPv4Address, ...]:
    """Addresses of the domain's nodes on the network IMEX talks over; the same list on each of them."""
    network = options.network or cluster.management.name
    found = (peer.address_on(network) for peer in domain_of(cluster, node, options))
    return tuple(address for address in found if address is not None)

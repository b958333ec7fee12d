"""The network of a node's default route, derived from the declaration alone."""

from __future__ import annotations

from collections.abc import Mapping

from rackwright.model.cluster import Network, Node
from rackwright.model.types import NetworkPurpose

_IN_ORDER = (NetworkPurpose.EXTERNAL, NetworkPurpose.MANAGEMENT)
NEVER = (NetworkPurpose.FABRIC, NetworkPurpose.STORAGE)
"""Purposes of networks that carry no default route, with or without a gateway."""


def default_networks(networks: Mapping[str, Network], node: Node) -> tuple[Network, ...]:
    """The networks whose gateway is the node's default route; empty if none is declared.

    External networks on nodes with an address there, else the management network: fabric and
    storage networks route only to subnets of the same kind, never outside.
    """
    own = [networks[entry.network] for entry in node.addresses if entry.rail == 0]
    for purpose in _IN_ORDER:
        found = tuple(net for net in own if net.purpose is purpose and net.gateway is not None)
        if found:
            return found
    return ()

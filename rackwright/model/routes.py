"""Which network a node's default route leaves by, from the declaration alone."""

from __future__ import annotations

from collections.abc import Mapping

from rackwright.model.cluster import Network, Node
from rackwright.model.types import NetworkPurpose

_IN_ORDER = (NetworkPurpose.EXTERNAL, NetworkPurpose.MANAGEMENT)
NEVER = (NetworkPurpose.FABRIC, NetworkPurpose.STORAGE)
"""Purposes of networks that carry no default route, whether they have a gateway or not."""


def default_networks(networks: Mapping[str, Network], node: Node) -> tuple[Network, ...]:
    """The networks whose gateway is the node's way out; empty where none is declared.

    The external ones on nodes that have an address there, else the management network: fabric and
    storage networks reach other subnets of the same kind, never the outside world.
    """
    own = [networks[entry.network] for entry in node.addresses if entry.rail == 0]
    for purpose in _IN_ORDER:
        found = tuple(net for net in own if net.purpose is purpose and net.gateway is not None)
        if found:
            return found
    return ()

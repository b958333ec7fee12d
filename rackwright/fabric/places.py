"""Descriptions of cable ends, with the details needed at the rack."""

from __future__ import annotations

from collections.abc import Mapping

from rackwright.fabric.identify import FoundEnd, Names
from rackwright.model.cluster import Cluster, Node
from rackwright.model.fabric import Fabric, NodePort
from rackwright.model.hcas import DeclaresHcas, Hca, NamesInterfaces


def hcas_of(cluster: Cluster, node: Node, network: str) -> tuple[Hca, ...]:
    """The declared RDMA devices of a node on a network, rail by rail."""
    role = node.offers(DeclaresHcas)
    return () if role is None else tuple(hca for hca in role.hcas(cluster, node) if hca.network == network)


def declared_names(cluster: Cluster, network: str) -> Names:
    """Rails of devices and interfaces as roles declare them."""
    rails: dict[tuple[str, str], int] = {}
    for node in cluster.nodes:
        for hca in hcas_of(cluster, node, network):
            rails[node.name, hca.name] = hca.rail
            if hca.netdev is not None:
                rails[node.name, hca.netdev] = hca.rail
        interfaces = node.offers(NamesInterfaces)
        if interfaces is not None:
            for rail in range(cluster.networks[network].rails):
                if (port := interfaces.port(network, rail)) is not None:
                    rails[node.name, port] = rail
    return Names(rails)


class Places:
    """Describes ends of one fabric."""

    def __init__(self, cluster: Cluster, fabric: Fabric) -> None:
        self._nodes: Mapping[str, Node] = cluster.by_name
        self._labels = {end: cable.label for end, cable in fabric.by_end.items() if cable.label}
        self._hcas = {
            (node.name, hca.rail): hca
            for node in cluster.nodes
            for hca in hcas_of(cluster, node, fabric.network)
        }

    def __call__(self, end: FoundEnd) -> str:
        """`gpu017 rail 3 (mlx5_rail3 at 0000:5e:00.0, rack r2 position 5, cable K17)`, `leaf2 port 12`."""
        details = []
        if isinstance(end, NodePort):
            hca, node = self._hcas.get((end.node, end.rail)), self._nodes.get(end.node)
            if hca is not None:
                details.append(f"{hca.name} at {hca.pci}" if hca.pci else hca.name)
            if node is not None and node.rack is not None:
                position = f" position {node.position}" if node.position is not None else ""
                details.append(f"rack {node.rack}{position}")
        if (label := self._labels.get(end)) and isinstance(end, NodePort):  # type: ignore[arg-type]
            details.append(f"cable {label}")
        return f"{end} ({', '.join(details)})" if details else str(end)

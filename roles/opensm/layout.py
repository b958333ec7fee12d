"""Which subnets a network has, and what each one's subnet managers do. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rackwright.model.cluster import Cluster, Node
from rackwright.model.fabric import Fabric, NodePort, SwitchPort
from rackwright.model.hcas import DeclaresHcas

if TYPE_CHECKING:
    from rackwright.roles.opensm.options import OpensmOptions, Subnet


@dataclass(frozen=True)
class Island:
    """Switches that cables connect: a subnet. Without a declared fabric, all of a network."""

    name: str
    """Of its files and units, e.g. `fabric`, or `fabric-leaf2` where the network has several."""
    switches: frozenset[str] = frozenset()

    def rail_of(self, fabric: Fabric | None, node: str) -> int | None:
        """The lowest rail with which a node is in it; None: it has no port there."""
        if fabric is None:
            return 0
        rails = [
            port.rail
            for port, leaf in fabric.leaf_of.items()
            if port.node == node and leaf.switch in self.switches
        ]
        return min(rails, default=None)


@dataclass(frozen=True)
class Instance:
    """One opensm of a node."""

    network: str
    island: Island
    device: str
    port: int
    priority: int
    first: bool
    """Whether it is to be the master."""


def islands(fabric: Fabric | None, network: str) -> tuple[Island, ...]:
    """The subnets of a network, in the order of their leaves."""
    if fabric is None:
        return (Island(network),)
    if len(fabric.subnets) == 1:
        return (Island(network, frozenset(fabric.subnets[0])),)
    return tuple(Island(f"{network}-{switches[0]}", frozenset(switches)) for switches in fabric.subnets)


def instances(cluster: Cluster, node: Node, options: OpensmOptions) -> Iterator[Instance]:
    """What a node runs: one for each subnet that it has a port on."""
    for network, subnet in options.networks.items():
        if node.name not in subnet.nodes:
            continue
        fabric = cluster.fabrics.get(network)
        for island in islands(fabric, network):
            rail = island.rail_of(fabric, node.name)
            device = None if rail is None else device_of(cluster, node, network, subnet, rail)
            if device is not None:
                priority = subnet.priority(node.name)
                yield Instance(network, island, *device, priority, subnet.nodes[0] == node.name)


def device_of(
    cluster: Cluster, node: Node, network: str, subnet: Subnet, rail: int
) -> tuple[str, int] | None:
    """RDMA device and port of a node on a rail; None: not declared."""
    if subnet.device is not None:
        return subnet.device, 1
    declares = node.offers(DeclaresHcas)
    hcas = () if declares is None else declares.hcas(cluster, node)
    return next(((hca.name, hca.port) for hca in hcas if (hca.network, hca.rail) == (network, rail)), None)


def engine(fabric: Fabric | None, subnet: Subnet) -> str:
    """The routing engine: declared, or derived from the declared cables."""
    if subnet.routing != "auto":
        return subnet.routing
    if fabric is None or not fabric.spines:
        return "minhop"
    return "ftree" if is_fat_tree(fabric) else "updn"


def is_fat_tree(fabric: Fabric) -> bool:
    """Whether every leaf has the same number of cables to each spine: what opensm's ftree takes without reservation."""
    uplinks = Counter(
        (cable.near.switch, cable.far.switch) for cable in fabric.cables if isinstance(cable.near, SwitchPort)
    )
    pairs = [uplinks[leaf, spine] for leaf in fabric.leaves for spine in fabric.spines]
    return bool(pairs) and min(pairs) > 0 and len(set(pairs)) == 1


def root_guids(fabric: Fabric | None, island: Island) -> tuple[str, ...]:
    """GUIDs of the subnet's spines, if all are declared: part of the roots would make a wrong ranking."""
    if fabric is None:
        return ()
    spines = [spine for spine in fabric.spines if spine in island.switches]
    found = [fabric.switches[spine].guid for spine in spines if spine in fabric.switches]
    known = [f"0x{guid.removeprefix('0x')}" for guid in found if guid is not None]
    return tuple(known) if len(known) == len(spines) else ()


def unmanaged(cluster: Cluster, network: str, subnet: Subnet) -> tuple[Island, ...]:
    """Subnets with node ports that none of the nodes is on."""
    fabric = cluster.fabrics.get(network)
    if fabric is None:
        return ()
    used = {leaf.switch for port, leaf in fabric.leaf_of.items() if isinstance(port, NodePort)}
    return tuple(
        island
        for island in islands(fabric, network)
        if island.switches & used and all(island.rail_of(fabric, name) is None for name in subnet.nodes)
    )

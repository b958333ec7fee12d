"""Maps RDMA devices to rails and nodes to leaves, from the declaration alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address

from rackwright.model.cluster import Cluster, Node
from rackwright.model.fabric import Cable, NodePort
from rackwright.model.hcas import DeclaresHcas, SetsCollectives
from rackwright.model.types import LinkKind, NetworkPurpose


@dataclass(frozen=True)
class Rail:
    """One port of a node on a fabric."""

    rail: int
    network: str
    kind: LinkKind
    device: str
    port: int
    address: IPv4Address | None
    netdev: str | None = None
    software: bool = False
    """Whether the kernel makes the device of a network interface (rdma_rxe)."""

    @property
    def gid(self) -> str | None:
        """Its RoCE v2 GID as sysfs prints it: the IPv4 address, mapped to IPv6; None: not of RoCE, or no address."""
        return mapped_gid(self.address) if self.kind.converged and self.address is not None else None


def mapped_gid(address: IPv4Address) -> str:
    """`::ffff:192.168.1.4` as /sys/class/infiniband/DEVICE/ports/1/gids has it."""
    high, low = int(address) >> 16, int(address) & 0xFFFF
    return f"0000:0000:0000:0000:0000:ffff:{high:04x}:{low:04x}"


def rails_of(cluster: Cluster, node: Node) -> tuple[Rail, ...]:
    """Rails on RDMA networks for jobs, by network; empty if no role declares the node's devices."""
    role = node.offers(DeclaresHcas)
    if role is None:
        return ()
    found = []
    for hca in role.hcas(cluster, node):
        network = cluster.networks.get(hca.network)
        if network is not None and network.purpose is NetworkPurpose.FABRIC and network.kind.rdma:
            address = node.address_on(hca.network, hca.rail)
            place = hca.rail, hca.network, network.kind, hca.name, hca.port, address, hca.netdev
            found.append(Rail(*place, software=hca.pci is None))
    return tuple(sorted(found, key=lambda rail: (list(cluster.networks).index(rail.network), rail.rail)))


def devices_of_nccl(cluster: Cluster, node: Node) -> tuple[str, ...]:
    """The devices that NCCL is to use on a node, as `mlx5_rail0:1` with the port, in the order declared.

    From NCCL_IB_HCA of `burnin.nccl_env`, which wins in a burn-in, else of the role that sets NCCL's variables. Empty: no
    exact list is declared (`=` begins one; without it names are prefixes, `^` excludes).
    """
    role = node.offers(SetsCollectives)
    environment = {} if role is None else role.collective_environment(cluster, node)
    named = cluster.burnin.nccl_env.get("NCCL_IB_HCA", environment.get("NCCL_IB_HCA", ""))
    if not named.startswith("="):
        return ()
    return tuple(name if ":" in name else f"{name}:1" for name in named[1:].split(",") if name)


def cable_of(cluster: Cluster, node: str, rail: int, network: str | None = None) -> Cable | None:
    """The declared cable of a node's rail."""
    for name, fabric in cluster.fabrics.items():
        cable = fabric.by_end.get(NodePort(node, rail))
        if cable is not None and network in (None, name):
            return cable
    return None


def leaves_of(cluster: Cluster, node: Node) -> tuple[str, ...]:
    """The leaf of each rail, rail by rail; of the declared cabling, else the node's switches; empty: not declared."""
    leaves = [
        fabric.leaf_of[port].switch
        for fabric in cluster.fabrics.values()
        for rail in range(fabric.rails)
        if (port := NodePort(node.name, rail)) in fabric.leaf_of
    ]
    return tuple(leaves) or node.switches


def units_of(cluster: Cluster, members: Sequence[Node]) -> list[tuple[str, ...]]:
    """Nodes below the same leaves with every rail, in file order; nodes without declared leaves are one unit."""
    units: dict[tuple[str, ...], list[str]] = {}
    for node in members:
        units.setdefault(leaves_of(cluster, node), []).append(node.name)
    return [tuple(names) for names in units.values()]

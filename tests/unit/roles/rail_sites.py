"""A site with two rails of Ethernet for the tests of the fabric's roles: declared devices, interfaces and cables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rackwright.model.cluster import Cluster, Node
from rackwright.model.fabric import Cable, Fabric, NodePort, SwitchPort
from rackwright.model.hcas import DeclaresHcas, Hca, NamesInterfaces
from rackwright.model.options import RoleOptions
from rackwright.model.types import LinkKind, Platform
from tests.factories import make_network
from tests.unit.roles.sites import NETWORKS, site


class Devices(RoleOptions, DeclaresHcas):
    """Stands for the role that names RDMA devices."""

    soft: bool = False
    netdev: bool = True
    network: str = "fabric"

    def hcas(self, cluster: Cluster, node: Node) -> tuple[Hca, ...]:
        """mlx5_rail0 and mlx5_rail1, or software devices."""
        found = []
        for rail in range(2):
            if node.address_on(self.network, rail) is None:
                continue
            pci = None if self.soft else f"0000:{18 + rail}:00.0"
            name = f"{'rxe' if self.soft else 'mlx5'}_rail{rail}"
            found.append(Hca(name, self.network, rail, pci, f"rail{rail}" if self.netdev else None))
        return tuple(found)


class Interfaces(RoleOptions, NamesInterfaces):
    """Stands for the role that names interfaces."""

    named: bool = True

    def interface(self, cluster: Cluster, network: str, rail: int = 0) -> str | None:
        """rail0, rail1, mgmt0.12; nothing else."""
        if not self.named:
            return None
        return {"fabric": f"rail{rail}", "management": "mgmt0.12"}.get(network)

    def port(self, network: str, rail: int = 0) -> str | None:
        """rail0, rail1, mgmt0; nothing else."""
        if not self.named:
            return None
        return {"fabric": f"rail{rail}", "management": "mgmt0"}.get(network)


def fabric(kind: LinkKind = LinkKind.ROCE) -> Fabric:
    """gpu1 and gpu2, each with rail 0 at leaf0 and rail 1 at leaf1."""
    cables = tuple(
        Cable(NodePort(f"gpu{node}", rail), SwitchPort(f"leaf{rail}", node))
        for node in (1, 2)
        for rail in (0, 1)
    )
    return Fabric("fabric", kind, 2, ("leaf0", "leaf1"), (), cables)


def fabric_site(
    options: Mapping[str, RoleOptions],
    *,
    kind: LinkKind = LinkKind.ROCE,
    platform: Platform = Platform.BARE_METAL,
    mtu: int = 9000,
    cabled: bool = True,
    **changes: Any,
) -> Cluster:
    """head1, gpu1 and gpu2; the workers on two rails, 10.11.0.0/24 and 10.11.1.0/24."""
    rails = make_network("fabric", "10.11.0.0/16", kind=kind, rails=2, rail_prefix=24, mtu=mtu)
    return site(
        options,
        platform=platform,
        networks={**NETWORKS, "fabric": rails},
        fabrics={"fabric": fabric(kind)} if cabled else {},
        **changes,
    )

"""A small site for the tests of base, access, tuning and time: a head and two workers, three networks."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rackwright.model.cluster import Cluster, Node
from rackwright.model.options import RoleOptions
from rackwright.model.settings import Ssh
from rackwright.model.sku import Nic, Sku
from rackwright.model.types import LinkKind, NetworkPurpose, NodeRole, Platform
from rackwright.osfamily.known import OsRelease
from tests.factories import DEBIAN_13, make_address, make_cluster, make_gpu_sku, make_network, make_node

EXPECTED = Path(__file__).parent / "expected"

GPU_SKU = make_gpu_sku(nics=(Nic(purpose=NetworkPurpose.STORAGE, kind=LinkKind.ETHERNET, speed_gbps=400),))

NETWORKS = {
    "management": make_network("management", "10.9.0.0/24"),
    "storage": make_network("storage", "10.10.0.0/24"),
    "fabric": make_network("fabric", "10.11.0.0/16", kind=LinkKind.INFINIBAND, rails=2),
}


def site(
    options: Mapping[str, RoleOptions],
    *,
    os: OsRelease = DEBIAN_13,
    platform: Platform = Platform.BARE_METAL,
    sku: Sku = GPU_SKU,
    **changes: Any,
) -> Cluster:
    """head1, gpu1 and gpu2 with these options; the workers are also on storage and on two rails."""
    shared: dict[str, Any] = {"os": os, "platform": platform, "options": dict(options)}
    nodes = [make_node("head1", 10, NodeRole.HEAD, **shared)]
    for number in (1, 2):
        addresses = (
            make_address("management", f"10.9.0.{10 + number}"),
            make_address("storage", f"10.10.0.{10 + number}"),
            make_address("fabric", f"10.11.0.{10 + number}"),
            make_address("fabric", f"10.11.1.{10 + number}", rail=1),
        )
        nodes.append(
            make_node(f"gpu{number}", 10 + number, NodeRole.WORKER, sku=sku, addresses=addresses, **shared)
        )
    return make_cluster(*nodes, **{"networks": NETWORKS, "ssh": Ssh(user="admin"), **changes})


def head(cluster: Cluster) -> Node:
    """The primary head."""
    return cluster.by_name["head1"]


def worker(cluster: Cluster) -> Node:
    """The first worker."""
    return cluster.by_name["gpu1"]


def expected(name: str) -> str:
    """A whole file as it must land, from tests/unit/roles/expected."""
    return (EXPECTED / name).read_text()

"""A small site for the tests of base, access, tuning and time: a head and two workers, three networks."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from ipaddress import IPv4Address, IPv4Network
from pathlib import Path
from typing import Any

from rackwright.model.cluster import Cluster, Network, Node, NodeAddress
from rackwright.model.settings import Ssh
from rackwright.model.sku import Gpus, Nic, Sku, Source
from rackwright.model.types import LinkKind, NetworkPurpose, NodeRole, OsRelease, Platform
from rackwright.options import RoleOptions
from tests.factories import make_cluster, make_node

EXPECTED = Path(__file__).parent / "expected"

GPU_SKU = Sku(
    name="gpu-node",
    vendor="none",
    description="two sockets, eight GPUs, fast storage ports",
    sockets=2,
    cores_per_socket=56,
    threads_per_core=2,
    memory_mib=2097152,
    gpus=Gpus(model="H100", gres_type="h100", count=8, memory_mib=81559),
    nics=(Nic(purpose=NetworkPurpose.STORAGE, kind=LinkKind.ETHERNET, speed_gbps=400),),
    sources=(Source(text="made up for tests", read=date(2026, 11, 20)),),
)

NETWORKS = {
    "management": Network(
        name="management", purpose=NetworkPurpose.MANAGEMENT, cidr=IPv4Network("10.9.0.0/24")
    ),
    "storage": Network(name="storage", purpose=NetworkPurpose.STORAGE, cidr=IPv4Network("10.10.0.0/24")),
    "fabric": Network(
        name="fabric",
        purpose=NetworkPurpose.FABRIC,
        kind=LinkKind.INFINIBAND,
        cidr=IPv4Network("10.11.0.0/16"),
        rails=2,
    ),
}


def site(
    options: Mapping[str, RoleOptions],
    *,
    os: OsRelease = OsRelease.DEBIAN_13,
    platform: Platform = Platform.BARE_METAL,
    sku: Sku = GPU_SKU,
    **changes: Any,
) -> Cluster:
    """head1, gpu1 and gpu2 with these options; the workers are also on storage and on two rails."""
    shared: dict[str, Any] = {"os": os, "platform": platform, "options": dict(options)}
    nodes = [make_node("head1", 10, NodeRole.HEAD, **shared)]
    for number in (1, 2):
        addresses = (
            NodeAddress(network="management", address=IPv4Address(f"10.9.0.{10 + number}")),
            NodeAddress(network="storage", address=IPv4Address(f"10.10.0.{10 + number}")),
            NodeAddress(network="fabric", rail=0, address=IPv4Address(f"10.11.0.{10 + number}")),
            NodeAddress(network="fabric", rail=1, address=IPv4Address(f"10.11.1.{10 + number}")),
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

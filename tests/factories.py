"""Small declared clusters for tests, without a cluster file."""

from __future__ import annotations

from datetime import date
from ipaddress import IPv4Address, IPv4Network
from pathlib import Path
from typing import Any

from rackwright.model.cluster import Cluster, Network, Node, NodeAddress
from rackwright.model.settings import Burnin, Mirrors, Ssh
from rackwright.model.sku import Sku, Source
from rackwright.model.types import NetworkPurpose, NodeRole, OsRelease, Platform

SKU = Sku(
    name="test-node",
    vendor="none",
    description="two CPUs and no GPU",
    sockets=1,
    cores_per_socket=2,
    threads_per_core=1,
    memory_mib=2048,
    sources=(Source(text="made up for tests", read=date(2026, 11, 20)),),
)


def make_node(name: str, number: int, *roles: NodeRole, **changes: Any) -> Node:
    """A node with address 10.9.0.<number>; `changes` replace any field."""
    fields: dict[str, Any] = {
        "name": name,
        "fqdn": f"{name}.test.example",
        "roles": frozenset(roles or {NodeRole.WORKER}),
        "primary": NodeRole.HEAD in roles,
        "sku": SKU,
        "platform": Platform.CONTAINER,
        "os": OsRelease.DEBIAN_13,
        "addresses": (NodeAddress(network="management", address=IPv4Address(f"10.9.0.{number}")),),
    }
    return Node(**{**fields, **changes})


def make_cluster(*nodes: Node, **changes: Any) -> Cluster:
    """A cluster of these nodes (default: head1, worker1, worker2) on 10.9.0.0/24."""
    default = (
        make_node("head1", 10, NodeRole.HEAD),
        make_node("worker1", 11),
        make_node("worker2", 12),
    )
    management = Network(
        name="management", purpose=NetworkPurpose.MANAGEMENT, cidr=IPv4Network("10.9.0.0/24")
    )
    fields: dict[str, Any] = {
        "name": "test",
        "domain": "test.example",
        "path": Path("/nowhere/test.yaml"),
        "sha256": "0" * 64,
        "networks": {"management": management},
        "ssh": Ssh(user="admin"),
        "mirrors": Mirrors(),
        "burnin": Burnin(),
        "nodes": nodes or default,
    }
    return Cluster(**{**fields, **changes})

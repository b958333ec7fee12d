"""Small declared clusters for tests, without a cluster file."""

from __future__ import annotations

from datetime import date
from ipaddress import IPv4Address, IPv4Network
from pathlib import Path
from typing import Any, ClassVar

from rackwright.model.cluster import Cluster, Network, Node, NodeAddress
from rackwright.model.interfaces import RunsKubernetes, RunsWorkloadManager
from rackwright.model.options import RoleOptions
from rackwright.model.settings import Burnin, Mirrors, Ssh
from rackwright.model.sku import Gpus, Sku, Source
from rackwright.model.types import NetworkPurpose, NodeRole, Platform, WorkloadManager
from rackwright.osfamily.known import os_release

DEBIAN_12, DEBIAN_13 = os_release("debian-12"), os_release("debian-13")


class RunsSlurm(RoleOptions, RunsWorkloadManager):
    """Options of a role that runs Slurm; stands for the slurm role."""

    workload_manager: ClassVar[WorkloadManager] = WorkloadManager.SLURM
    core_spec_count: int = 0


class RunsKube(RoleOptions, RunsKubernetes):
    """Options of a role that runs Kubernetes, its control plane on heads; stands for the kubernetes role."""

    workload_manager: ClassVar[WorkloadManager] = WorkloadManager.KUBERNETES
    core_spec_count: int = 0
    version: str = "1.20.2"
    burnin: str | None = "test.example/mpi:1"

    def control_planes(self, cluster: Cluster) -> tuple[Node, ...]:
        """The primary first."""
        heads = [node for node in cluster.holding(NodeRole.HEAD) if node.offers(RunsKubernetes) is not None]
        return tuple(sorted(heads, key=lambda node: not node.primary))

    @property
    def burnin_image(self) -> str | None:
        """As given."""
        return self.burnin

    def image(self, component: str) -> str:
        """Of no use here."""
        return f"test.example/{component}:1"


def make_sku(name: str = "test-node", **changes: Any) -> Sku:
    """A node model with two CPUs and no GPU; `changes` replace any field."""
    fields: dict[str, Any] = {
        "name": name,
        "vendor": "none",
        "description": "two CPUs and no GPU",
        "sockets": 1,
        "cores_per_socket": 2,
        "threads_per_core": 1,
        "memory_mib": 2048,
        "sources": (Source(text="made up for tests", read=date(2026, 11, 20)),),
    }
    return Sku(**{**fields, **changes})


def make_gpu_sku(name: str = "gpu-node", **changes: Any) -> Sku:
    """A node model with two sockets of 56 cores, 2 TiB of memory and eight H100 GPUs."""
    fields: dict[str, Any] = {
        "description": "two sockets, eight GPUs",
        "sockets": 2,
        "cores_per_socket": 56,
        "threads_per_core": 2,
        "memory_mib": 2097152,
        "gpus": Gpus(model="H100", gres_type="h100", count=8, memory_mib=81559),
    }
    return make_sku(name, **{**fields, **changes})


SKU = make_sku()


def make_address(network: str, address: str, rail: int = 0) -> NodeAddress:
    """An address on one rail of a network."""
    return NodeAddress(network=network, rail=rail, address=IPv4Address(address))


def make_network(name: str, cidr: str, **changes: Any) -> Network:
    """A network named after its purpose; `changes` replace any field."""
    fields: dict[str, Any] = {"name": name, "purpose": NetworkPurpose(name), "cidr": IPv4Network(cidr)}
    return Network(**{**fields, **changes})


def make_node(name: str, address: int | str, *roles: NodeRole, **changes: Any) -> Node:
    """A node with this management address (a number: in 10.9.0.0/24); `changes` replace any field."""
    place = f"10.9.0.{address}" if isinstance(address, int) else address
    fields: dict[str, Any] = {
        "name": name,
        "fqdn": f"{name}.test.example",
        "roles": frozenset(roles or {NodeRole.WORKER}),
        "primary": NodeRole.HEAD in roles,
        "sku": SKU,
        "platform": Platform.CONTAINER,
        "os": DEBIAN_13,
        "addresses": (make_address("management", place),),
    }
    options = changes.pop("options", {})
    if "switch" in changes:
        switch = changes.pop("switch")
        fields["switches"] = () if switch is None else (switch,)
    return Node(**{**fields, **changes}).with_options(options)


def make_cluster(*nodes: Node, **changes: Any) -> Cluster:
    """A cluster of these nodes (default: head1, worker1, worker2) on 10.9.0.0/24."""
    default = (
        make_node("head1", 10, NodeRole.HEAD),
        make_node("worker1", 11),
        make_node("worker2", 12),
    )
    fields: dict[str, Any] = {
        "name": "test",
        "domain": "test.example",
        "path": Path("/nowhere/test.yaml"),
        "sha256": "0" * 64,
        "networks": {"management": make_network("management", "10.9.0.0/24")},
        "ssh": Ssh(user="admin"),
        "mirrors": Mirrors(),
        "burnin": Burnin(),
        "nodes": nodes or default,
    }
    return Cluster(**{**fields, **changes})

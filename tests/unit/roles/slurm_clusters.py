"""Clusters the munge, mariadb and slurm tests are written against, built by hand."""

from __future__ import annotations

from datetime import date
from ipaddress import IPv4Address, IPv4Network
from pathlib import Path

from rackwright.model.cluster import Cluster, LabSize, Network, Node, NodeAddress
from rackwright.model.settings import Burnin, Mirrors, Ssh
from rackwright.model.sku import Gpus, Sku, Source
from rackwright.model.types import NetworkPurpose, NodeRole, OsRelease, Platform
from rackwright.options import RoleOptions
from rackwright.roles.mariadb.options import MariadbOptions
from rackwright.roles.munge.options import MungeOptions
from rackwright.roles.slurm.options import SlurmOptions

_SOURCE = (Source(text="made up for the tests", read=date(2026, 11, 20)),)
LAB_SKU = Sku(
    name="lab-node",
    vendor="rackwright",
    description="Lab container",
    sockets=1,
    cores_per_socket=2,
    threads_per_core=1,
    memory_mib=2048,
    sources=_SOURCE,
)
HEAD_SKU = LAB_SKU.model_copy(
    update={"name": "head-1u", "sockets": 2, "cores_per_socket": 16, "memory_mib": 262144}
)
DGX_SKU = Sku(
    name="dgx-h100",
    vendor="NVIDIA",
    description="DGX H100",
    sockets=2,
    cores_per_socket=56,
    threads_per_core=2,
    memory_mib=2097152,
    gpus=Gpus(model="H100", gres_type="h100", count=8, memory_mib=81559),
    sources=_SOURCE,
)


def node(name: str, address: str, *roles: str, sku: Sku = LAB_SKU, **more: object) -> Node:
    """A node on the management network."""
    settings: dict[str, object] = {
        "platform": Platform.BARE_METAL,
        "os": OsRelease.DEBIAN_13,
        "primary": False,
        **more,
    }
    return Node(
        name=name,
        fqdn=f"{name}.example.org",
        roles=frozenset(NodeRole(role) for role in roles),
        sku=sku,
        addresses=(NodeAddress(network="mgmt", address=IPv4Address(address)),),
        **settings,
    )


def cluster(name: str, *nodes: Node, slurm: SlurmOptions | None = None, **others: RoleOptions) -> Cluster:
    """A cluster whose nodes carry the options of the roles they hold."""
    options: dict[str, RoleOptions] = {
        "munge": MungeOptions(),
        "mariadb": MariadbOptions(),
        "slurm": slurm or SlurmOptions(),
        **others,
    }
    return Cluster(
        name=name,
        domain="example.org",
        path=Path("/nowhere/cluster.yaml"),
        sha256="0" * 64,
        networks={
            "mgmt": Network(name="mgmt", purpose=NetworkPurpose.MANAGEMENT, cidr=IPv4Network("10.0.0.0/8"))
        },
        ssh=Ssh(user="admin"),
        mirrors=Mirrors(),
        burnin=Burnin(),
        nodes=tuple(_with_options(entry, options) for entry in nodes),
    )


def _with_options(entry: Node, options: dict[str, RoleOptions]) -> Node:
    held = {role: value for role, value in options.items() if entry.holds(*value.applies_to)}
    return entry.model_copy(update={"options": held})


def lab(slurm: SlurmOptions | None = None, workers: int = 2, network: str = "10.77.0") -> Cluster:
    """A head and some workers, all containers."""
    size: dict[str, object] = {
        "platform": Platform.CONTAINER,
        "lab": LabSize(cpus=2, memory_mib=2048),
        "rack": "r1",
    }
    return cluster(
        "lab",
        node("head1", f"{network}.10", "head", primary=True, **size),
        *(node(f"worker{i}", f"{network}.{10 + i}", "worker", **size) for i in range(1, workers + 1)),
        slurm=slurm,
    )


def dgx(slurm: SlurmOptions | None = None, os: OsRelease = OsRelease.DEBIAN_13) -> Cluster:
    """A head, two logins, 32 DGX H100 in four racks."""
    places: dict[str, object] = {"os": os}
    gpus = (
        node(
            f"gpu{i:03}",
            f"10.1.0.{i + 10}",
            "worker",
            sku=DGX_SKU,
            rack=f"r{(i - 1) // 8 + 1:02}",
            switch=f"leaf{(i - 1) // 8 + 1}",
            **places,
        )
        for i in range(1, 33)
    )
    return cluster(
        "superpod",
        node("head1", "10.1.1.1", "head", sku=HEAD_SKU, primary=True, **places),
        node("login1", "10.1.1.11", "login", sku=HEAD_SKU, **places),
        node("login2", "10.1.1.12", "login", sku=HEAD_SKU, **places),
        *gpus,
        slurm=slurm,
    )


def small(slurm: SlurmOptions | None = None) -> Cluster:
    """Three machines, the head a worker as well."""
    return cluster(
        "small",
        node("node1", "10.2.0.1", "head", "worker", "login", sku=HEAD_SKU, primary=True),
        node("node2", "10.2.0.2", "worker", sku=HEAD_SKU),
        node("node3", "10.2.0.3", "worker", sku=HEAD_SKU),
        slurm=slurm,
    )

"""Clusters the munge, mariadb and slurm tests are written against, built by hand."""

from __future__ import annotations

from rackwright.model.cluster import Cluster, LabSize, Node
from rackwright.model.options import RoleOptions
from rackwright.model.sku import Sku
from rackwright.model.types import NodeRole, Platform
from rackwright.osfamily.known import OsRelease
from rackwright.roles.hpc_stack.options import HpcStackOptions
from rackwright.roles.mariadb.options import MariadbOptions
from rackwright.roles.munge.options import MungeOptions
from rackwright.roles.slurm.options import SlurmOptions
from tests.factories import DEBIAN_13, make_cluster, make_gpu_sku, make_network, make_node, make_sku

LAB_SKU = make_sku("lab-node")
HEAD_SKU = make_sku("head-1u", sockets=2, cores_per_socket=16, memory_mib=262144)
DGX_SKU = make_gpu_sku("dgx-h100")


def node(name: str, address: str, *roles: str, sku: Sku = LAB_SKU, **more: object) -> Node:
    """A node on bare metal; `more` replaces any field."""
    settings: dict[str, object] = {"platform": Platform.BARE_METAL, "primary": False, **more}
    return make_node(name, address, *(NodeRole(role) for role in roles), sku=sku, **settings)


def cluster(name: str, *nodes: Node, slurm: SlurmOptions | None = None, **others: RoleOptions) -> Cluster:
    """A cluster whose nodes carry the options of the roles they hold."""
    options: dict[str, RoleOptions] = {
        "munge": MungeOptions(),
        "mariadb": MariadbOptions(),
        "slurm": slurm or SlurmOptions(),
        **others,
    }
    return make_cluster(
        *(entry.with_options(options) for entry in nodes),
        name=name,
        networks={"management": make_network("management", "10.0.0.0/8")},
    )


def lab(
    slurm: SlurmOptions | None = None,
    workers: int = 2,
    network: str = "10.77.0",
    leaves: tuple[str | None, ...] = (),
) -> Cluster:
    """A head and some workers, all containers; `leaves` are the workers' switches."""
    switches = [*leaves, *[None] * workers]
    size: dict[str, object] = {
        "platform": Platform.CONTAINER,
        "lab": LabSize(cpus=2, memory_mib=2048),
        "rack": "r1",
    }
    return cluster(
        "lab",
        node("head1", f"{network}.10", "head", primary=True, **size),
        *(
            node(f"worker{i}", f"{network}.{10 + i}", "worker", switch=switches[i - 1], **size)
            for i in range(1, workers + 1)
        ),
        slurm=slurm,
        hpc_stack=HpcStackOptions(),
    )


def dgx(slurm: SlurmOptions | None = None, os: OsRelease = DEBIAN_13) -> Cluster:
    """A head, two logins, 32 DGX H100 in four racks."""
    places: dict[str, object] = {"os": os}
    gpus = (
        node(
            f"gpu{i:03}",
            f"10.1.0.{i + 10}",
            "worker",
            sku=DGX_SKU,
            rack=f"r{(i - 1) // 8 + 1:02}",
            switches=(f"leaf{(i - 1) // 8 + 1}",),
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

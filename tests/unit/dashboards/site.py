"""A cluster that has everything a dashboard can show: GPUs, both kinds of fabric, NFS, BMCs, Slurm."""

from __future__ import annotations

from typing import Any, ClassVar

from rackwright.model.cluster import Cluster, Node
from rackwright.model.interfaces import ChecksNodeHealth
from rackwright.model.monitoring import CollectsMetrics, ExposesMetrics, Scrape
from rackwright.model.options import RoleOptions
from rackwright.model.sku import Gpus, Nic
from rackwright.model.storage import Filesystem, FilesystemKind, FilesystemPurpose
from rackwright.model.types import LinkKind, NetworkPurpose, NodeRole, Platform
from tests.factories import make_cluster, make_gpu_sku, make_network, make_node

EVERY_NODE = (Scrape("node", 9100),)
WORKERS = (*EVERY_NODE, Scrape("dcgm", 9400))
HEAD = (
    *EVERY_NODE,
    Scrape("prometheus", 9090),
    Scrape("slurm", 9341, names_nodes=True),
    Scrape("ipmi", 9290, names_nodes=True),
)
NFS = Filesystem(name="home", kind=FilesystemKind.NFS, purpose=FilesystemPurpose.HOME, path="/home")


SKU = make_gpu_sku(
    gpus=Gpus(model="H100", gres_type="h100", count=8, memory_mib=81559, power_watts=700),
    nics=(Nic(purpose=NetworkPurpose.FABRIC, kind=LinkKind.INFINIBAND, speed_gbps=400, rail=0),),
)


class Serves(RoleOptions, ExposesMetrics, ChecksNodeHealth):
    """A role that serves these jobs and checks health."""

    health_program: ClassVar[str] = "/usr/sbin/health"
    served: tuple[Scrape, ...] = ()

    def scrapes(self, cluster: Cluster, node: Node) -> tuple[Scrape, ...]:
        return self.served


class Collects(RoleOptions, CollectsMetrics):
    """The role of Prometheus."""

    password_file: ClassVar[str] = "/nowhere/password"
    plain_http: bool = True
    interval_seconds: int = 30
    url: str = "http://10.9.0.10:9090"

    def metrics_url(self, cluster: Cluster, node: Node) -> str:
        return self.url


def large(workers: int = 4, racks: int = 2, **changes: Any) -> Cluster:
    """A head and workers with eight GPUs each, in racks, each rack with a leaf of its own."""
    head = make_node(
        "head1",
        10,
        NodeRole.HEAD,
        platform=Platform.BARE_METAL,
        rack="r0",
        position=1,
        switch="leaf0",
        served=(NFS,),
        options={"exporters": Serves(served=HEAD), "prometheus": Collects()},
    )
    others = [
        make_node(
            f"gpu{number + 1}",
            11 + number,
            platform=Platform.BARE_METAL,
            sku=SKU,
            rack=f"r{1 + number % racks}",
            position=1 + number // racks,
            switch=f"leaf{1 + number % racks}",
            filesystems=(NFS,),
            options={"exporters": Serves(served=WORKERS)},
        )
        for number in range(workers)
    ]
    networks = {
        "management": make_network("management", "10.9.0.0/24"),
        "fabric": make_network("fabric", "10.10.0.0/16", kind=LinkKind.INFINIBAND),
        "storage": make_network("storage", "10.11.0.0/16", kind=LinkKind.ROCE),
    }
    return make_cluster(head, *others, **{"networks": networks, **changes})

"""Clusters with Slurm's daemons in pods, built by hand."""

from __future__ import annotations

from rackwright.model.cluster import Cluster, LabSize, Node
from rackwright.model.types import NodeRole, Platform, Workload
from rackwright.roles.access.options import AccessOptions
from rackwright.roles.kubernetes.options import KubernetesOptions
from rackwright.roles.slurm.options import SlurmOptions
from rackwright.roles.slurm_on_kubernetes.options import SlurmOnKubernetesOptions
from tests.factories import make_cluster, make_gpu_sku, make_network, make_node, make_sku

KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIHbmjBsAwCQnyYbHLuHFB40jxwRr3rIjeh4BbSwD6fBM ada"
LAB_SKU = make_sku("lab-node")
GPU_SKU = make_gpu_sku("dgx-h100")


def cluster(
    given: dict | None = None,
    slurm: dict | None = None,
    version: str = "1.20.2",
    nodes: tuple[Node, ...] = (),
) -> Cluster:
    """A control plane and two workers of a lab, unless other nodes are given."""
    options = {
        "access": AccessOptions.model_validate(
            {"users": [{"name": "ada", "uid": 3000, "authorized_keys": [KEY]}]}
        ),
        "kubernetes": KubernetesOptions.model_validate({"version": version}),
        "slurm": SlurmOptions.model_validate(
            {
                "daemons": "pods",
                "accounts": {"research": {}},
                "users": {"ada": {"default_account": "research"}},
                **(slurm or {}),
            }
        ),
        "slurm_on_kubernetes": SlurmOnKubernetesOptions.model_validate(given or {}),
    }
    return make_cluster(
        *(node.with_options(options) for node in nodes or lab_nodes()),
        name="lab",
        networks={"management": make_network("management", "10.0.0.0/8")},
    )


def lab_nodes() -> tuple[Node, ...]:
    """Containers."""
    size = {"platform": Platform.CONTAINER, "lab": LabSize(cpus=2, memory_mib=2048)}
    workers = (
        make_node(
            f"worker{i}", f"10.79.0.{10 + i}", workload=Workload.SLURM_ON_KUBERNETES, sku=LAB_SKU, **size
        )
        for i in (1, 2)
    )
    return (make_node("cp1", "10.79.0.10", NodeRole.HEAD, sku=LAB_SKU, **size), *workers)


def dgx_nodes(count: int = 4, workload: Workload | None = Workload.SLURM_ON_KUBERNETES) -> tuple[Node, ...]:
    """A head and DGX H100 on bare metal, and one worker of another workload."""
    metal = {"platform": Platform.BARE_METAL}
    workers = (
        make_node(f"gpu{i:03}", f"10.1.0.{10 + i}", workload=workload, sku=GPU_SKU, **metal)
        for i in range(1, count + 1)
    )
    other = make_node("ray1", "10.1.0.200", workload=Workload.RAY, sku=GPU_SKU, **metal)
    head = make_node("head1", "10.1.0.1", NodeRole.HEAD, sku=make_sku("head-1u", memory_mib=262144), **metal)
    return (head, *workers, other)

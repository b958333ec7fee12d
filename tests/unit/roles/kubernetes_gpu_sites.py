"""Sites of the tests of roles that put objects into Kubernetes."""

from __future__ import annotations

from typing import Any

from rackwright.model.cluster import Cluster, LabSize, Node
from rackwright.model.options import RoleOptions
from rackwright.model.sku import Architecture, Gpus, Sku
from rackwright.model.types import NodeRole, Platform, Workload
from rackwright.roles.containerd.options import ContainerdOptions
from rackwright.roles.kubernetes.options import KubernetesOptions
from rackwright.roles.nvidia_container_toolkit.options import NvidiaContainerToolkitOptions
from rackwright.roles.nvidia_driver.options import NvidiaDriverOptions
from tests.factories import make_cluster, make_gpu_sku, make_node

H100 = Gpus(
    model="H100-SXM5-80GB",
    gres_type="h100",
    count=8,
    memory_mib=81559,
    architecture=Architecture.HOPPER,
    compute_capability="9.0",
    mig="h100-80gb",
)
SKU: Sku = make_gpu_sku("hgx-h100", gpus=H100)
RUNTIME = ContainerdOptions(
    on=(NodeRole.HEAD, NodeRole.WORKER), nvidia_runtime="/usr/bin/nvidia-container-runtime"
)
STACK: dict[str, RoleOptions] = {
    "containerd": RUNTIME,
    "nvidia_driver": NvidiaDriverOptions(),
    "nvidia_container_toolkit": NvidiaContainerToolkitOptions(),
}


def gpu_cluster(
    *,
    version: str = "1.34.2",
    mig: dict[str, int] | None = None,
    simulated: bool = False,
    stack: dict[str, RoleOptions] | None = None,
    more: tuple[Node, ...] = (),
    **roles: RoleOptions,
) -> Cluster:
    """head1, and gpu1 and gpu2 with eight H100s each, under Kubernetes with these roles."""
    options = {
        **(STACK if stack is None else stack),
        "kubernetes": KubernetesOptions(version=version),
        **roles,
    }
    shared: dict[str, Any] = {"platform": Platform.BARE_METAL, "options": options}
    if simulated:
        shared |= {
            "platform": Platform.CONTAINER,
            "lab": LabSize(cpus=2, memory_mib=2048, gpus="simulated"),
        }
    workers = [
        make_node(
            f"gpu{number}",
            10 + number,
            sku=SKU,
            mig=mig or {},
            workload=Workload.KUBERNETES,
            rack=f"r{number}",
            **shared,
        )
        for number in (1, 2)
    ]
    return make_cluster(make_node("head1", 10, NodeRole.HEAD, **shared), *workers, *more)

"""Sites of the tests of the kubernetes role."""

from __future__ import annotations

from typing import Any

from rackwright.model.cluster import Cluster
from rackwright.model.types import NodeRole, Platform, Workload
from rackwright.roles.containerd.options import ContainerdOptions
from rackwright.roles.kubernetes.options import KubernetesOptions
from tests.factories import make_cluster, make_gpu_sku, make_node

RUNTIME = ContainerdOptions(on=(NodeRole.HEAD, NodeRole.WORKER))


def kubernetes(platform: Platform = Platform.BARE_METAL, heads: int = 1, **given: Any) -> Cluster:
    """Heads cp1 ..., and two GPU workers, of which gpu2 is in rack r2."""
    options = {"containerd": RUNTIME, "kubernetes": KubernetesOptions(**{"version": "1.34.2", **given})}
    planes = [
        make_node(
            f"cp{number}", 9 + number, NodeRole.HEAD, platform=platform, primary=number == 1, options=options
        )
        for number in range(1, heads + 1)
    ]
    workers = [
        make_node(
            f"gpu{number}",
            20 + number,
            platform=platform,
            sku=make_gpu_sku(),
            rack=f"r{number}",
            workload=Workload.KUBERNETES,
            options=options,
        )
        for number in (1, 2)
    ]
    return make_cluster(*planes, *workers)

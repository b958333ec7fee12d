"""The files of the ray_on_slurm role. Pure functions."""

from __future__ import annotations

from rackwright.model.cluster import Cluster, Node
from rackwright.model.types import NodeRole, Workload
from rackwright.render import render
from rackwright.roles.ray_on_slurm import places
from rackwright.roles.ray_on_slurm.options import RayOnSlurmOptions


def workers(cluster: Cluster) -> tuple[Node, ...]:
    """Nodes whose jobs may run Ray, in the order of the cluster file."""
    return tuple(node for node in cluster.running("ray_on_slurm") if node.holds(NodeRole.WORKER))


def gpus_per_node(cluster: Cluster) -> int:
    """What the example asks for: the GPUs of a node, where all nodes for jobs have as many; MIG instances are not counted."""
    counts = {
        0 if node.sku.gpus is None or node.mig else node.sku.gpus.count
        for node in cluster.nodes
        if node.holds(NodeRole.WORKER) and node.serves(frozenset({Workload.SLURM}))
    }
    return counts.pop() if len(counts) == 1 else 0


def programs(options: RayOnSlurmOptions) -> dict[str, str]:
    """(text by path) of programs, mode 755."""
    return {
        places.RAY_JOB: render(
            "ray_on_slurm/ray-job.j2",
            python=f"{places.CURRENT}/bin/python",
            environment=places.CURRENT,
            example=places.EXAMPLE,
            store_fraction=options.object_store_fraction,
            percent=round(options.object_store_fraction * 100),
            reserved_mib=options.reserved_memory_mib,
            start_seconds=options.start_seconds,
        )
    }


def files(cluster: Cluster) -> dict[str, str]:
    """(text by path) of files."""
    return {
        places.EXAMPLE: render(
            "ray_on_slurm/ray.sbatch.j2",
            path=places.EXAMPLE,
            ray_job=places.RAY_JOB,
            gpus=gpus_per_node(cluster),
        )
    }

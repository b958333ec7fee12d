"""Finds the workload manager of a cluster from its roles."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rackwright.model.cluster import Cluster, Node
from rackwright.model.interfaces import RunsWorkloadManager
from rackwright.model.types import NodeRole, WorkloadManager
from rackwright.workload.protocol import Manager
from rackwright.workload.ray.control import Ray
from rackwright.workload.slurm.control import Slurm

if TYPE_CHECKING:
    from rackwright.ssh import RootShell

_MANAGERS: dict[WorkloadManager, type[Manager]] = {
    WorkloadManager.SLURM: Slurm,
    WorkloadManager.RAY: Ray,
}


def declared_on(node: Node) -> type[Manager] | None:
    """The manager that some role runs on a node, or None."""
    role = node.offers(RunsWorkloadManager)
    return _MANAGERS[role.workload_manager] if role is not None else None


def runs_jobs(node: Node) -> bool:
    """Whether a workload manager starts jobs on a node."""
    return node.holds(NodeRole.WORKER) and declared_on(node) is not None


def manager_of(cluster: Cluster, shell: RootShell) -> Manager | None:
    """The manager of a cluster, reached through `shell`; None if no role runs one."""
    found = next(filter(None, map(declared_on, cluster.nodes)), None)
    return found(cluster, shell) if found is not None else None

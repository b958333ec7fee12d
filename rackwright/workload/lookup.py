"""Finds the workload managers of a cluster from its roles."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rackwright.model.cluster import Cluster, Node
from rackwright.model.interfaces import RunsWorkloadManager
from rackwright.model.types import NodeRole, WorkloadManager
from rackwright.workload.kubernetes.control import Kubernetes
from rackwright.workload.protocol import Manager, OneManager
from rackwright.workload.ray.control import Ray
from rackwright.workload.several import Several
from rackwright.workload.slurm.control import Slurm
from rackwright.workload.slurm.pods import RunsSlurmPods
from rackwright.workload.slurm_in_pods.control import SlurmInPods

if TYPE_CHECKING:
    from rackwright.ssh import RootShell

_MANAGERS: dict[WorkloadManager, type[OneManager]] = {
    WorkloadManager.SLURM: Slurm,
    WorkloadManager.KUBERNETES: Kubernetes,
    WorkloadManager.RAY: Ray,
    WorkloadManager.SLURM_IN_PODS: SlurmInPods,
}


def manager_role(node: Node) -> RunsWorkloadManager | None:
    """Options of the role whose workload manager drains a node, or None."""
    managers = (given for given in node.options.values() if isinstance(given, RunsWorkloadManager))
    return next((given for given in managers if given.manages_nodes), None)


def kind_on(node: Node) -> WorkloadManager | None:
    """Which manager some role runs on a node, or None. On nodes with Slurm's pods it is Slurm, whose jobs they are."""
    role = manager_role(node)
    if role is None:
        return None
    pods = node.offers(RunsSlurmPods) if node.holds(NodeRole.WORKER) else None
    if pods is not None and pods.controller is not None:
        return WorkloadManager.SLURM_IN_PODS
    return role.workload_manager


def declared_on(node: Node) -> type[OneManager] | None:
    """The manager that some role runs on a node, or None."""
    kind = kind_on(node)
    return _MANAGERS[kind] if kind is not None else None


def runs_jobs(node: Node) -> bool:
    """Whether a workload manager starts jobs on a node."""
    return node.holds(NodeRole.WORKER) and declared_on(node) is not None


def manager_of(cluster: Cluster, shell: RootShell) -> Manager | None:
    """The manager of a cluster, reached through `shell`; None if no role runs one, `Several` if nodes have different ones."""
    kinds = {node.name: kind for node in cluster.nodes if (kind := kind_on(node)) is not None}
    found: dict[WorkloadManager, OneManager] = {
        kind: _MANAGERS[kind](cluster, shell) for kind in dict.fromkeys(kinds.values())
    }
    if len(found) < 2:
        return next(iter(found.values()), None)
    return Several({name: found[kind] for name, kind in kinds.items()})

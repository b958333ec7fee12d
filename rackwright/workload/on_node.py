"""The workload manager as one node sees it. Standard library only, Python 3.9: runs on nodes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol

from rackwright.workload.kubernetes.on_node import KubernetesOnNode
from rackwright.workload.slurm.on_node import SlurmOnNode
from rackwright.workload.slurm_in_pods.on_node import SlurmInPodsOnNode
from rackwright.workload.states import DrainShare, NodeState


class ManagerOnNode(Protocol):
    """Queries and commands about this node only; each method raises NoAnswer if the manager does not reply."""

    def state(self) -> NodeState:
        """This node."""
        ...

    def job_among(self, command_lines: Iterable[str]) -> bool:
        """Whether a job runs here; without processes that hint at one, the manager is not asked."""
        ...

    def jobs_among(self, command_lines: Iterable[str]) -> frozenset[str]:
        """Ids of the jobs that these processes of the node belong to."""
        ...

    def jobs(self) -> dict[str, int]:
        """Jobs that the manager has on this node, starting and ending ones too: the user's number by the job's id."""
        ...

    def shares(self) -> list[DrainShare]:
        """The groups of this node, and the other nodes in them that health checks have drained."""
        ...

    def drain(self, reason: str) -> None:
        """Drain the node: no new job starts, running jobs continue."""
        ...

    def one_too_many(self, percent: float) -> bool:
        """Whether this node, just drained, must return because others were drained at the same time."""
        ...

    def explain(self, reason: str) -> None:
        """Change the reason of the drain."""
        ...

    def resume(self) -> None:
        """Resume the node."""
        ...

    def reboot(self, reason: str) -> None:
        """Reboot through the manager, so that it expects the node back; a drain outlives the reboot."""
        ...


_KNOWN: dict[str, Callable[[str], ManagerOnNode]] = {
    "slurm": SlurmOnNode,
    "kubernetes": KubernetesOnNode,
    "slurm-in-pods": SlurmInPodsOnNode,
}
"""By name in rackwright.model.types.WorkloadManager, which nodes do not have."""
BEFORE = "slurm"
"""What a node has whose files do not name one: those of earlier versions."""


def manager_on(node: str, manager: str | None) -> ManagerOnNode:
    """The manager of this node, as the files that the node was given name it; ValueError for an unknown one."""
    name = manager or BEFORE
    if name not in _KNOWN:
        raise ValueError(f"{name!r} is not a workload manager that this version knows")
    return _KNOWN[name](node)

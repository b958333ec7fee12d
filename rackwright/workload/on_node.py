"""The workload manager as one node sees it. Standard library only, Python 3.9: runs on nodes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from rackwright.workload.slurm.on_node import SlurmOnNode
from rackwright.workload.states import DrainShare, NodeState


class ManagerOnNode(Protocol):
    """Asked and ordered about this node alone; each method raises NoAnswer when the manager does not reply."""

    def state(self) -> NodeState:
        """This node."""
        ...

    def job_among(self, command_lines: Iterable[str]) -> bool:
        """Whether one of this node's processes belongs to a job: known here, so that the manager need not be asked."""
        ...

    def jobs_among(self, command_lines: Iterable[str]) -> frozenset[str]:
        """Ids of the jobs that these processes of the node belong to."""
        ...

    def jobs(self) -> dict[str, int]:
        """Jobs that the manager has on this node, starting and ending ones too: the user's number by the job's id."""
        ...

    def shares(self) -> list[DrainShare]:
        """The groups this node is in, and what health checks have drained in them besides it."""
        ...

    def drain(self, reason: str) -> None:
        """No new job starts here; those that run go on."""
        ...

    def one_too_many(self, percent: float) -> bool:
        """Whether this node, which was just drained, must return because others drained at the same time."""
        ...

    def explain(self, reason: str) -> None:
        """Another reason for the same drain."""
        ...

    def resume(self) -> None:
        """Back in service."""
        ...

    def reboot(self, reason: str) -> None:
        """Through the manager, so that it expects the node back; a drain outlives the reboot."""
        ...


def manager_on(node: str) -> ManagerOnNode:
    """The manager of this node. Slurm is the only one so far; a second is chosen by what the node was given."""
    return SlurmOnNode(node)

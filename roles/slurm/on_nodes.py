"""What the slurm role does on nodes, as other roles and the engine see it; nothing where its daemons run in pods."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, cast

from pydantic import Field

from rackwright.model.interfaces import (
    GoesFirst,
    ManagesImexChannels,
    ReservesMemory,
    RunsWorkloadManager,
    UsesAccountingDatabase,
)
from rackwright.model.options import Frozen
from rackwright.model.services import Listener, Listens
from rackwright.model.types import Workload

if TYPE_CHECKING:
    from rackwright.model.cluster import Node
    from rackwright.roles.slurm.options import SlurmOptions
    from rackwright.roles.slurm.sections import Accounting

_CONTROLLER_MIB = 2048


class Placed(Frozen):
    """Where the daemons run."""

    daemons: Literal["nodes", "pods"] = Field(
        default="nodes",
        description="nodes: as services of the operating system. pods: in Kubernetes, by the role slurm_on_kubernetes, on "
        "the workers with `workload: slurm-on-kubernetes`; this role then changes nothing on nodes.",
    )


class SlurmOnNodes(
    GoesFirst, Listens, ManagesImexChannels, ReservesMemory, UsesAccountingDatabase, RunsWorkloadManager
):
    """Base of the options of Slurm."""

    if TYPE_CHECKING:
        accounting: Accounting
        controller_memory_mib: int | None
        daemons: Literal["nodes", "pods"]
        switch_type: str

    @property
    def manages_nodes(self) -> bool:
        """Not in pods: those who look for a manager find it through Kubernetes (rackwright.workload.lookup.kind_on)."""
        return self.daemons == "nodes"

    def serves_on(self, node: Node) -> bool:
        """Whether the node has the workload; with pods the primary head alone, which knows the settings."""
        if self.daemons == "pods":
            return node.primary and node.serves({Workload.SLURM_ON_KUBERNETES})
        return node.serves({Workload.SLURM})

    def goes_first(self, node: Node) -> bool:
        """slurmdbd's node does: slurmctld needs its answers."""
        return self.uses_database_on(node)

    def uses_database_on(self, node: Node) -> bool:
        """Where slurmdbd runs."""
        return self.manages_nodes and self.accounting.runs_slurmdbd(node)

    @property
    def manages_imex_channels(self) -> bool:
        """Whether slurmd makes the IMEX channels of each job."""
        return self.manages_nodes and self.switch_type == "nvidia_imex"

    def reserved_mib(self, node: Node) -> int:
        """Memory of slurmctld and slurmdbd on this node."""
        from rackwright.roles.slurm.layout import hardware
        from rackwright.roles.slurm.placement import runs_slurmctld

        if not self.manages_nodes:
            return 0
        share = self.controller_memory_mib
        if share is None:
            share = min(_CONTROLLER_MIB, hardware(node).memory_mib // 16)
        return (share if runs_slurmctld(node, cast("SlurmOptions", self)) else 0) + (
            share // 2 if self.accounting.runs_slurmdbd(node) else 0
        )

    def listeners(self, node: Node) -> tuple[Listener, ...]:
        """Daemons, and steps of jobs."""
        from rackwright.roles.slurm.listening import listeners_of

        return listeners_of(cast("SlurmOptions", self), node) if self.manages_nodes else ()

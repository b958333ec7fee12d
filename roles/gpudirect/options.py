"""Options of the gpudirect role."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import ClassVar

from pydantic import Field

from rackwright.errors import RackwrightError
from rackwright.lock.for_roles import Trouble, has_stack, lock_problems
from rackwright.lock.lock_file import read_lock
from rackwright.model.cluster import Cluster, Node
from rackwright.model.options import RoleOptions
from rackwright.model.types import NodeRole


class GpudirectOptions(RoleOptions):
    """How NICs reach GPU memory."""

    applies_to: ClassVar[frozenset[NodeRole]] = frozenset({NodeRole.WORKER})
    moved: ClassVar[Mapping[str, str]] = {"iommu": "roles.kernel.iommu", "acs": "roles.kernel.acs"}

    peermem: bool = Field(
        default=False,
        description="Load nvidia-peermem: only where dma-buf cannot be (proprietary modules). It needs the "
        "peer-memory interface of DOCA-OFED; inbox RDMA drivers do not have it.",
    )

    def runs_on(self, node: Node) -> bool:
        """On nodes with NVIDIA's GPUs."""
        return super().runs_on(node) and has_stack(node)

    def problems(self, cluster: Cluster) -> Iterator[Trouble]:
        """A role without GPUs, or nvidia-peermem without what it builds on."""
        if not cluster.running("gpudirect"):
            yield "", "No node of the role gpudirect has NVIDIA's GPUs.", "remove the section"
        if self.peermem and (cluster.gpu_stack is None or cluster.gpu_stack.ofed == "inbox"):
            yield (
                "peermem",
                "nvidia-peermem needs DOCA-OFED's peer-memory interface, but the RDMA drivers are inbox.",
                "leave peermem out (dma-buf needs neither), or set `gpu_stack.ofed: doca`",
            )

    def lock_problems(self, cluster: Cluster) -> Iterator[Trouble]:
        """dma-buf with proprietary modules."""
        if self.peermem or cluster.gpu_stack is None or any(lock_problems(cluster, "gpudirect")):
            return
        try:
            lock = read_lock(cluster)
        except RackwrightError:
            return
        for node in cluster.running("gpudirect", self):
            group = lock.group_of(node)
            if group is not None and not group.open_modules:
                yield (
                    "peermem",
                    f"{node.name} is locked to proprietary kernel modules, which do not support dma-buf.",
                    "set `peermem: true` (with DOCA-OFED), or remove the role from these nodes",
                )
                return

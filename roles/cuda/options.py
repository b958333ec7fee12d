"""Options of the cuda role."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from pydantic import Field

from rackwright.lock.content import GroupLock
from rackwright.lock.cuda_home import cuda_home
from rackwright.lock.for_roles import Trouble
from rackwright.lock.stack_options import StackOptions
from rackwright.model.cluster import Cluster
from rackwright.model.interfaces import SetsUpGpuRepository


class CudaOptions(StackOptions):
    """The locked CUDA toolkit on nodes with declared NVIDIA GPUs."""

    role: ClassVar[str] = "cuda"
    parts: ClassVar[tuple[str, ...]] = ("cuda",)

    profile: bool = Field(
        default=True,
        description="Set PATH and CUDA_HOME for login shells; false where environment modules do that.",
    )

    def problems(self, cluster: Cluster) -> Iterator[Trouble]:
        """A role without GPU nodes, or without a package source."""
        nodes, stack = self.nodes(cluster), cluster.gpu_stack
        if not nodes:
            yield "", "No node of the role cuda has NVIDIA's GPUs.", "remove the section"
        if stack is None or stack.source == "distribution":
            return
        if any(node.offers(SetsUpGpuRepository) is None for node in nodes):
            yield (
                "",
                "The toolkit comes from the repository of the role nvidia_driver, which is not declared.",
                "add a section nvidia_driver",
            )


def tools(group: GroupLock) -> str:
    """The folder of nvcc and its like."""
    return "/usr/bin" if group.source == "distribution" else f"{cuda_home(group)}/bin"

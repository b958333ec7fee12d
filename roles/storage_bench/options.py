"""Options of the storage_bench role."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from pydantic import Field

from rackwright.model.cluster import Cluster, Node
from rackwright.model.options import RoleOptions
from rackwright.model.services import Listener, Listens
from rackwright.model.storage_bench import RunsStorageBench
from rackwright.model.strings import NodePath
from rackwright.model.types import NodeRole
from rackwright.osfamily.names import names

OS_PYTHON = "/usr/bin/python3"
Problem = tuple[str, str, str | None]


class StorageBenchOptions(RoleOptions, RunsStorageBench, Listens):
    """fio, and PyTorch for the checkpoint stage."""

    applies_to: ClassVar[frozenset[NodeRole]] = frozenset({NodeRole.WORKER})

    port: int = Field(
        default=18850,
        ge=1024,
        le=65534,
        description="TCP port on the first node that keeps all ranks in step; PyTorch uses the next port. Open while a "
        "bench runs.",
    )
    torch: bool = Field(
        default=False,
        description="The OS's PyTorch, for the checkpoint stage. It has to be 2.2 or newer: Debian 13 has 2.6, Debian "
        "12 has 1.13, which is too old (packages python3-torch, read 2026-11-26).",
    )
    python: NodePath = Field(
        default=OS_PYTHON,
        description="Python with the site's own PyTorch, e.g. /software/torch/bin/python; instead of `torch`.",
    )

    @property
    def has_torch(self) -> bool:
        """Whether the nodes are declared to have PyTorch."""
        return self.torch or self.python != OS_PYTHON

    def runs_on(self, node: Node) -> bool:
        """Where a filesystem is declared that can be written to."""
        return super().runs_on(node) and any(not one.read_only for one in node.filesystems)

    def listeners(self, node: Node) -> tuple[Listener, ...]:
        """While a bench runs."""
        return (Listener("python3", (self.port, self.port + 1)),)

    def packages(self, node: Node) -> tuple[str, ...]:
        """What is installed on a node."""
        return (
            *names(node.family, "fio").packages,
            *(names(node.family, "torch").packages if self.torch else ()),
        )

    def problems(self, cluster: Cluster) -> Iterator[Problem]:
        """PyTorch where the distribution has none."""
        if not self.torch:
            return
        without = [
            node
            for node in cluster.running("storage_bench", self)
            if not names(node.family, "torch").packages
        ]
        if without:
            yield (
                "torch",
                f"{without[0].os} has no PyTorch package ({without[0].name}).",
                "install it into a folder and name its Python, e.g. `python: /software/torch/bin/python`",
            )

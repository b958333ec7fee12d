"""Options of the persistence role."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from pydantic import Field

from rackwright.lock.content import GroupLock
from rackwright.lock.for_roles import Trouble
from rackwright.lock.stack_options import StackOptions
from rackwright.model.cluster import Cluster, Node
from rackwright.model.interfaces import WritesUnitFiles


class PersistenceOptions(StackOptions, WritesUnitFiles):
    """NVIDIA's locked persistence daemon on nodes with declared NVIDIA GPUs."""

    role: ClassVar[str] = "persistence"
    parts: ClassVar[tuple[str, ...]] = ("persistenced",)

    verbose: bool = Field(default=False, description="Log to the journal what it does with each GPU.")

    def problems(self, cluster: Cluster) -> Iterator[Trouble]:
        """A role that has nothing to do."""
        if not self.nodes(cluster):
            yield "", "No node of the role persistence has NVIDIA's GPUs.", "remove the section"

    def unit_files(self, node: Node) -> tuple[str, ...]:
        """How the daemon starts."""
        return ("/etc/systemd/system/nvidia-persistenced.service.d/90-rackwright.conf",)


def user(group: GroupLock) -> str:
    """The account its package creates: Debian's package names it differently from NVIDIA's.

    Sources: nvidia-persistenced's postinst in bookworm (`adduser --system nvpd`), read 2026-11-21; NVIDIA's
    package: README of NVIDIA/nvidia-persistenced and init/systemd/nvidia-persistenced.service.template.
    """
    return "nvpd" if group.source == "distribution" else "nvidia-persistenced"

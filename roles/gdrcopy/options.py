"""Options of the gdrcopy role."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from pydantic import Field

from rackwright.lock.for_roles import has_stack
from rackwright.model.cluster import Cluster, Node
from rackwright.model.interfaces import HoldsPackages
from rackwright.model.options import RoleOptions
from rackwright.model.types import NodeRole
from rackwright.osfamily.names import names


class GdrcopyOptions(RoleOptions, HoldsPackages):
    """gdrdrv built by DKMS, its library and, if asked for, its tests.

    NVIDIA publishes GDRCopy's packages as files (developer.download.nvidia.com/compute/redist/gdrcopy/, read
    2026-11-21), so a site puts them into its own repository and declares their version here.
    """

    applies_to: ClassVar[frozenset[NodeRole]] = frozenset({NodeRole.WORKER, NodeRole.LOGIN})

    version: str = Field(
        default="2.5.1-1",
        pattern=r"^[0-9][0-9A-Za-z.+~-]*$",
        description="Exact package version of all its packages; held.",
    )
    tests: bool = Field(
        default=False,
        description="gdrcopy-tests too (gdrcopy_sanity, gdrcopy_copybw); it needs CUDA's runtime.",
    )

    def runs_on(self, node: Node) -> bool:
        """On nodes with NVIDIA's GPUs."""
        return super().runs_on(node) and has_stack(node)

    def held_packages(self, node: Node) -> tuple[str, ...]:
        """GDRCopy's own, at any version."""
        software = ("gdrcopy", "gdrcopy-tests") if self.tests else ("gdrcopy",)
        found = (package for name in software for package in names(node.family, name).packages)
        return tuple(package.partition("=")[0] for package in found)

    def problems(self, cluster: Cluster) -> Iterator[tuple[str, str, str | None]]:
        """A role without GPUs."""
        if not cluster.running("gdrcopy"):
            yield "", "No node of the role gdrcopy has NVIDIA's GPUs.", "remove the section"

"""Options of the mig role; the layout itself is the node's `mig:`, which Slurm and the checks read too."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import ClassVar, Literal

from pydantic import Field, field_validator

from rackwright.catalog.mig import profiles_of
from rackwright.model.cluster import Cluster, Node
from rackwright.model.interfaces import HoldsPackages
from rackwright.model.options import RoleOptions
from rackwright.model.ranges import fold
from rackwright.model.text import mistake
from rackwright.model.types import NodeRole

_UNIT = re.compile(r"[A-Za-z0-9@_.:-]+\.service")


def _has_display(node: Node) -> bool:
    return node.sku.gpus is not None and node.sku.gpus.display_pci_id is not None


class MigOptions(RoleOptions, HoldsPackages):
    """Which tool partitions the GPUs, and which services must release them meanwhile."""

    applies_to: ClassVar[frozenset[NodeRole]] = frozenset({NodeRole.WORKER, NodeRole.LOGIN})

    tool: Literal["nvidia-smi", "mig-parted"] = Field(
        default="nvidia-smi",
        description="nvidia-smi comes with the driver; mig-parted is NVIDIA's own tool for layouts, in the package "
        "nvidia-mig-manager, which NVIDIA publishes as files and not in its repositories.",
    )
    version: str | None = Field(
        default=None,
        pattern=r"^[0-9][0-9A-Za-z.+~-]*$",
        description="Exact package version of nvidia-mig-manager, with `tool: mig-parted`; held.",
    )
    stop_services: tuple[str, ...] = Field(
        default=("nvidia-dcgm.service", "nvidia-dcgm-exporter.service"),
        description="Units that keep GPUs open; those that run are stopped while the GPUs are partitioned, and started again.",
    )

    @field_validator("stop_services")
    @classmethod
    def _are_services(cls, units: tuple[str, ...]) -> tuple[str, ...]:
        for unit in units:
            if not _UNIT.fullmatch(unit):
                raise mistake(f"{unit} is not a service unit.", "e.g. `nvidia-dcgm.service`")
        return units

    def runs_on(self, node: Node) -> bool:
        """On nodes with GPUs that can be partitioned; where no layout is declared, MIG is kept off.

        Not beside a GPU for screens: it takes an index between the others, and the role counts them from 0 on.
        """
        return super().runs_on(node) and profiles_of(node.sku.gpus) is not None and not _has_display(node)

    def held_packages(self, node: Node) -> tuple[str, ...]:
        """mig-parted, where it is the tool."""
        return ("nvidia-mig-manager",) if self.tool == "mig-parted" else ()

    def problems(self, cluster: Cluster) -> Iterator[tuple[str, str, str | None]]:
        """A role without GPUs, or a tool without its version."""
        if divided := [node.name for node in cluster.nodes if node.mig and _has_display(node)]:
            yield (
                "",
                f"{fold(divided)} declares MIG profiles and has a GPU for screens, which the role cannot pass over.",
                "take `mig:` from these nodes",
            )
        if not cluster.running("mig"):
            yield "", "No node of the role mig has GPUs whose MIG profiles are known.", "remove the section"
        if self.tool == "mig-parted" and self.version is None:
            yield "version", "mig-parted is installed at an exact version only.", "e.g. `version: 0.12.1-1`"
        if self.tool == "nvidia-smi" and self.version is not None:
            yield "version", "A version is of nvidia-mig-manager.", "set `tool: mig-parted` or leave it out"

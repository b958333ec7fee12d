"""Options of the dcgm_exporter role."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, ClassVar, Literal

from pydantic import Field, StringConstraints

from rackwright.errors import RackwrightError
from rackwright.exporters import ExporterOptions, Problem
from rackwright.lock.for_roles import group_of, has_stack, lock_problems
from rackwright.model.cluster import Cluster, Node
from rackwright.model.interfaces import HoldsPackages, RunsDcgm
from rackwright.model.platforms import Capability, why_node_lacks
from rackwright.model.types import NodeRole
from rackwright.roles.dcgm_exporter.versions import pair_of

CORE = "datacenter-gpu-manager-4-core"
FieldName = Annotated[str, StringConstraints(pattern=r"^DCGM_(FI|EXP)_[A-Z0-9_]{1,80}$")]
PackageVersion = Annotated[str, StringConstraints(pattern=r"^[0-9][A-Za-z0-9.+~:-]{0,60}$")]


class DcgmExporterOptions(ExporterOptions, HoldsPackages):
    """dcgm-exporter on nodes with NVIDIA's GPUs."""

    applies_to: ClassVar[frozenset[NodeRole]] = frozenset({NodeRole.WORKER, NodeRole.LOGIN})
    role: ClassVar[str] = "dcgm_exporter"
    software: ClassVar[str] = "dcgm_exporter"
    job: ClassVar[str] = "dcgm"
    address_flag: ClassVar[str] = "--address"
    users_flag: ClassVar[str] = "--web-config-file"

    port: int = Field(default=9400, ge=1, le=65535, description="TCP port on the management address.")
    version: PackageVersion | None = Field(
        default=None,
        description="Version of NVIDIA's package, e.g. `4.8.3-1`. None: the one that NVIDIA pairs with the locked DCGM.",
    )
    interval_seconds: int = Field(default=10, ge=1, le=120, description="How often DCGM's values are read.")
    fields: dict[FieldName, Literal["counter", "gauge", "off"]] = Field(
        default_factory=dict,
        description="Fields of DCGM besides rackwright's choice, with the type of the metric; `off` leaves one out. A "
        "field that the installed DCGM does not know keeps the exporter from starting.",
    )
    job_mapping: bool = Field(
        default=True,
        description="Whether each metric names the job that has the GPU (`hpc_job`), which prolog and epilog "
        "scripts record.",
    )

    def runs_on(self, node: Node) -> bool:
        """On nodes that are declared to have such GPUs."""
        return super().runs_on(node) and has_stack(node)

    def serves(self, node: Node) -> bool:
        """Where there are GPUs, or the lab simulates some."""
        return why_node_lacks(node, Capability.GPU) is None

    def service(self, node: Node) -> tuple[str, ...]:
        """The host engine has the rights and the devices; the folder of jobs is there before any prolog is."""
        return (
            "StandardOutput=journal",
            "StandardError=journal",
            "RuntimeDirectory=rackwright-dcgm-jobs",
            "RuntimeDirectoryPreserve=yes",
            "CapabilityBoundingSet=",
            "NoNewPrivileges=yes",
            "PrivateDevices=yes",
            "PrivateTmp=yes",
            "ProtectHome=yes",
            "ProtectSystem=strict",
        )

    def package(self, cluster: Cluster, node: Node) -> tuple[str, ...]:
        """`name=version`; none where the lab simulates the GPUs, and the program. RackwrightError without a version."""
        if node.simulates_gpus:
            return ()
        (name,) = self.names(node).packages
        if self.version is not None:
            return (f"{name}={self.version}",)
        locked = group_of(cluster, node).packages.get(CORE, "")
        pair = pair_of(locked)
        if pair is None:
            raise RackwrightError(
                f"No dcgm-exporter version is known for DCGM {locked or '(not locked)'} of {node.name}.",
                hint="set `version` of the role dcgm_exporter, e.g. `4.8.3-1`",
            )
        return (f"{name}={pair}-*",)

    def held_packages(self, node: Node) -> tuple[str, ...]:
        """It stays the pair of the held DCGM."""
        return () if node.simulates_gpus or not self.serves(node) else self.names(node).packages

    def problems(self, cluster: Cluster) -> Iterable[Problem]:
        """GPUs without a host engine."""
        yield from super().problems(cluster)
        for node in self._real(cluster):
            if node.offers(RunsDcgm) is None:
                yield (
                    "",
                    f"{node.name} has no role that runs DCGM, which dcgm-exporter needs.",
                    "add the role dcgm, or leave dcgm_exporter out there",
                )
                return

    def lock_problems(self, cluster: Cluster) -> Iterable[Problem]:
        """A lock that cannot be used, or whose DCGM has no known exporter."""
        nodes = self._real(cluster)
        if not nodes:
            return
        if found := list(lock_problems(cluster, self.role)):
            yield from found
            return
        for node in {(node.sku.name, node.os.id): node for node in reversed(nodes)}.values():
            try:
                self.package(cluster, node)
            except RackwrightError as error:
                yield "version", error.message, error.hint

    def _real(self, cluster: Cluster) -> list[Node]:
        return [
            node for node in cluster.running(self.role, self) if self.serves(node) and not node.simulates_gpus
        ]

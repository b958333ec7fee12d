"""Options of the efa role."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

from pydantic import Field, StringConstraints

from rackwright.model.cluster import Cluster, Node
from rackwright.model.named_networks import wrong_kinds
from rackwright.model.options import RoleOptions
from rackwright.model.strings import NodePath, Sha256
from rackwright.model.types import LinkKind, NetworkPurpose

Problem = tuple[str, str, str | None]
Version = Annotated[str, StringConstraints(pattern=r"^[0-9]+\.[0-9]+\.[0-9]+$")]


class EfaOptions(RoleOptions):
    """Amazon's EFA installer, and what must exist afterwards."""

    networks: tuple[str, ...] = Field(
        default=("fabric",), min_length=1, description="Networks of the kind `efa`."
    )
    version: Version = Field(description="Of aws-efa-installer, e.g. 1.41.0.")
    sha256: Sha256 = Field(description="SHA-256 of aws-efa-installer-VERSION.tar.gz.")
    kernel_module: bool = Field(
        default=True,
        description="Whether the installer builds the driver (DKMS). false: `--skip-kmod`, the kernel's own is used.",
    )
    install_minutes: int = Field(
        default=30, ge=1, le=240, description="Time limit of the installation in minutes, instead of `ssh`'s."
    )
    devices: int | None = Field(
        default=None,
        ge=1,
        le=64,
        description="EFA devices of a node. None: ports of the kind `efa` that the SKU has on the fabric.",
    )
    huge_pages: int | None = Field(
        default=None,
        ge=0,
        description="Huge pages of 2 MiB that libfabric and others need at least; compared: the role `kernel` reserves "
        "them. None: not compared.",
    )
    nccl_plugin: NodePath | None = Field(
        default=None,
        description="Library of aws-ofi-nccl, through which NCCL uses EFA, as the installed version has it; it must "
        "be there. None: not compared.",
    )

    @property
    def tarball(self) -> str:
        """The installer's file."""
        return f"aws-efa-installer-{self.version}.tar.gz"

    def runs_on(self, node: Node) -> bool:
        """On nodes with an address on one of the networks."""
        return super().runs_on(node) and any(entry.network in self.networks for entry in node.addresses)

    def device_count(self, node: Node) -> int | None:
        """How many EFA devices a node is declared to have; None: not declared."""
        if self.devices is not None:
            return self.devices
        ports = [
            nic for nic in node.sku.nics if nic.kind is LinkKind.EFA and nic.purpose is NetworkPurpose.FABRIC
        ]
        return len(ports) or None

    def problems(self, cluster: Cluster) -> Iterator[Problem]:
        """Networks of another kind, and nodes whose devices are not declared."""
        yield from wrong_kinds(cluster, self.networks, (LinkKind.EFA,))
        for node in cluster.running("efa", self):
            if self.device_count(node) is None:
                yield (
                    "devices",
                    f"The SKU {node.sku.name} of {node.name} has no port of the kind efa on the fabric.",
                    "e.g. `devices: 32`",
                )
                return

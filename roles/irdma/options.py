"""Options of the irdma role."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, NamedTuple

from pydantic import Field

from rackwright.model.cluster import Cluster, Node
from rackwright.model.hcas import DeclaresHcas, Hca
from rackwright.model.interfaces import WritesUnitFiles
from rackwright.model.named_networks import wrong_kinds
from rackwright.model.options import RoleOptions
from rackwright.model.types import LinkKind
from rackwright.roles.irdma.paths import UNIT_PATH

Problem = tuple[str, str, str | None]
DRIVER = "irdma_"
"""Names of its devices begin so: the role that names devices keeps the driver's prefix."""


class Port(NamedTuple):
    """A port of an E810, and what it is to speak."""

    hca: Hca
    pci: str
    protocol: Literal["iwarp", "roce"]

    @property
    def other(self) -> Literal["iwarp", "roce"]:
        """What it then does not."""
        return "roce" if self.protocol == "iwarp" else "iwarp"


class IrdmaOptions(RoleOptions, WritesUnitFiles):
    """The protocol of E810 ports, whose RDMA devices are declared with names that begin with `irdma_`."""

    networks: tuple[str, ...] = Field(
        default=("fabric",),
        min_length=1,
        description="Networks of the kind `iwarp`, or `roce`, that ports of an E810 are on.",
    )

    def runs_on(self, node: Node) -> bool:
        """On nodes with an address on one of the networks."""
        return super().runs_on(node) and any(entry.network in self.networks for entry in node.addresses)

    def ports(self, cluster: Cluster, node: Node) -> tuple[Port, ...]:
        """The node's ports, by network and rail."""
        declared = node.offers(DeclaresHcas)
        return tuple(
            Port(hca, hca.pci, "iwarp" if cluster.networks[hca.network].kind is LinkKind.IWARP else "roce")
            for hca in (() if declared is None else declared.hcas(cluster, node))
            if hca.network in self.networks and hca.pci is not None and hca.name.startswith(DRIVER)
        )

    def unit_files(self, node: Node) -> tuple[str, ...]:
        """The unit that sets the protocol at boot."""
        return (UNIT_PATH,)

    def problems(self, cluster: Cluster) -> Iterator[Problem]:
        """Networks of another kind, and nodes without such a device."""
        yield from wrong_kinds(cluster, self.networks, (LinkKind.IWARP, LinkKind.ROCE))
        for node in cluster.running("irdma", self):
            if not self.ports(cluster, node):
                yield (
                    "networks",
                    f"{node.name} has no RDMA device named `{DRIVER}...` at a PCI address on {', '.join(self.networks)}.",
                    'e.g. `roles.rdma.devices: {irdma_rail0: {pci: "0000:18:00.0", rail: 0}}`',
                )
                return

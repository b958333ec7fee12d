"""Options of the spectrum_x role."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal, NamedTuple

from pydantic import Field, field_validator

from rackwright.model.cluster import Cluster, Node
from rackwright.model.hcas import DeclaresHcas
from rackwright.model.interfaces import WritesUnitFiles
from rackwright.model.named_networks import wrong_kinds
from rackwright.model.options import RoleOptions
from rackwright.model.text import mistake
from rackwright.model.types import LinkKind
from rackwright.roles.spectrum_x.paths import UNIT_PATH

Problem = tuple[str, str, str | None]
ADAPTIVE_ROUTING = "adaptive_routing_forced_en"
_FIELD = re.compile(r"[a-z0-9_]{1,64}")
_PARAMETER = re.compile(r"[A-Z][A-Z0-9_]{1,63}")
_VALUE = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_RELEASE = re.compile(r"[0-9A-Za-z.+~-]{1,64}")


class Card(NamedTuple):
    """A NIC's function on the fabric."""

    name: str
    pci: str


class SpectrumXOptions(RoleOptions, WritesUnitFiles):
    """Adaptive routing of NICs on Spectrum-X networks, and the site's values of NVIDIA's reference architecture."""

    networks: tuple[str, ...] = Field(
        default=("fabric",), min_length=1, description="Networks of the kind `spectrum-x`."
    )
    tool: Literal["mlxreg", "mstreg"] = Field(
        default="mlxreg",
        description="What reads and sets registers: `mlxreg` of NVIDIA's MFT, which DOCA brings, or `mstreg` of mstflint.",
    )
    adaptive_routing: bool = Field(
        default=True,
        description="Whether the NIC lets switches send its packets by any path (ROCE_ACCL, adaptive_routing_forced_en).",
    )
    registers: dict[str, int] = Field(
        default_factory=dict,
        description="Further fields of ROCE_ACCL, e.g. `{roce_tx_window_en: 0}`, as the profile of the site's reference "
        "architecture has them.",
    )
    firmware: dict[str, str] = Field(
        default_factory=dict,
        description="Parameters of mlxconfig by name with the value that it prints, e.g. `{ROCE_CC_PRIO_MASK_P1: "
        '"255"}`; compared, never set: they need a reset of the card.',
    )
    congestion_control: str | None = Field(
        default=None,
        description="Release of the package `doca-spcx-cc`, NVIDIA's congestion control for Spectrum-X, which the site "
        "gets from NVIDIA and installs with `base.packages`, e.g. `3.1.0105-1`; compared. None: not compared.",
    )

    @field_validator("registers")
    @classmethod
    def _are_fields(cls, given: dict[str, int]) -> dict[str, int]:
        for name, value in given.items():
            if name == ADAPTIVE_ROUTING:
                raise mistake(f"{name} is set by `adaptive_routing`.", "leave it out of `registers`")
            if not _FIELD.fullmatch(name) or not 0 <= value < 1 << 32:
                raise mistake(
                    f"{name}: {value} is not a field of a register with a value.",
                    "e.g. `{roce_tx_window_en: 0}`",
                )
        return given

    @field_validator("firmware")
    @classmethod
    def _are_parameters(cls, given: dict[str, str]) -> dict[str, str]:
        for name, value in given.items():
            if not _PARAMETER.fullmatch(name) or not _VALUE.fullmatch(value):
                raise mistake(
                    f"{name}: {value!r} is not a parameter of mlxconfig with a value.",
                    'e.g. `{ROCE_CC_PRIO_MASK_P1: "255"}`',
                )
        return given

    @field_validator("congestion_control")
    @classmethod
    def _is_release(cls, given: str | None) -> str | None:
        if given is not None and not _RELEASE.fullmatch(given):
            raise mistake(f"{given!r} is not a release of a package.", "e.g. `3.1.0105-1`")
        return given

    @property
    def fields(self) -> dict[str, int]:
        """Every field of ROCE_ACCL that is declared."""
        return {ADAPTIVE_ROUTING: int(self.adaptive_routing), **self.registers}

    def runs_on(self, node: Node) -> bool:
        """On nodes with an address on one of the networks."""
        return super().runs_on(node) and any(entry.network in self.networks for entry in node.addresses)

    def cards(self, cluster: Cluster, node: Node) -> tuple[Card, ...]:
        """The node's NICs on the networks, by network and rail."""
        declared = node.offers(DeclaresHcas)
        return tuple(
            Card(hca.name, hca.pci)
            for hca in (() if declared is None else declared.hcas(cluster, node))
            if hca.network in self.networks and hca.pci is not None
        )

    def unit_files(self, node: Node) -> tuple[str, ...]:
        """The unit that sets the registers at boot."""
        return (UNIT_PATH,)

    def problems(self, cluster: Cluster) -> Iterator[Problem]:
        """Networks of another kind, and nodes without a declared NIC."""
        yield from wrong_kinds(cluster, self.networks, (LinkKind.SPECTRUM_X,))
        for node in cluster.running("spectrum_x", self):
            if not self.cards(cluster, node):
                yield (
                    "networks",
                    f"{node.name} has no RDMA device at a PCI address on {', '.join(self.networks)}.",
                    'e.g. `roles.rdma.devices: {mlx5_rail0: {pci: "0000:18:00.0", rail: 0}}`',
                )
                return

    def warnings(self, cluster: Cluster) -> Iterator[Problem]:
        """Rails that share leaves: NVIDIA's reference architecture is rail-optimised."""
        for name in self.networks:
            fabric = cluster.fabrics.get(name)
            shared = [leaf for leaf in fabric.leaves if len(fabric.rails_of(leaf)) > 1] if fabric else []
            if shared:
                yield (
                    "networks",
                    f"{name} is not rail-optimised: {shared[0]} has cables of several rails.",
                    None,
                )

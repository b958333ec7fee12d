"""Options of the nccl role."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import ClassVar, Literal

from pydantic import Field, field_validator

from rackwright.documents.nearest import suggest
from rackwright.model.cluster import Cluster, Node
from rackwright.model.hcas import SetsCollectives
from rackwright.model.options import RoleOptions
from rackwright.model.strings import InterfaceName
from rackwright.model.text import mistake
from rackwright.model.types import NetworkPurpose, NodeRole
from rackwright.roles.nccl import topology
from rackwright.roles.nccl.derived import derived, settings

Problem = tuple[str, str, str | None]
_NAME = re.compile(r"(NCCL|FI|OFI_NCCL|UCX|SHARP)_[A-Z0-9_]+")
_VALUE = re.compile(r"[A-Za-z0-9_.,:;=^/+@-]+")
_TUNED = frozenset({"NCCL_ALGO", "NCCL_PROTO", "NCCL_MIN_NCHANNELS", "NCCL_MAX_NCHANNELS"})
"""What NCCL chooses by size and topology; a fixed value is right for one case and wrong for all others."""


class NcclOptions(RoleOptions, SetsCollectives):
    """NCCL's settings on workers. Without options, all of them follow from the declared fabric."""

    applies_to: ClassVar[frozenset[NodeRole]] = frozenset({NodeRole.WORKER})

    networks: tuple[str, ...] | None = Field(
        default=None,
        description="Networks that carry collectives. None: every network with the purpose `fabric`.",
    )
    socket_interface: InterfaceName | None = Field(
        default=None,
        description="Interface on which ranks find each other (NCCL_SOCKET_IFNAME). None: the management network's, where "
        "the role `network` declares it, else left to NCCL.",
    )
    gid_index: int | None = Field(
        default=None,
        ge=0,
        le=255,
        description="NCCL_IB_GID_INDEX, for NCCL before 2.21 on RoCE, e.g. 3. None: left to NCCL, which has found the GID "
        "of RoCE v2 by itself since 2.21 (NCCL's user guide, environment variables, read 2026-11-25).",
    )
    cross_nic: Literal[0, 1, 2] | None = Field(
        default=None,
        description="NCCL_CROSS_NIC. None: 0 where the declared fabric has rails and no spine between them, so that "
        "nothing can cross; else left to NCCL, whose own choice is 2.",
    )
    topology_file: bool = Field(
        default=False,
        description="Write NCCL's topology file (NCCL_TOPO_FILE) from `near_gpus`, `gpu_sockets` and `gpus.pci_addresses` "
        "of the SKU and the addresses of the rails' devices: for virtual machines, whose PCI addresses do not show which GPU "
        "and device share a switch. Leave it off on bare metal, where NCCL reads this from sysfs.",
    )
    environment: dict[str, str] = Field(
        default_factory=dict,
        description='Values that take the place of derived ones or are added, e.g. `{NCCL_IB_TIMEOUT: "22"}`. The file '
        "names the cluster file as the source of each; `validate` warns of those that contradict the declared fabric.",
    )

    @field_validator("environment")
    @classmethod
    def _are_lines(cls, given: dict[str, str]) -> dict[str, str]:
        for name, value in given.items():
            if not _NAME.fullmatch(name):
                raise mistake(
                    f"{name!r} is not a variable of NCCL or of its network plugins.", "e.g. `NCCL_IB_TIMEOUT`"
                )
            if not _VALUE.fullmatch(value):
                raise mistake(f"{value!r} cannot be the value of {name}.", 'e.g. `"22"` or `=mlx5_rail0`')
        return given

    def problems(self, cluster: Cluster) -> Iterator[Problem]:
        """Networks that do not exist or are not a fabric, and what the topology file lacks."""
        for index, name in enumerate(self.networks or ()):
            if name not in cluster.networks:
                hint = suggest(name, cluster.networks, what="networks")
                yield f"networks[{index}]", f"There is no network {name}.", hint
            elif cluster.networks[name].purpose is not NetworkPurpose.FABRIC:
                purpose = cluster.networks[name].purpose.value
                yield f"networks[{index}]", f"{name} has the purpose {purpose}.", "name a fabric"
        if self.topology_file:
            of_each_sku: dict[str, Node] = {}
            for node in cluster.running("nccl", self):
                of_each_sku.setdefault(node.sku.name, node)
            for node in of_each_sku.values():
                yield from topology.problems(cluster, node, self)

    def warnings(self, cluster: Cluster) -> Iterator[Problem]:
        """Values that contradict the declared fabric, and those that fix what NCCL tunes."""
        for name, value in self.environment.items():
            path = f"environment.{name}"
            if name in _TUNED:
                yield path, f"{name} fixes what NCCL chooses by size and topology.", "leave it out"
            for node in cluster.running("nccl", self):
                by_fabric = {one.name: one.value for one in derived(cluster, node, self)}
                if name in by_fabric and by_fabric[name] != value:
                    yield (
                        path,
                        f"{name} is {value}, and the declared fabric gives {node.name} {by_fabric[name]}.",
                        "leave it out, unless this is intended",
                    )
                    break
        yield from self._otherwise_measured(cluster)

    def _otherwise_measured(self, cluster: Cluster) -> Iterator[Problem]:
        """Variables that a burn-in sets to something else than jobs have."""
        for node in cluster.running("nccl", self):
            jobs = self.collective_environment(cluster, node)
            for name, value in cluster.burnin.nccl_env.items():
                if jobs.get(name, value) != value:
                    yield (
                        "",
                        f"{name} is `{jobs[name]}` for jobs on {node.name}, and `{value}` for the burn-in.",
                        f"leave {name} out of `burnin.nccl_env`",
                    )
            return

    def collective_environment(self, cluster: Cluster, node: Node) -> Mapping[str, str]:
        """Every line of /etc/nccl.conf."""
        return {one.name: one.value for one in settings(cluster, node, self)}

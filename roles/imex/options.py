"""Options of the imex role.

Keys, values and defaults: NVIDIA IMEX Service for NVLink Networks, "IMEX Service Config Options" and "IMEX
Channels" (https://docs.nvidia.com/multi-node-nvlink-systems/imex-guide/), read 2026-11-21.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, Literal

from pydantic import Field

from rackwright.documents.nearest import suggest
from rackwright.lock.for_roles import Trouble, has_stack
from rackwright.lock.stack_options import StackOptions
from rackwright.model.cluster import Cluster, Node
from rackwright.model.interfaces import ManagesImexChannels
from rackwright.model.ranges import RangeMistake, expand
from rackwright.model.services import Listener, Listens
from rackwright.model.sku import NvSwitch
from rackwright.model.strings import Identifier
from rackwright.model.types import NetworkPurpose


class ImexOptions(StackOptions, Listens):
    """nvidia-imex.service where the SKU's NVLink domain spans nodes; nothing anywhere else."""

    role: ClassVar[str] = "imex"
    parts: ClassVar[tuple[str, ...]] = ("imex",)

    domains: dict[Identifier, str] = Field(
        default_factory=dict,
        description="NVLink domain to its nodes as a NodeSet. Empty: the nodes of one rack are one domain.",
    )
    network: str | None = Field(
        default=None, description="Network the daemons talk over; None: the management network."
    )
    server_port: int = Field(default=50000, ge=1024, le=65535, description="SERVER_PORT: daemon to daemon.")
    command_port: int = Field(
        default=50005, ge=1024, le=65535, description="IMEX_CMD_PORT: nvidia-imex-ctl asks here."
    )
    quorum: Literal["NONE", "RECOVERY"] = Field(
        default="RECOVERY",
        description="IMEX_WAIT_FOR_QUORUM: after an unclean end a daemon waits for all who had imported from it.",
    )
    channels: int = Field(
        default=1,
        ge=0,
        le=2048,
        description="Channel files made at boot, which any user may open: every job can then reach every other "
        "one's exported memory. 0: the scheduler makes one for each job (Slurm: SwitchType=switch/nvidia_imex).",
    )

    def listeners(self, node: Node) -> tuple[Listener, ...]:
        """The daemon, for the nodes of its domain, on `network` or else the management network."""
        if not self.needed_on(node):
            return ()
        inner = frozenset({NetworkPurpose.MANAGEMENT, NetworkPurpose.FABRIC, NetworkPurpose.STORAGE})
        purposes = frozenset({NetworkPurpose.MANAGEMENT}) if self.network is None else inner
        return tuple(
            Listener("nvidia-imex", (port, port), purposes=purposes)
            for port in (self.server_port, self.command_port)
        )

    @classmethod
    def needed_on(cls, node: Node) -> bool:
        """An NVLink domain of several nodes."""
        return has_stack(node) and node.sku.gpus is not None and node.sku.gpus.nvswitch is NvSwitch.RACK

    def runs_on(self, node: Node) -> bool:
        """On every node that can have it: where it is not needed, it is kept off."""
        return node.holds(*self.applies_to)

    def problems(self, cluster: Cluster) -> Iterator[Trouble]:
        """Nodes without a domain, in two of them, of two kinds, or more than one domain holds."""
        if not self.nodes(cluster):
            yield "", "No node of the role imex shares an NVLink domain with others.", "remove the section"
        if self.server_port == self.command_port:
            yield "command_port", f"The daemons themselves use port {self.server_port}.", None
        yield from self._network(cluster)
        yield from self._declared(cluster) if self.domains else self._racks(cluster)

    def warnings(self, cluster: Cluster) -> Iterator[Trouble]:
        """Channels that nothing makes, or that both the boot and the workload manager make."""
        for node in cluster.running(self.role, self):
            if not self.needed_on(node):
                continue
            manager = node.offers(ManagesImexChannels)
            managed = manager is not None and manager.manages_imex_channels
            if self.channels == 0 and not managed:
                yield (
                    "channels",
                    f"Neither the boot nor the workload manager creates IMEX channels on {node.name}.",
                    (
                        "e.g. `channels: 1`; or let the workload manager make them (Slurm: SwitchType "
                        "switch/nvidia_imex)"
                    ),
                )
                return
            if self.channels and managed:
                yield (
                    "channels",
                    (
                        f"The workload manager makes an IMEX channel for each job on {node.name}, but any user may open "
                        "those made at boot."
                    ),
                    "set `channels: 0`",
                )
                return

    def _network(self, cluster: Cluster) -> Iterator[Trouble]:
        if self.network is None:
            return
        if self.network not in cluster.networks:
            yield (
                "network",
                f"There is no network {self.network}.",
                suggest(self.network, cluster.networks, what="networks"),
            )
            return
        for node in self.nodes(cluster):
            if node.address_on(self.network) is None:
                yield "network", f"{node.name} has no address on {self.network}.", None
                return

    def _racks(self, cluster: Cluster) -> Iterator[Trouble]:
        for node in self.nodes(cluster):
            if node.rack is None:
                yield (
                    "domains",
                    f"{node.name} has no rack, so its NVLink domain is unknown.",
                    "give the node its rack, or name the domains here",
                )
                return
        racks = {node.rack or "": [] for node in self.nodes(cluster)}  # type: dict[str, list[Node]]
        for node in self.nodes(cluster):
            racks[node.rack or ""].append(node)
        for rack, members in racks.items():
            yield from _whole("domains", f"The rack {rack}", members)

    def _declared(self, cluster: Cluster) -> Iterator[Trouble]:
        owner: dict[str, str] = {}
        known = {node.name: node for node in self.nodes(cluster)}
        for domain, nodes in self.domains.items():
            path = f"domains.{domain}"
            try:
                names = expand(nodes)
            except RangeMistake as mistake:
                yield path, mistake.message, mistake.hint
                continue
            strange = [name for name in names if name not in known]
            twice = [name for name in names if name in owner]
            if strange:
                yield path, f"{strange[0]} has no GPUs in an NVLink domain of several nodes.", None
            if twice:
                yield path, f"{twice[0]} is in the domain {owner[twice[0]]} already.", None
            owner.update(dict.fromkeys(names, domain))
            yield from _whole(path, f"The domain {domain}", [known[name] for name in names if name in known])
        lost = [name for name in known if name not in owner]
        if lost:
            yield "domains", f"{lost[0]} is in no NVLink domain.", "name every node of the role"


def _whole(path: str, what: str, members: list[Node]) -> Iterator[Trouble]:
    """Equal nodes, and not more GPUs than one NVLink domain has."""
    skus = sorted({node.sku.name for node in members})
    if len(skus) > 1:
        yield path, f"{what} holds nodes of {' and '.join(skus)}; one NVLink domain has one kind.", None
        return
    gpus = members[0].sku.gpus if members else None
    if gpus is None or gpus.nvlink_domain is None:
        return
    count = len(members) * gpus.count
    if count > gpus.nvlink_domain:
        yield (
            path,
            f"{what} holds {count} GPUs, and an NVLink domain of {skus[0]} has {gpus.nvlink_domain}.",
            "name the domains in `imex.domains`",
        )

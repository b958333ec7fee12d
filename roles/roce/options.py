"""Options of the roce role."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal, NamedTuple

from pydantic import Field, model_validator

from rackwright.model.cluster import Cluster, Node
from rackwright.model.hcas import DeclaresHcas, Hca, MarksTraffic, NamesInterfaces
from rackwright.model.interfaces import WritesUnitFiles
from rackwright.model.named_networks import wrong_kinds
from rackwright.model.options import Frozen, RoleOptions
from rackwright.model.text import mistake
from rackwright.model.types import LinkKind
from rackwright.roles.roce.paths import UNIT_PATH

Problem = tuple[str, str, str | None]


class Rail(NamedTuple):
    """An RDMA device on a RoCE network of the node."""

    hca: Hca
    interface: str | None
    """None: not declared; the program on the node finds it in sysfs."""

    @property
    def soft(self) -> bool:
        """Whether the kernel makes the device (rxe): it has neither priorities nor congestion control."""
        return self.hca.pci is None

    def __str__(self) -> str:
        return f"{self.hca.name} ({self.hca.network} rail {self.hca.rail})"


Buffer = Annotated[int, Field(ge=0, le=7)]


class Buffers(Frozen):
    """Receive buffers of a NIC's port; the words are those of dcb-buffer(8)."""

    prio_buffer: tuple[Buffer, ...] = Field(
        min_length=8,
        max_length=8,
        description="The buffer of each priority 0 to 7, e.g. `[0, 0, 0, 1, 0, 0, 0, 0]`.",
    )
    buffer_size: tuple[Annotated[int, Field(ge=0, le=2**31)], ...] | None = Field(
        default=None,
        min_length=8,
        max_length=8,
        description="Bytes of each buffer 0 to 7. None: as the driver chooses. The driver rounds them down to cells of the "
        "NIC, so that up to 1023 bytes less are as declared.",
    )

    @model_validator(mode="after")
    def _have_sizes(self) -> Buffers:
        sizes = self.buffer_size
        if sizes is not None and (
            empty := [number for number in sorted(set(self.prio_buffer)) if not sizes[number]]
        ):
            raise mistake(
                f"Buffer {empty[0]} has priorities and a size of 0.", "give it bytes, e.g. `262144`"
            )
        return self


class RoceOptions(RoleOptions, MarksTraffic, WritesUnitFiles):
    """Quality of service of RoCE, on nodes with an address on one of the networks. The switches must have the same."""

    networks: tuple[str, ...] = Field(
        default=("fabric",), min_length=1, description="Networks of the kind `roce` or `spectrum-x`."
    )
    backend: Literal["dcb", "mlnx_qos"] = Field(
        description="How a NIC is set and read. `dcb`: iproute2's program and the inbox driver, whose mlx5 takes PFC "
        "and DSCP entries, and shows the CNP settings in debugfs; whether congestion control is on is read from the "
        "firmware (mstconfig). `mlnx_qos`: NVIDIA's program and driver (DOCA-OFED), which show all of it.",
    )
    dscp: int = Field(
        ge=1,
        le=63,
        description="Of RDMA packets, e.g. 26. The switches decide which is right: there is no default.",
    )
    priority: int = Field(
        ge=0,
        le=7,
        description="802.1p priority that packets with this DSCP have, e.g. 3; it has PFC where `pfc` is true.",
    )
    cnp_dscp: int = Field(ge=1, le=63, description="Of congestion notification packets, e.g. 48.")
    cnp_priority: int = Field(ge=0, le=7, description="Priority of congestion notification packets, e.g. 6.")
    pfc: bool = Field(
        description="Whether the priority is lossless: flow control by priority for it, and for no other. false: on none."
    )
    congestion_control: bool = Field(
        default=True,
        description="DCQCN on the priority: the NIC answers packets marked by switches (ECN) with notifications, and "
        "slows down for those it gets. With `backend: dcb` it is only compared: firmware has it (ROCE_CC_PRIO_MASK).",
    )
    buffers: Buffers | None = Field(
        default=None,
        description="Receive buffers of the port, e.g. `{prio_buffer: [0, 0, 0, 1, 0, 0, 0, 0], buffer_size: [262144, 459360, "
        "0, 0, 0, 0, 0, 0]}`. None: as the driver chooses them, from PFC and the length of the cable.",
    )
    gid_index: int | None = Field(
        default=None,
        ge=0,
        le=255,
        description="Index that the GID of a rail's address must have. None: any; NCCL 2.21 and later finds it by "
        "itself, and mlx5 has it at 3 only as long as no other address was added first.",
    )
    strict_arp: bool = Field(
        default=True,
        description="On nodes with several rails: an interface answers ARP for its own address alone and asks with "
        "it (arp_ignore 1, arp_announce 2), and accepts packets that came by another rail (rp_filter 2). Linux "
        "otherwise answers for any address by any interface (kernel documentation, ip-sysctl; IBM, SMC-R high "
        "availability, read 2026-11-25).",
    )

    @model_validator(mode="after")
    def _are_apart(self) -> RoceOptions:
        if self.dscp == self.cnp_dscp:
            raise mistake(
                f"RDMA packets and congestion notifications have the same DSCP, {self.dscp}.",
                "e.g. `dscp: 26, cnp_dscp: 48`",
            )
        if self.priority == self.cnp_priority:
            raise mistake(
                f"Congestion notifications would queue behind the traffic they slow down, in priority {self.cnp_priority}.",
                "e.g. `priority: 3, cnp_priority: 6`",
            )
        if self.buffers is not None and self.pfc:
            alone = self.buffers.prio_buffer[self.priority]
            if self.buffers.prio_buffer.count(alone) > 1:
                raise mistake(
                    f"Priority {self.priority} has flow control and shares buffer {alone} with others.",
                    "a lossless priority has a buffer that no other is in",
                )
        return self

    @property
    def traffic_class(self) -> int:
        """DSCP times 4. mlx5 takes the DSCP of it alone, and marks its packets ECN-capable itself.

        Source: Linux, drivers/infiniband/hw/mlx5/qp.c, mlx5_set_path (`traffic_class >> 2`), read 2026-11-25.
        """
        return self.dscp * 4

    def runs_on(self, node: Node) -> bool:
        """On nodes with an address on one of the networks."""
        return super().runs_on(node) and any(entry.network in self.networks for entry in node.addresses)

    def rails(self, cluster: Cluster, node: Node) -> tuple[Rail, ...]:
        """The node's devices on the networks, with the interface that has the rail's address."""
        devices = node.offers(DeclaresHcas)
        named = node.offers(NamesInterfaces)
        found = () if devices is None else devices.hcas(cluster, node)
        return tuple(
            Rail(
                hca,
                (None if named is None else named.interface(cluster, hca.network, hca.rail)) or hca.netdev,
            )
            for hca in found
            if hca.network in self.networks and node.address_on(hca.network, hca.rail) is not None
        )

    def cards(self, cluster: Cluster, node: Node) -> tuple[Rail, ...]:
        """The rails whose device is a NIC's."""
        return tuple(rail for rail in self.rails(cluster, node) if not rail.soft)

    def unit_files(self, node: Node) -> tuple[str, ...]:
        """The unit that sets the NICs at boot."""
        return (UNIT_PATH,)

    def problems(self, cluster: Cluster) -> Iterator[Problem]:
        """Networks of another kind, and rails without a declared device or interface."""
        yield from wrong_kinds(cluster, self.networks, (LinkKind.ROCE, LinkKind.SPECTRUM_X))
        for node in cluster.running("roce", self):
            if problem := self._undeclared(cluster, node):
                yield problem
                return

    def _undeclared(self, cluster: Cluster, node: Node) -> Problem | None:
        rails = self.rails(cluster, node)
        declared = {(rail.hca.network, rail.hca.rail) for rail in rails}
        for entry in node.addresses:
            if entry.network in self.networks and (entry.network, entry.rail) not in declared:
                return (
                    "networks",
                    f"{node.name} has no RDMA device for {entry.network} rail {entry.rail}.",
                    "declare it in `roles.rdma.devices`",
                )
        if (
            self.strict_arp
            and len(rails) > 1
            and (bare := [rail for rail in rails if rail.interface is None])
        ):
            return (
                "strict_arp",
                f"The interface of {bare[0]} on {node.name} is not declared.",
                "declare `netdev` in `roles.rdma.devices`, or `roles.network.networks`",
            )
        return None

    def warnings(self, cluster: Cluster) -> Iterator[Problem]:
        """A fabric that is neither lossless nor congestion-controlled."""
        if not self.pfc and not self.congestion_control:
            yield (
                "pfc",
                "Without `pfc` and `congestion_control`, a congested switch drops RDMA packets.",
                None,
            )

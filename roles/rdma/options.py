"""Options of the rdma role."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import Field, StringConstraints, field_validator, model_validator

from rackwright.lock.for_roles import Trouble
from rackwright.model.cluster import Cluster, Node
from rackwright.model.hcas import DeclaresHcas, Hca, NamesInterfaces, ReducesInSwitches
from rackwright.model.options import Frozen, RoleOptions
from rackwright.model.strings import InterfaceName
from rackwright.model.text import mistake
from rackwright.roles.rdma import problems
from rackwright.roles.rdma.sharp import Sharp

DeviceName = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]{0,31}$")]
"""Without the characters that NCCL_IB_HCA and UCX_NET_DEVICES read as more than a name."""
Psid = Annotated[str, StringConstraints(pattern=r"^[A-Z0-9][A-Za-z0-9_]{2,31}$")]
"""As /sys/class/infiniband/DEVICE/board_id has it, e.g. `MT_0000000838`."""
Firmware = Annotated[str, StringConstraints(pattern=r"^[0-9]+(\.[0-9]+)+$")]

_PCI = re.compile(r"[0-9a-f]{4}:[0-9a-f]{2}:[0-1][0-9a-f]\.[0-7]")
_KERNELS_OWN = re.compile(
    r"(mlx4|mlx5|irdma|i40iw|bnxt_re|cxgb4|iw_cxgb4|qedr|hfi1|efa|erdma|mana|hns|ionic|vmw_pvrdma)_?[0-9]+"
    r"|(ib|roce|iw|opa|rdma)[opsx][0-9].*"
)
"""What drivers, and rdma-core's own rule, call devices: a device found later could have the name already."""


class Device(Frozen):
    """An RDMA device, found by where it is, or made of a network interface."""

    pci: str | None = Field(
        default=None, description="PCI address of the port's function, e.g. `0000:18:00.0`."
    )
    soft: Literal["rxe", "siw"] | None = Field(
        default=None,
        description="Made in software of an Ethernet interface, for labs: rxe speaks RoCE v2, siw iWARP.",
    )
    netdev: InterfaceName | None = Field(
        default=None,
        description="Network interface: of a software device the one it is made of. None: as the role `network` "
        "names it, by network and rail.",
    )
    network: str | None = Field(default=None, description="Network it is on. None: the role's `network`.")
    rail: int = Field(default=0, ge=0, le=63, description="Rail it is cabled to, counted from 0.")

    @field_validator("pci")
    @classmethod
    def _is_pci(cls, pci: str | None) -> str | None:
        if pci is not None and not _PCI.fullmatch(pci):
            raise mistake(
                f"{pci!r} is not a PCI address with its domain in lower case.", "e.g. `0000:18:00.0`"
            )
        return pci

    @model_validator(mode="after")
    def _one_of(self) -> Device:
        if (self.pci is None) == (self.soft is None):
            raise mistake(
                "A device is either at a PCI address (`pci`) or made in software (`soft`).",
                'e.g. `{pci: "0000:18:00.0", rail: 0}`',
            )
        return self


class RdmaOptions(RoleOptions, DeclaresHcas, ReducesInSwitches):
    """RDMA drivers, devices by rail, and what their ports must be; on nodes with an address on a device's network."""

    network: str = Field(
        default="fabric", description="Network of the cluster file that devices are on which name no other."
    )
    devices: dict[DeviceName, Device] = Field(
        default_factory=dict,
        description='Name to where the device is, e.g. `mlx5_rail0: {pci: "0000:18:00.0", rail: 0}`. Tools look for '
        "the driver's prefix, so keep it: `mlx5_`, `irdma_`, `bnxt_re_`.",
    )
    firmware: dict[Psid, Firmware] = Field(
        default_factory=dict,
        description="Declared firmware by PSID (board_id), e.g. `MT_0000000838: 28.43.2026`; compared, never updated.",
    )
    set_link_type: bool = Field(
        default=False,
        description="Set LINK_TYPE_P1 and _P2 of NVIDIA's cards that can be either to the network's kind, for the next "
        "boot (mstconfig). Leave it off for single-protocol cards, which lack the parameter.",
    )
    max_read_request: Literal[128, 256, 512, 1024, 2048, 4096] | None = Field(
        default=None,
        description="Bytes of a PCIe read request, set at each boot in the device control register (bits 14:12; "
        "PCI Express Base Specification, Device Control Register; setpci(8)). None: as the firmware has it.",
    )
    interrupts: Literal["local"] | None = Field(
        default=None,
        description="`local`: each interrupt of a card is handled by a CPU of its NUMA node (sysfs, local_cpulist; Linux, "
        "Documentation/core-api/irq/irq-affinity.rst), moved there at boot and by an apply; irqbalance, where it runs, keeps "
        "them within the node by itself. None: as the kernel and irqbalance have them.",
    )
    sharp: dict[str, Sharp] = Field(
        default_factory=dict,
        description="Networks whose switches reduce (SHARP), e.g. `fabric: {aggregation_manager: 10.0.0.5}`. The site runs "
        "the aggregation manager; NCCL's settings follow.",
    )

    @field_validator("devices")
    @classmethod
    def _have_names(cls, devices: dict[str, Device]) -> dict[str, Device]:
        places: dict[str, str] = {}
        for name, device in devices.items():
            if _KERNELS_OWN.fullmatch(name):
                raise mistake(
                    f"`{name}` is a name that the kernel or rdma-core may give to another device.",
                    f"e.g. `{name.rstrip('0123456789').rstrip('_')}_rail{device.rail}`",
                )
            place = device.pci or device.netdev
            if place is not None and places.setdefault(place, name) != name:
                raise mistake(f"`{places[place]}` and `{name}` are both at {place}.", "one device for each")
        return devices

    def runs_on(self, node: Node) -> bool:
        """On nodes with an address on a network of its devices."""
        networks = {device.network or self.network for device in self.devices.values()} | {self.network}
        return super().runs_on(node) and any(entry.network in networks for entry in node.addresses)

    def on(self, device: Device) -> str:
        """The network of a device."""
        return device.network or self.network

    def of_node(self, node: Node) -> dict[str, Device]:
        """Devices on networks that the node has an address on: those it is to have."""
        networks = {entry.network for entry in node.addresses}
        return {name: device for name, device in self.devices.items() if self.on(device) in networks}

    def hcas(self, cluster: Cluster, node: Node) -> tuple[Hca, ...]:
        """Devices of this node, network by network in the cluster file's order, and rail by rail."""
        order = {name: place for place, name in enumerate(cluster.networks)}
        found = [
            Hca(name, self.on(device), device.rail, device.pci, self.netdev(cluster, node, device))
            for name, device in self.of_node(node).items()
        ]
        return tuple(sorted(found, key=lambda hca: (order.get(hca.network, len(order)), hca.rail)))

    def reduces(self, network: str) -> bool:
        """Where SHARP is declared."""
        return network in self.sharp

    def netdev(self, cluster: Cluster, node: Node, device: Device) -> str | None:
        """The interface of a device: declared, or as the role that names interfaces has it.

        A card's is its port, even with VLANs on it; a software device is made of the one with the address.
        """
        if device.netdev is not None:
            return device.netdev
        names = node.offers(NamesInterfaces)
        if names is None:
            return None
        network = self.on(device)
        if device.soft is not None:
            return names.interface(cluster, network, device.rail)
        return names.port(network, device.rail)

    def problems(self, cluster: Cluster) -> Iterator[Trouble]:
        """Devices that contradict the cluster's networks."""
        return problems.problems(self, cluster)

    def lock_problems(self, cluster: Cluster) -> Iterator[Trouble]:
        """DOCA-OFED that the lock does not have."""
        return problems.of_lock(self, cluster)

    def warnings(self, cluster: Cluster) -> Iterator[Trouble]:
        """Rails without a device, and limits that RDMA does not work with."""
        return problems.warnings(self, cluster)

"""Which of a node's ports, drives and PCI devices are the declared ones; no check judges the rest."""

from __future__ import annotations

from dataclasses import dataclass

from rackwright.health.checks import scope
from rackwright.health.document import Document
from rackwright.health.expected import Expected
from rackwright.health.gpu_records import PciDevice
from rackwright.health.node_records import Drive, RdmaDevice, RdmaPort
from rackwright.health.records import Unreadable

LAYERS = {"infiniband": "InfiniBand", "roce": "Ethernet"}
ALIKE = 0.9
"""A drive of at least this share of the declared size counts as declared; a separate check judges its size."""
WIDEST = 32
"""Lanes of the widest PCIe link; sysfs shows 0 or 255 if it could not read the width."""


@dataclass(frozen=True)
class Port:
    """A declared RDMA port with its device."""

    device: RdmaDevice
    port: RdmaPort
    kind: str
    speed_gbps: int

    @property
    def label(self) -> str:
        return f"{self.device.name}/{self.port.port}"

    @property
    def board(self) -> str | None:
        try:
            return self.device.board
        except Unreadable:
            return None

    @property
    def rate(self) -> float:
        """0 where it cannot be read."""
        try:
            return self.port.rate_gbps
        except Unreadable:
            return 0.0

    @property
    def is_up(self) -> bool:
        try:
            return self.port.state == "ACTIVE"
        except Unreadable:
            return False


def ports_of_kind(expected: Expected, document: Document, kind: str) -> list[Port]:
    """The declared ports of a link kind, at most as many as are declared.

    Ports at a declared speed come first, then ports of the same boards, then any port that is down.
    A port of another board that is up at another speed, such as an on-board NIC, is not declared.
    """
    speeds = sorted((e.speed_gbps for e in expected.ports_of(kind) for _ in range(e.count)), reverse=True)
    if not speeds:
        return []
    there = [
        Port(device, port, kind, speeds[-1])
        for device in document.infiniband.devices
        for port in device.ports
        if port.layer == LAYERS[kind]
    ]
    right = [one for one in there if one.is_up and one.rate >= speeds[-1]]
    boards = {one.board for one in right}
    alike = [one for one in there if one not in right and (one.board in boards or not boards)]
    down = [one for one in there if one not in right and one not in alike and not one.is_up]
    ranked = [one for group in (right, alike, down) for one in sorted(group, key=lambda one: -one.rate)]
    return [
        Port(one.device, one.port, kind, speed)
        for one, speed in zip(ranked, speeds)  # noqa: B905 - Python 3.9
    ]


def undeclared(expected: Expected, kind: str) -> str:
    """Why the ports of a declared fabric are unknown."""
    return f"the declared fabric is {kind}, but the SKU {expected.sku} declares no {kind} port"


def ports(expected: Expected, document: Document, *kinds: str) -> list[Port]:
    """The declared RDMA ports that are present; a separate check reports missing ones."""
    wanted = kinds or tuple(LAYERS)
    found = [one for kind in wanted for one in ports_of_kind(expected, document, kind)]
    unknown = [kind for kind in wanted if kind in expected.unknown_ports]
    if not found and unknown:
        raise Unreadable(undeclared(expected, unknown[0]))
    if not found:
        raise Unreadable("no declared RDMA port was found")
    return found


def devices(expected: Expected, document: Document) -> list[RdmaDevice]:
    """The devices of the declared RDMA ports."""
    found = {one.device.name: one.device for one in ports(expected, document)}
    return list(found.values())


def drives(expected: Expected, document: Document) -> list[Drive]:
    """The declared NVMe drives: about a declared size or larger, or of the same model as one that is.

    A smaller boot drive does not count. A drive without a size may be dead.
    """
    least = ALIKE * min((group.size_gb for group in expected.drives), default=0)
    there = document.nvme.drives
    right = [one for one in there if (_size(one) or 0) >= least]
    models = {_model(one) for one in right} - {None}
    found = [one for one in there if one in right or _size(one) is None or _model(one) in models]
    found = found or there  # all have another size: the size check is to report that
    if not found:
        raise Unreadable("no NVMe drive was found")
    return found


def _size(drive: Drive) -> int | None:
    try:
        return drive.size_gb
    except Unreadable:
        return None


def _model(drive: Drive) -> str | None:
    try:
        return drive.model
    except Unreadable:
        return None


def addresses(expected: Expected, document: Document) -> set[str]:
    """PCI addresses of the declared fabric NICs and NVMe drives."""
    found, rdma, nvme = set(), document.infiniband, document.nvme
    if scope.rdma(expected) and rdma.devices:
        found |= {device.address for device in devices(expected, document)}
    if scope.drives(expected) and nvme.drives:
        found |= {drive.address for drive in drives(expected, document)}
    return found


def on_the_bus(expected: Expected, document: Document) -> list[PciDevice]:
    """The declared GPUs, fabric NICs and drives as PCI devices; UNKNOWN if there are none."""
    where = addresses(expected, document)
    found = [
        device
        for device in document.pci.devices
        if device.address in where or (scope.any_gpus(expected) and device.is_gpu)
    ]
    if not found:
        raise Unreadable("no declared GPU, fabric NIC or drive is on the bus")
    return found


@dataclass(frozen=True)
class PcieLink:
    """A PCIe link and its maximum: what both the device and its slot support."""

    device: PciDevice
    width: int
    width_max: int
    speed_gts: float
    speed_max_gts: float

    @property
    def is_degraded(self) -> bool:
        return self.width < self.width_max or self.speed_gts < self.speed_max_gts

    @property
    def gbps(self) -> float:
        """Bandwidth after encoding: 8b/10b below 8 GT/s, at least 128b/130b from there on."""
        return self.width * self.speed_gts * (0.8 if self.speed_gts < 8 else 128 / 130)

    def __str__(self) -> str:
        return (
            f"{self.device.address}: x{self.width} at {self.speed_gts:g} GT/s "
            f"of x{self.width_max} at {self.speed_max_gts:g} GT/s"
        )


def lanes(device: PciDevice) -> tuple[int, int]:
    """(lanes in use, lanes that both the device and its slot have)."""
    width, most = device.width, device.width_max
    if not (0 < width <= WIDEST and 0 < most <= WIDEST):
        raise Unreadable(
            f"{device.address}: the kernel shows a PCIe width of {width}, at most {most}: not read"
        )
    slot = device.slot_width
    return width, min(most, slot) if slot is not None and 0 < slot <= WIDEST else most


def pcie_link(device: PciDevice) -> PcieLink:
    """The link of a device. A card in a slot with fewer lanes or a lower speed counts as intended."""
    width, width_max = lanes(device)
    slot = device.slot_speed_gts
    most = device.speed_max_gts
    return PcieLink(device, width, width_max, device.speed_gts, min(most, slot) if slot else most)

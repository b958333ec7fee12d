"""GPUs, NICs and drives on PCIe: width, generation, replays and the kernel's error counters."""

from __future__ import annotations

from collections.abc import Iterator

from rackwright.health.checks import declared, scope
from rackwright.health.document import Document
from rackwright.health.expected import Expected
from rackwright.health.gpu_records import Gpu, PciDevice
from rackwright.health.history import DAY, HOUR, name, rising
from rackwright.health.records import Unreadable
from rackwright.health.registry import check, each
from rackwright.health.verdict import Action, Finding, aside, fail, warn
from rackwright.status import Status

BUSY = ("P0", "P1")
BUSY_PERCENT = 10
"""An idle link widens and speeds up under load."""
VM = "vm"
BY_DESIGN = "a VM has the lanes its host gives it, and the SKU declares no width"
RESEAT = "Reseat the board or cable. If the same slot fails with another board, the slot is at fault."


@check(
    "gpu", "Every GPU uses all its PCIe lanes", reads=("gpus",), applies=scope.gpus, action=Action.REBOOT,
    remedy=RESEAT + " If the slot has fewer lanes by design, declare the width in the SKU.",
    source="the declared SKU, else the widest of the node's GPUs; nhc.conf of deepops: PCIe width 16",
)  # fmt: skip
def gpu_pcie_width(expected: Expected, document: Document) -> Iterator[Finding]:
    declared, gpus = expected.the_gpus().pcie_width, document.gpus.some()
    widest = max((width for width in map(width_of, gpus) if width is not None), default=0)

    def judge(gpu: Gpu) -> Finding | None:
        width, own = gpu.pcie.width, declared or gpu.pcie.width_max
        if width >= own:
            return None
        evidence = f"{gpu.label} has {width} of {own} lanes"
        if declared or expected.platform != VM:
            # If all are alike, the board has such slots: that is likelier than a fault in each.
            return fail(evidence, None if declared or width < widest else Action.NONE)
        return (
            warn(f"{evidence}, another GPU of this VM has {widest}") if width < widest else aside(BY_DESIGN)
        )

    yield from each(gpus, judge, f"x{declared}" if declared else "all")


def width_of(gpu: Gpu) -> int | None:
    try:
        return gpu.pcie.width
    except Unreadable:
        return None


@check(
    "gpu", "Every GPU reaches its full PCIe generation", reads=("gpus",), applies=scope.gpus, action=Action.REBOOT,
    remedy=RESEAT,
)  # fmt: skip
def gpu_pcie_generation(expected: Expected, document: Document) -> Iterator[Finding]:
    declared = expected.the_gpus().pcie_generation

    def judge(gpu: Gpu) -> Finding | None:
        wanted = declared or gpu.pcie.gen_max
        if gpu.pcie.gen_max < wanted:
            return fail(f"{gpu.label} can reach generation {gpu.pcie.gen_max} of {wanted} in its slot")
        if gpu.pcie.gen < wanted and gpu.pstate in BUSY and gpu.utilization >= BUSY_PERCENT:
            return fail(f"{gpu.label} works at generation {gpu.pcie.gen} of {wanted}")
        return None

    yield from each(document.gpus.some(), judge, f"generation {declared}" if declared else "its own")


@check(
    "gpu", "GPUs have few PCIe replays", reads=("gpus", "history"), applies=scope.gpus,
    limits=("gpu_pcie_replays_warn", "gpu_pcie_replays"), remedy=RESEAT,
    source="NVIDIA DCGM health watch: PCIe replay rate; ClusterMAX passive checks: PCIe replay",
)  # fmt: skip
def gpu_pcie_replays(expected: Expected, document: Document) -> Iterator[Finding]:
    some, many = expected.limit("gpu_pcie_replays_warn"), expected.limit("gpu_pcie_replays")

    def judge(gpu: Gpu) -> Finding | None:
        what, key, now = f"{gpu.label}: replays", name("gpu", gpu.uuid, "replays"), gpu.pcie.replays
        found = rising(document, what, key, now, many, HOUR)
        if found is not None:
            return found
        found = rising(document, what, key, now, some, HOUR)
        return warn(found.evidence) if found is not None and found.status is Status.FAIL else None

    yield from each(document.gpus.some(), judge, "few")


@check(
    "gpu", "Every GPU has a NUMA node", reads=("pci",), applies=scope.any_gpus, needs=("hardware",),
    action=Action.NONE, remedy="Update the BIOS: its tables omit the GPU's NUMA node.",
    source="NVIDIA NCCL user guide: affinity comes from the PCI topology",
)  # fmt: skip
def gpu_numa(expected: Expected, document: Document) -> Iterator[Finding]:
    nodes = expected.numa_nodes or expected.sockets

    def judge(device: PciDevice) -> Finding | None:
        if nodes > 1 and device.numa < 0:
            return fail(f"{device.address} has no NUMA node")
        return None

    gpus = [device for device in document.pci.devices if device.is_gpu]
    if not gpus:
        raise Unreadable("no GPU is on the bus")
    yield from each(gpus, judge, f"{len(gpus)} GPUs")


def counted(device: PciDevice, errors: int | None) -> int:
    if errors is None:
        raise Unreadable(f"the kernel does not count the PCIe errors of {device.address}")
    return errors


def with_links(expected: Expected) -> bool:
    return scope.any_gpus(expected) or scope.rdma(expected) or scope.drives(expected)


@check(
    "fabric", "No declared device has uncorrected PCIe errors", reads=("pci", "infiniband", "nvme", "history"),
    applies=with_links, needs=("hardware",), limits=("pcie_uncorrected",), remedy=RESEAT,
    source="ClusterMAX passive checks; Linux sysfs AER counters",
)  # fmt: skip
def pcie_uncorrected(expected: Expected, document: Document) -> Iterator[Finding]:
    most = expected.limit("pcie_uncorrected")

    def judge(pair: tuple[PciDevice, str]) -> Finding | None:
        device, kind = pair
        errors = counted(device, device.aer.fatal if kind == "fatal" else device.aer.nonfatal)
        key = name("pci", device.address, kind)
        return rising(document, f"{device.address}: {kind} errors", key, errors, most, DAY)

    there = declared.on_the_bus(expected, document)
    yield from each([(one, kind) for one in there for kind in ("nonfatal", "fatal")], judge, "none")


@check(
    "fabric", "Declared devices have few corrected PCIe errors", reads=("pci", "infiniband", "nvme", "history"),
    applies=with_links, needs=("hardware",), limits=("pcie_corrected",), remedy=RESEAT,
    source="ClusterMAX passive checks; Linux sysfs AER counters",
)  # fmt: skip
def pcie_corrected(expected: Expected, document: Document) -> Iterator[Finding]:
    most = expected.limit("pcie_corrected")

    def judge(device: PciDevice) -> Finding | None:
        errors = counted(device, device.aer.correctable)
        key = name("pci", device.address, "corrected")
        return rising(document, f"{device.address}: corrected errors", key, errors, most, HOUR)

    yield from each(declared.on_the_bus(expected, document), judge, "few")


@check(
    "fabric", "The PCIe link of every declared RDMA port is fast enough for the port", reads=("pci", "infiniband"),
    applies=scope.rdma, needs=("hardware",), action=Action.REBOOT, remedy=RESEAT,
    source="imbue cluster-health; what the device and its slot both support",
)  # fmt: skip
def nic_pcie_link(expected: Expected, document: Document) -> Iterator[Finding]:
    there = declared.ports(expected, document)
    speeds = {one.device.address: one.speed_gbps for one in there}

    def judge(device: PciDevice) -> Finding | None:
        link, speed = declared.pcie_link(device), speeds[device.address]
        if not link.is_degraded:
            return None
        if link.gbps < speed:
            return fail(f"{link}: carries {link.gbps:.0f} of the port's {speed} Gb/s")
        return warn(f"{link}: enough for the port's {speed} Gb/s")

    nics = [device for device in document.pci.devices if device.address in speeds]
    missing = sorted(set(speeds) - {device.address for device in nics})
    if missing:
        raise Unreadable(f"not on the bus: {' '.join(missing)}")
    yield from each(nics, judge, f"{len(nics)} NICs")


@check(
    "gpu", "The kernel sees all PCIe lanes of every GPU", reads=("pci",), applies=scope.any_gpus, needs=("hardware",),
    action=Action.REBOOT, remedy=RESEAT,
    source="the declared SKU, else what the GPU and its slot both have; needs no nvidia-smi",
)  # fmt: skip
def gpu_pcie_lanes(expected: Expected, document: Document) -> Iterator[Finding]:
    gpus = [device for device in document.pci.devices if device.is_gpu]

    def judge(device: PciDevice) -> Finding | None:
        width, most = declared.lanes(device)
        wanted = expected.the_gpus().pcie_width or most
        return None if width >= wanted else fail(f"{device.address} has {width} of {wanted} lanes")

    if not gpus:
        raise Unreadable("no GPU is on the bus")
    yield from each(gpus, judge, f"{len(gpus)} GPUs")

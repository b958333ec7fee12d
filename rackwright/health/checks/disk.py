"""NVMe drives and md arrays."""

from __future__ import annotations

from collections.abc import Iterator

from rackwright.health.checks import declared, scope
from rackwright.health.document import Document
from rackwright.health.expected import Expected
from rackwright.health.gpu_records import PciDevice
from rackwright.health.history import DAY, name, rising
from rackwright.health.node_records import Array, Drive, Smart
from rackwright.health.records import Unreadable
from rackwright.health.registry import check, each
from rackwright.health.verdict import Action, Finding, aside, fail, good, warn

REPLACE = "Replace the drive."
GOOD_STATES = ("clean", "active", "active-idle", "readonly", "read-auto", "write-pending")
BROKEN = "broken"
BAD_STATES = ("inactive", "clear", "suspended", BROKEN)
WITHOUT_SPARE = ("raid0", "linear")
"""Levels without redundancy: losing one drive loses the array."""
CONTAINER = "container"
"""Holds the metadata of the arrays in it and is never active itself (mdadm: IMSM, DDF)."""
AT_WORK = ("recover", "resync", "reshape")
VM = "vm"
"""QEMU leaves both SMART values at 0 (hw/nvme/ctrl.c, nvme_smart_info; read 2026-11-23)."""
GONE = ("dead", "deleting", "deleting (no IO)")
"""States of a controller that the kernel has given up on (drivers/nvme/host/sysfs.c); others are transient."""
UNRELIABLE = 0x01 | 0x04 | 0x08
"""Critical warnings of a failing drive: too few spare blocks, degraded reliability, read-only media. The
others are a temperature, a failed backup of volatile memory and a persistent region (NVM Express, SMART log)."""


def smart_of(drive: Drive) -> Smart:
    found = drive.smart
    if found is None:
        raise Unreadable(f"{drive.name}: {drive.smart_why or 'no health log'}")
    return found


@check(
    "disk", "Every declared NVMe drive is present", reads=("nvme",), applies=scope.drives, action=Action.RMA,
    remedy="Reseat the drive; if it stays missing, replace it.", source="the declared SKU; Azure NVMe count",
)  # fmt: skip
def nvme_count(expected: Expected, document: Document) -> Iterator[Finding]:
    wanted = sum(group.count for group in expected.drives)
    found = len(declared.drives(expected, document)) if document.nvme.drives else 0
    if found < wanted:
        yield fail(f"{found} of {wanted} drives")
    yield good(f"{found} drives")


@check(
    "disk", "The NVMe drives have their declared size", reads=("nvme",), applies=scope.drives, action=Action.NONE,
    limits=("nvme_size_tolerance_percent",), remedy="Not the declared drive, or a namespace is missing.",
)  # fmt: skip
def nvme_size(expected: Expected, document: Document) -> Iterator[Finding]:
    share = 1 - expected.limit("nvme_size_tolerance_percent") / 100
    sizes = sorted((drive.size_gb for drive in declared.drives(expected, document)), reverse=True)
    wanted = sorted((group.size_gb for group in expected.drives for _ in range(group.count)), reverse=True)
    short = [f"{size} of {want} GB" for size, want in zip(sizes, wanted) if size < want * share]  # noqa: B905
    if short:
        yield fail(f"too small: {', '.join(short)}")
    yield good(f"{len(sizes)} drives")


@check(
    "disk", "Every NVMe controller is live", reads=("nvme",), applies=scope.drives, action=Action.REBOOT,
    remedy="Reboot; again: " + REPLACE, source="Linux sysfs nvme state",
)  # fmt: skip
def nvme_state(expected: Expected, document: Document) -> Iterator[Finding]:
    def judge(drive: Drive) -> Finding | None:
        if drive.state == "live":
            return None
        return (
            fail(f"{drive.name} is {drive.state}")
            if drive.state in GONE
            else warn(f"{drive.name} is {drive.state}")
        )

    yield from each(declared.drives(expected, document), judge, "live")


@check(
    "disk", "No NVMe drive reports that it is failing", reads=("nvme",), applies=scope.drives, action=Action.RMA,
    remedy=REPLACE, source="NVM Express SMART log, critical_warning; libnvme nvme_smart_crit",
)  # fmt: skip
def nvme_warning(expected: Expected, document: Document) -> Iterator[Finding]:
    def judge(drive: Drive) -> Finding | None:
        flags = smart_of(drive).critical_warning
        if flags & UNRELIABLE:
            return fail(f"{drive.name}: critical warning 0x{flags:02x}")
        return warn(f"{drive.name}: critical warning 0x{flags:02x}") if flags else None

    yield from each(declared.drives(expected, document), judge, "none")


@check(
    "disk", "No NVMe drive is worn out", reads=("nvme",), applies=scope.drives, action=Action.NONE,
    limits=("nvme_used_warn_percent", "nvme_used_fail_percent"), remedy="Plan its replacement; it still works.",
    source="NVM Express SMART log: 100 % is the vendor's estimate of its life, not a failure",
)  # fmt: skip
def nvme_wear(expected: Expected, document: Document) -> Iterator[Finding]:
    most, much = expected.limit("nvme_used_fail_percent"), expected.limit("nvme_used_warn_percent")

    def judge(drive: Drive) -> Finding | None:
        used = smart_of(drive).used
        if used >= most:
            return fail(f"{drive.name}: {used} % of its endurance used")
        return warn(f"{drive.name}: {used} % of its endurance used") if used >= much else None

    yield from each(declared.drives(expected, document), judge, "fresh")


@check(
    "disk", "Every NVMe drive has spare blocks", reads=("nvme",), applies=scope.drives, action=Action.RMA, remedy=REPLACE,
    source="the drive's own threshold in the NVM Express SMART log",
)  # fmt: skip
def nvme_spare(expected: Expected, document: Document) -> Iterator[Finding]:
    def judge(drive: Drive) -> Finding | None:
        smart = smart_of(drive)
        if smart.spare >= max(smart.spare_least, 1):
            return None
        if expected.platform == VM and smart.spare == smart.spare_least == 0:
            return aside(f"{drive.name} is emulated: it counts no spare blocks")
        return fail(f"{drive.name}: {smart.spare} % spare, its threshold is {smart.spare_least} %")

    yield from each(declared.drives(expected, document), judge, "enough")


@check(
    "disk", "No NVMe drive has new media errors", reads=("nvme", "history"), applies=scope.drives, remedy=REPLACE,
    limits=("nvme_media_errors",), source="NVM Express SMART log: media and data integrity errors",
)  # fmt: skip
def nvme_media_errors(expected: Expected, document: Document) -> Iterator[Finding]:
    most = expected.limit("nvme_media_errors")

    def judge(drive: Drive) -> Finding | None:
        errors, key = smart_of(drive).media_errors, name("nvme", drive.name, "media_errors")
        return rising(document, f"{drive.name}: media errors", key, errors, most, DAY)

    yield from each(declared.drives(expected, document), judge, "none")


@check(
    "disk", "NVMe drives are within their temperature limit", reads=("nvme",), applies=scope.drives, limits=("nvme_temperature_c",), action=Action.NONE,
    remedy="Check airflow and blanking panels.", source="NVM Express SMART log",
)  # fmt: skip
def nvme_temperature(expected: Expected, document: Document) -> Iterator[Finding]:
    most = expected.limit("nvme_temperature_c")

    def judge(drive: Drive) -> Finding | None:
        now = smart_of(drive).temperature_c
        return fail(f"{drive.name}: {now} C") if now > most else None

    yield from each(declared.drives(expected, document), judge, "cool")


@check(
    "disk", "Every NVMe drive uses its full PCIe link", reads=("nvme", "pci"), applies=scope.drives, needs=("hardware",),
    action=Action.NONE, remedy="Reseat the drive; then its backplane.", source="what the drive and its slot both support",
)  # fmt: skip
def nvme_pcie_link(expected: Expected, document: Document) -> Iterator[Finding]:
    where = {drive.address for drive in declared.drives(expected, document)}

    def judge(device: PciDevice) -> Finding | None:
        link = declared.pcie_link(device)
        return fail(str(link)) if link.is_degraded else None

    devices = [device for device in document.pci.devices if device.address in where]
    missing = sorted(where - {device.address for device in devices})
    if missing:
        raise Unreadable(f"not on the bus: {' '.join(missing)}")
    yield from each(devices, judge, "whole")


@check(
    "disk", "NVMe drives of a model run one firmware version, the declared one if the site declares it", reads=("nvme",), applies=scope.drives,
    action=Action.NONE, remedy="Update the firmware with nvme fw-download and fw-commit.", source="imbue cluster-health: firmware consistency",
)  # fmt: skip
def nvme_firmware(expected: Expected, document: Document) -> Iterator[Finding]:
    versions: dict[str, set[str]] = {}
    for drive in declared.drives(expected, document):
        versions.setdefault(drive.model, set()).add(drive.firmware)
    for model, there in sorted(versions.items()):
        wanted = expected.nvme_firmware.get(model)
        if wanted is not None and there != {wanted}:
            yield fail(f"{model} runs {' '.join(sorted(there))}, declared {wanted}")
        elif len(there) > 1:
            yield fail(f"{model} runs mixed firmware: {' '.join(sorted(there))}")
    yield good("; ".join(f"{model} {' '.join(there)}" for model, there in sorted(versions.items())))


@check(
    "disk", "No declared md array lacks a drive", reads=("arrays",), needs=("hardware",), action=Action.DRAIN,
    remedy="mdadm --detail names the missing drive; replace it, then mdadm --add.",
    source="StackHPC alert: md failed; soperator nvme_raid_health",
)  # fmt: skip
def array_health(expected: Expected, document: Document) -> Iterator[Finding]:
    there = [array for array in document.arrays.arrays if array.level != CONTAINER]
    for missing in sorted(set(expected.arrays) - {array.name for array in there}):
        yield fail(f"{missing} is missing")

    def judge(array: Array) -> Finding | None:
        is_declared = array.name in expected.arrays
        # `broken`: a stripe that lost a drive, and with it all data, whether or not it is declared here
        if array.degraded or array.state == BROKEN or (array.state in BAD_STATES and is_declared):
            evidence = f"{array.name} is {array.state}, {array.degraded or 0} drives missing"
            return fail(evidence) if is_declared else warn(evidence + "; it is not declared")
        if array.action in AT_WORK:
            return warn(f"{array.name} is running a {array.action}")
        if not is_declared:
            return None
        if array.state not in GOOD_STATES:
            raise Unreadable(f"{array.name} is in an unknown state: {array.state}")
        if array.degraded is None and array.level not in WITHOUT_SPARE:
            raise Unreadable(f"{array.name} does not show how many drives it lacks")
        return None

    yield from each(there, judge, f"{len(there)} arrays")

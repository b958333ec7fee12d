"""The PCI bus from sysfs, without any NVIDIA library."""

from __future__ import annotations

import re
import struct
from typing import Any

from rackwright.health.probe.source import Source, Unavailable, integer, number, pairs

DEVICES = "/sys/bus/pci/devices"
NVIDIA, AMD, MELLANOX = "10de", "1002", "15b3"
AMD_GPUS = ("03", "12")
"""PCI base classes, needed because AMD processors have bridges, USB and more under the same vendor ID."""
BRIDGE = "0604"
NVME = "0108"
ADDRESS = r"[0-9a-f]{4,}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]"
ACS_CAPABILITY = 0x000D
EXTENDED_START = 0x100
ACS_REDIRECT_BITS = 0x1C
"""P2P Request Redirect, P2P Completion Redirect, Upstream Forwarding."""


def pci(source: Source, request: dict[str, Any]) -> dict[str, Any]:
    """GPUs, NVSwitches, NICs and NVMe drives with their links, and bridges that redirect peer traffic."""
    names = source.names(DEVICES)
    if not names:
        raise Unavailable(f"{DEVICES}: no device")
    devices: list[dict[str, Any]] = []
    redirecting: list[str] = []
    unread: list[str] = []
    for name in names:
        at = f"{DEVICES}/{name}"
        kind = (source.maybe(at + "/class") or "")[2:6]
        vendor = (source.maybe(at + "/vendor") or "")[2:]
        if not re.fullmatch("[0-9a-f]{4}", kind):
            unread.append(name)  # it might be a bridge
        elif kind == BRIDGE:
            control = acs_control(source, at)
            if control is None:
                unread.append(name)
            elif control & ACS_REDIRECT_BITS:
                redirecting.append(name)
        elif judged(vendor, kind):
            devices.append(device(source, name, at, kind, vendor))
    return {
        "devices": devices,
        "acs_redirecting": redirecting,
        "acs_unread": unread,
        "iommu": iommu(source),
        "nvidia_gpus": len(source.names("/proc/driver/nvidia/gpus")),
        "nvswitches": len(source.names("/proc/driver/nvidia-nvswitch/devices")),
    }


def judged(vendor: str, kind: str) -> bool:
    """Whether this is a GPU, an NVSwitch, a NIC or a drive."""
    amd_gpu = vendor == AMD and kind.startswith(AMD_GPUS)
    return vendor in (NVIDIA, MELLANOX) or amd_gpu or kind == NVME or kind.startswith("02")


def device(source: Source, name: str, at: str, kind: str, vendor: str) -> dict[str, Any]:
    """One PCI function."""
    driver = source.target(at + "/driver")
    where = source.target(at)
    upstream = bridges_above(where, name) if where is not None else None
    slot = f"{DEVICES}/{upstream[-1]}" if upstream else None
    return {
        "address": name,
        "class": kind,
        "vendor": vendor if re.fullmatch("[0-9a-f]{4}", vendor) else None,
        "device": (source.maybe(at + "/device") or "")[2:],
        "driver": driver.rsplit("/", 1)[-1] if driver else None,
        "numa": integer(source.maybe(at + "/numa_node")),
        "speed_gts": number(source.maybe(at + "/current_link_speed")),
        "speed_max_gts": number(source.maybe(at + "/max_link_speed")),
        "width": integer(source.maybe(at + "/current_link_width")),
        "width_max": integer(source.maybe(at + "/max_link_width")),
        "upstream": upstream,
        "slot_speed_gts": number(source.maybe(slot + "/max_link_speed")) if slot else None,
        "slot_width": integer(source.maybe(slot + "/max_link_width")) if slot else None,
        "aer": {
            "correctable": aer(source, at + "/aer_dev_correctable", "TOTAL_ERR_COR"),
            "nonfatal": nonfatal(source, at + "/aer_dev_nonfatal"),
            "fatal": aer(source, at + "/aer_dev_fatal", "TOTAL_ERR_FATAL"),
        },
    }


def bridges_above(where: str, name: str) -> list[str]:
    """The bridges between the root of the bus and a device, the nearest last, from its real path."""
    parts = [part for part in where.split("/") if re.fullmatch(ADDRESS, part)]
    return [part for part in parts if part != name]


def nonfatal(source: Source, path: str) -> int | None:
    """Non-fatal errors except unsupported requests, which healthy devices count during a bus scan."""
    total = aer(source, path, "TOTAL_ERR_NONFATAL")
    unsupported = aer(source, path, "UnsupReq")
    return total - (unsupported or 0) if total is not None else None


def aer(source: Source, path: str, total: str) -> int | None:
    """A total of the kernel's AER counters; None if the device has none."""
    text = source.maybe(path)
    return integer(pairs(text, " ").get(total)) if text is not None else None


def acs_control(source: Source, at: str) -> int | None:
    """The ACS control register of a bridge; 0 if it has none, None if it could not be read."""
    offset = EXTENDED_START
    for _ in range(48):  # a chain longer than this is a loop
        try:
            raw = source.data(at + "/config", offset, 8)
        except Unavailable:
            return None
        if len(raw) < 8:  # without root only 64 bytes can be read; plain PCI has 256
            return 0 if at_least_root(source, at) else None
        header, registers = struct.unpack("<II", raw)
        if header in (0, 0xFFFFFFFF):
            return 0
        if header & 0xFFFF == ACS_CAPABILITY:
            return int(registers >> 16)
        offset = header >> 20
        if offset < EXTENDED_START:
            return 0
    return None


def at_least_root(source: Source, at: str) -> bool:
    """Whether the configuration space can be read beyond its world-readable part."""
    try:
        return len(source.data(at + "/config", 64, 8)) == 8
    except Unavailable:
        return False


def iommu(source: Source) -> dict[str, int]:
    """The number of IOMMU groups by translation type; empty without an IOMMU."""
    kinds: dict[str, int] = {}
    for group in source.names("/sys/kernel/iommu_groups"):
        kind = source.maybe(f"/sys/kernel/iommu_groups/{group}/type") or "unknown"
        kinds[kind] = kinds.get(kind, 0) + 1
    return kinds

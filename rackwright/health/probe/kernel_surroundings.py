"""Context of a kernel message: the kind of the device at a PCI address, and the mount points of a drive."""

from __future__ import annotations

import re

from rackwright.health.probe.kernel_events import Surroundings
from rackwright.health.probe.source import Source, Unavailable

DEVICES = "/sys/bus/pci/devices"
BLOCK = "/sys/class/block"
GPU_CLASSES = ("0300", "0302", "0380", "1200")
GPU_VENDORS = ("10de", "1002")
DEPTH = 6
"""Partition, md, LVM, encryption: the deepest usual stack of block devices."""


class Sysfs(Surroundings):
    """Looked up on the node, only when an error names a device."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._kinds: dict[str, tuple[str, str]] | None = None

    def device(self, address: str) -> str | None:
        """gpu, nvswitch, rdma, nvme or other; for a bridge, the kind of the device behind it. None: not on the bus."""
        if self._kinds is None:
            self._kinds = {name: self._one(name) for name in self._source.names(DEVICES)}
        address = address.lower()
        address = address if "." in address else address + ".0"
        if address not in self._kinds:
            return None
        kind, path = self._kinds[address]
        if kind != "bridge":
            return kind
        behind = {one for one, where in self._kinds.values() if path and where.startswith(path + "/")}
        return next((one for one in ("gpu", "rdma", "nvswitch", "nvme") if one in behind), "other")

    def _one(self, name: str) -> tuple[str, str]:
        at = f"{DEVICES}/{name}"
        kind = (self._source.maybe(at + "/class") or "")[2:6]
        vendor = (self._source.maybe(at + "/vendor") or "")[2:]
        path = self._source.target(at) or ""
        if vendor in GPU_VENDORS and kind in GPU_CLASSES:
            return "gpu", path
        if vendor == "10de" and kind == "0680":
            return "nvswitch", path
        if kind == "0207" or self._source.names(at + "/infiniband"):
            return "rdma", path
        return {"0108": "nvme", "0604": "bridge"}.get(kind, "other"), path

    def mounts(self, device: str) -> list[str] | None:
        """Mount points of filesystems on a block device, or on an array or volume it is part of."""
        try:
            lines = self._source.text("/proc/self/mounts").splitlines()
        except Unavailable:
            return None
        names, found = self._above(device), []
        for line in lines:
            source, target = ([*line.split(" "), "", ""])[:2]
            if re.sub(r"^/dev/(?:mapper/)?", "", source) in names and source.startswith("/dev/"):
                found.append(target)
        return sorted(set(found))

    def _above(self, device: str) -> set[str]:
        """The names of a block device, its partitions, and what is built on them."""
        names, new = {device}, {device}
        for _ in range(DEPTH):
            found: set[str] = set()
            for one in new:
                inside = self._source.names(f"{BLOCK}/{one}")
                found |= {name for name in inside if name.startswith(one)}
                found |= set(self._source.names(f"{BLOCK}/{one}/holders"))
            new = found - names
            names |= new
        mapped = (self._source.maybe(f"{BLOCK}/{one}/dm/name") for one in sorted(names))
        return names | {name for name in mapped if name}

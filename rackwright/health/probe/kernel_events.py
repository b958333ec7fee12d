"""Groups kernel messages into errors: related and identical lines become one entry."""

from __future__ import annotations

import re
from typing import Any

from rackwright.health.probe.kernel_patterns import match

KEPT_PER_KIND = 200
MESSAGE_CHARACTERS = 400
UNCORRECTED = 1 << 61
"""Bit UC of a machine check bank's status: uncorrected error."""
BURST_SECONDS = 60
BACK = {"nfs_back": "nfs_silent", "lustre_back": "lustre_silent"}
GHES_KINDS = {"memory error": "memory_uncorrected", "PCIe error": "aer_uncorrected"}
GHES_BAD = ("recoverable", "fatal")
_SEVERITY = re.compile(r"\b(Nonfatal|Fatal)\s+XC ?\d+ i ?\d+ Link -?\d+ [(\[][0-9a-fx ]+[)\]]?$")
"""End of an NVLink 5 XID line, after the process name."""
_CAUSE = re.compile(r"\bcaused by previous Xid (\d+)$")
_RECOVERY = re.compile(
    r"GPU recovery action changed from 0x[0-9a-f]+ \([^()]*\) to 0x[0-9a-f]+ \(([^()]*)\)$", re.IGNORECASE
)
_SWITCH = re.compile(r"(Non-fatal|Fatal), ")

NAMES = ("server", "severity", "cause", "recovery", "driver")
FIGURES = ("gbps", "speed", "width", "best", "wide")


class Surroundings:
    """Context about a node's devices: none here, for a log that was captured alone."""

    def device(self, address: str) -> str | None:
        """gpu, nvswitch, rdma, nvme or other; None if the device is not on the bus."""
        return None

    def mounts(self, device: str) -> list[str] | None:
        """Mount points of a block device; None if unknown."""
        return None


class Events:
    """Collects errors from lines in order."""

    def __init__(self, around: Surroundings) -> None:
        self.counts: dict[str, int] = {}
        self._around = around
        self._kept: dict[str, dict[tuple[Any, ...], dict[str, Any]]] = {}
        self._bursts: dict[int, set[tuple[str, int]]] = {}
        self._gpu: str | None = None
        self._switch: dict[tuple[str, str], dict[str, Any]] = {}
        self._hardware: dict[str | None, dict[str, Any]] = {}

    def add(self, at: float, message: str, device: str | None = None) -> None:
        """Add one line; `device` is the kernel's structured field for the PCI device."""
        matched = match(message)
        if matched is None:
            return
        kind, found = matched
        fields = {name: value for name, value in found.groupdict().items() if value is not None}
        handler = getattr(self, "_on_" + kind, None)
        if handler is not None:
            handler(at, message, fields)
        elif kind in BACK:
            self._came_back(BACK[kind], fields["server"], at)
        else:
            pci = fields.get("source") or device or fields.get("pci")
            about = pci or fields.get("dev") or fields.get("port")
            self._keep(kind, at, message, about, fields, (fields.get("server"),))

    def entries(self) -> list[dict[str, Any]]:
        """Every entry, sorted by its last time, oldest first."""
        found = [one for kept in self._kept.values() for one in kept.values()]
        for one in found:
            self._say_where(one)
        return sorted(found, key=lambda one: float(one["at"]))

    # Lines that need more than a pattern

    def _on_xid(self, at: float, message: str, fields: dict[str, str]) -> None:
        rest = fields.get("rest", "")
        extra: dict[str, Any] = {}
        for name, pattern in (("severity", _SEVERITY), ("cause", _CAUSE), ("recovery", _RECOVERY)):
            found = pattern.search(rest)
            if found:
                extra[name] = int(found.group(1)) if name == "cause" else found.group(1)
        key = (fields["code"], extra.get("severity"), extra.get("cause"))
        entry = self._keep("xid", at, message, fields["pci"], {**fields, **extra}, key)
        process = re.match(r", pid=(\d+|'<unknown>')", rest)
        burst = (process.group(1) if process else "", int(at // BURST_SECONDS))
        seen = self._bursts.setdefault(id(entry), set())
        seen.add(burst)
        entry["bursts"] = len(seen)

    def _on_sxid(self, at: float, message: str, fields: dict[str, str]) -> None:
        """The first line of an SXid has its severity; the next two, numbers of the same event."""
        severity = _SWITCH.match(fields["rest"])
        key = (fields["pci"], fields["code"])
        if severity is None and key in self._switch:
            self._switch[key]["at"] = round(at, 3)
            return
        fields["severity"] = severity.group(1) if severity else "unknown"
        self._switch[key] = self._keep(
            "sxid", at, message, fields["pci"], fields, (fields["code"], fields["severity"])
        )

    def _on_gpu_named(self, at: float, message: str, fields: dict[str, str]) -> None:
        self._gpu = fields["pci"]

    def _on_gpu_lost(self, at: float, message: str, fields: dict[str, str]) -> None:
        pci = fields.get("pci") or self._gpu
        self._keep("gpu_lost", at, message, pci, fields)

    def _on_mce_bank(self, at: float, message: str, fields: dict[str, str]) -> None:
        if int(fields["bank"], 16) & UNCORRECTED:
            self._keep("mce", at, message, None, fields)

    def _on_ghes(self, at: float, message: str, fields: dict[str, str]) -> None:
        """An error that the firmware reports; the next lines have the device."""
        self._hardware.pop(fields.get("event"), None)
        if fields["severity"] in GHES_BAD:
            self._hardware[fields.get("event")] = self._keep("mce", at, message, None, fields, (at, message))

    def _on_ghes_section(self, at: float, message: str, fields: dict[str, str]) -> None:
        entry = self._hardware.get(fields.get("event"))
        kind = GHES_KINDS.get(fields["section"].strip())
        if entry is not None and kind is not None and entry["kind"] == "mce":
            key = next(key for key, one in self._kept["mce"].items() if one is entry)
            del self._kept["mce"][key]
            self.counts["mce"] -= 1
            moved = self._keep(
                kind, entry["at"], f"{entry['message']}, {fields['section'].strip()}", None, fields, key
            )
            self._hardware[fields.get("event")] = moved

    def _on_ghes_device(self, at: float, message: str, fields: dict[str, str]) -> None:
        entry = self._hardware.get(fields.get("event"))
        if entry is not None:
            entry["device"] = fields["pci"].lower()

    def _came_back(self, kind: str, server: str, at: float) -> None:
        for one in self._kept.get(kind, {}).values():
            if one["server"] == server:
                one["back_at"] = round(at, 3)

    # What is kept

    def _keep(
        self,
        kind: str,
        at: float,
        message: str,
        device: str | None,
        fields: dict[str, Any],
        key: tuple[Any, ...] = (),
    ) -> dict[str, Any]:
        device = device.lower() if device and ":" in device else device
        self.counts[kind] = self.counts.get(kind, 0) + 1
        kept = self._kept.setdefault(kind, {})
        whole = (device, *key)
        entry = kept.pop(whole, None)
        if entry is None:
            entry = {"kind": kind, "device": device, "first": round(at, 3), "times": 0, "bursts": 1}
            entry.update(dict.fromkeys((*NAMES, *FIGURES, "code", "where", "mounts")))
            while len(kept) >= KEPT_PER_KIND:
                del kept[next(iter(kept))]
        kept[whole] = entry  # drop the least recently seen entry first
        entry.update(
            at=round(at, 3), message=message[:MESSAGE_CHARACTERS], times=entry["times"] + 1, back_at=None
        )
        entry["code"] = int(fields["code"]) if "code" in fields else None
        for name in NAMES:
            entry[name] = fields.get(name)
        for name in FIGURES:
            entry[name] = float(fields[name]) if name in fields else None
        return entry

    def _say_where(self, entry: dict[str, Any]) -> None:
        """The kind of the device and its mount points, looked up once per entry at the end."""
        device = entry["device"]
        is_pci = device is not None and ":" in device
        entry["where"] = self._around.device(device) if is_pci else None
        block = entry["kind"] in ("io_error", "fs_error", "nvme_failed", "nvme_slow")
        entry["mounts"] = self._around.mounts(device) if block and device is not None else None

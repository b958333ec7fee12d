"""`nvidia-smi -q` as text, rebuilt as the document `nvidia-smi -q -x` prints.

Most field names map directly to XML names: `Product Name` is <product_name>. What differs
is in TAGS, by the section above it; the pairs were compared on documents of drivers 418 to 595.
"""

from __future__ import annotations

import re
from typing import Any

HEADER = re.compile(r"=+ *NVSMI LOG *=+")
GPU = re.compile(r"^(?:GPU|vGPU Device) ([0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-9A-Fa-f])\s*$")
LINE = re.compile(r"^(\s*)(\S.*?)\s*(?::\s(.*)|:)?$")

CLOCKS = {"Graphics": "graphics_clock", "SM": "sm_clock", "Memory": "mem_clock", "Video": "video_clock"}
REASONS = ("Clocks Event Reasons", "Clocks Throttle Reasons")
REASON = {
    "Idle": "gpu_idle",
    "Display Clock Setting": "display_clocks_setting",
    "SW Thermal Slowdown": "sw_thermal_slowdown",
}
LINK = {
    "PCIe Generation": {"Max": "max_link_gen", "Current": "current_link_gen"},
    "Link Width": {"Max": "max_link_width", "Current": "current_link_width"},
}
TAGS: dict[str, dict[str, str]] = {
    "": {
        "GPU UUID": "uuid", "Serial Number": "serial", "GPU Link Info": "pci_gpu_link_info",
        "PCIe Generation": "pcie_gen", "Link Width": "link_widths",
    },
    **LINK,
    **dict.fromkeys(("Clocks", "Max Clocks", "Applications Clocks", "Default Applications Clocks"), CLOCKS),
    "MIG Mode": {"Current": "current_mig", "Pending": "pending_mig"},
    "ECC Mode": {"Current": "current_ecc", "Pending": "pending_ecc"},
    "Inforom Version": {"Image Version": "img_version", "Power Management Object": "pwr_object"},
    "PCI": {
        "Bus": "pci_bus", "Device": "pci_device", "Domain": "pci_domain", "Device Id": "pci_device_id",
        "Bus Id": "pci_bus_id", "Sub System Id": "pci_sub_system_id", "Replays Since Reset": "replay_counter",
        "Replay Number Rollovers": "replay_rollover_counter",
    },
    "Utilization": {"GPU": "gpu_util", "Memory": "memory_util"},
    "Volatile": {"SRAM Uncorrectable SEC-DED": "sram_uncorrectable_secded"},
    "Aggregate": {"SRAM Uncorrectable SEC-DED": "sram_uncorrectable_secded"},
    "Retired Pages": {"Pending": "pending_retirement", "Pending Page Blacklist": "pending_retirement"},
    "Remapped Rows": {
        "Correctable Error": "remapped_row_corr", "Uncorrectable Error": "remapped_row_unc",
        "Pending": "remapped_row_pending", "Remapping Failure Occurred": "remapped_row_failure",
        "Bank Remap Availability Histogram": "row_remapper_histogram",
    },
    "Temperature": {
        "GPU Current Temp": "gpu_temp", "GPU T.Limit Temp": "gpu_temp_tlimit",
        "GPU Shutdown Temp": "gpu_temp_max_threshold", "GPU Slowdown Temp": "gpu_temp_slow_threshold",
        "GPU Max Operating Temp": "gpu_temp_max_gpu_threshold",
        "GPU Shutdown T.Limit Temp": "gpu_temp_max_tlimit_threshold",
        "GPU Slowdown T.Limit Temp": "gpu_temp_slow_tlimit_threshold",
        "GPU Max Operating T.Limit Temp": "gpu_temp_max_gpu_tlimit_threshold",
        "Memory Current Temp": "memory_temp", "Memory Max Operating Temp": "gpu_temp_max_mem_threshold",
        "Memory Max Operating T.Limit Temp": "gpu_temp_max_mem_tlimit_threshold",
    },
    "Fabric": {"CliqueId": "cliqueId", "ClusterUUID": "clusterUuid"},
    "Process": {"Process ID": "pid", "Name": "process_name", "Used GPU Memory": "used_memory"},
}  # fmt: skip
POWER = {"Instantaneous Power Draw": "instant_power_draw"}
POWERS = ("Power Readings", "GPU Power Readings", "Module Power Readings", "GPU Memory Power Readings")
PAGES = {"Single Bit ECC": "multiple_single_bit_retirement", "Double Bit ECC": "double_bit_retirement"}
TAGS.update(dict.fromkeys(POWERS, POWER))
_TAGS = {
    section.lower(): {label.lower(): name for label, name in tags.items()} for section, tags in TAGS.items()
}
"""Older drivers print `Ecc Mode` and `Gpu`."""


def is_text(text: str) -> bool:
    """Whether this is what `nvidia-smi -q` prints."""
    return any(HEADER.match(line) for line in text.splitlines()[:40]) and "<nvidia_smi_log" not in text


def to_xml(text: str) -> str:
    """The XML document of a text."""
    from xml.etree import ElementTree

    return ElementTree.tostring(_Builder().build(text), encoding="unicode")


class _Builder:
    """Puts each line below the last line that is indented less."""

    def __init__(self) -> None:
        from xml.etree import ElementTree

        self._new = ElementTree.SubElement
        self._root: Any = ElementTree.Element("nvidia_smi_log")
        self._open: list[tuple[int, str, Any]] = [(-1, "", self._root)]

    def build(self, text: str) -> Any:  # noqa: ANN401 - an Element
        for line in text.expandtabs(8).splitlines():
            gpu, found = GPU.match(line.rstrip()), LINE.match(line.rstrip())
            if gpu:
                self._open = [(-1, "", self._root)]
                self._push(0, "", self._new(self._root, "gpu", {"id": gpu.group(1)}))
            elif found and not HEADER.search(line):
                self._line(len(found.group(1)), found.group(2), found.group(3))
        return self._root

    def _push(self, indent: int, name: str, node: Any) -> None:  # noqa: ANN401
        self._open.append((indent, name, node))

    def _line(self, indent: int, label: str, value: str | None) -> None:
        while self._open[-1][0] >= indent and len(self._open) > 1:
            self._open.pop()
        _, section, parent = self._open[-1]
        if value is None:
            self._section(indent, label, section, parent)
        elif label in ("GPU instance ID", "Process ID") and section in ("Processes", "Process"):
            self._process(indent, label, value, section, parent)
        else:
            self._value(label, value.strip(), section, parent)

    def _section(self, indent: int, label: str, section: str, parent: Any) -> None:  # noqa: ANN401
        if label == "MIG Device":
            there = parent.find("mig_devices")
            parent = there if there is not None else self._new(parent, "mig_devices")
        self._push(indent, label, self._new(parent, tag(section, label)))

    def _process(self, indent: int, label: str, value: str, section: str, parent: Any) -> None:  # noqa: ANN401
        """Processes are not set apart: each begins with its first field."""
        if section == "Process" and label == "Process ID" and parent.find("pid") is None:
            self._value(label, value.strip(), "Process", parent)
            return
        processes = self._open[-1][2] if section == "Processes" else self._open[-2][2]
        if section == "Process":
            self._open.pop()
        entry = self._new(processes, "process_info")
        self._push(indent - 1, "Process", entry)
        self._value(label, value.strip(), "Process", entry)

    def _value(self, label: str, value: str, section: str, parent: Any) -> None:  # noqa: ANN401
        if section == "Retired Pages" and label in PAGES:
            parent, name = self._new(parent, PAGES[label]), "retired_count"
        else:
            name = tag(section, label)
        if section == "PCI" and label.endswith(" Id"):
            value = re.sub("^0x", "", value)
        self._new(parent, name).text = value


def tag(section: str, label: str) -> str:
    """The XML name of a field."""
    if section in REASONS:
        kind = "event" if section == REASONS[0] else "throttle"
        return f"clocks_{kind}_reason_{REASON.get(label) or plain(label)}"
    named = _TAGS.get(section.lower(), {}).get(label.lower()) or _TAGS[""].get(label.lower())
    return named or plain(label)


def plain(label: str) -> str:
    """`SM Clock` as sm_clock; a label that no XML name could be becomes one."""
    words = re.sub(r"[^a-z0-9]+", "_", label.lower()).strip("_")
    return words if words[:1].isalpha() else f"x_{words}"

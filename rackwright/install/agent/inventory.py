"""Reads the machine's hardware from the kernel; the head compares it with the declaration."""

from __future__ import annotations

import glob
import json
import os
import re
import time
from typing import Any

from rackwright.install.agent import signatures
from rackwright.install.agent.network import INTERFACES, physical
from rackwright.install.agent.programs import AgentError, link_name, read_text, run

_DMI = "/sys/class/dmi/id"
_DMI_NAMES = (
    "product_uuid",
    "product_serial",
    "sys_vendor",
    "product_name",
    "bios_version",
    "bios_date",
    "board_serial",
    "chassis_serial",
)
_SECURE_BOOT = "/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c"
_PCI = "/sys/bus/pci/devices"
_PCI_ADDRESS = re.compile(r"[0-9a-f]{4,}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")
_NVIDIA, _GPU_CLASSES = "10de", ("0300", "0302")
_NOT_DISKS = re.compile(r"(loop|ram|zram|fd|sr|md|dm-|nbd|mtdblock)\d*")
_COLUMNS = "PATH,SIZE,SERIAL,MODEL,WWN,ROTA,RO,RM"


def document() -> dict[str, Any]:
    """The current inventory."""
    pci = pci_devices()
    processors = read_text("/proc/cpuinfo") or ""
    memory = re.search(r"^MemTotal:\s+(\d+)", read_text("/proc/meminfo") or "", re.MULTILINE)
    return {
        "version": 1,
        "dmi": {name: read_text(f"{_DMI}/{name}") or None for name in _DMI_NAMES},
        "memory_kib": int(memory[1]) if memory else 0,
        "cpus": os.cpu_count() or 0,
        "cpu_model": _first(r"^model name\s*:\s*(.*)$", processors),
        "sockets": len(set(re.findall(r"^physical id\s*:\s*(\d+)$", processors, re.MULTILINE))) or 1,
        "efi": os.path.isdir("/sys/firmware/efi"),
        "secure_boot": secure_boot(),
        "tpm": read_text("/sys/class/tpm/tpm0/tpm_version_major"),
        "clock": int(time.time()),
        "kernel": os.uname().release,
        "nics": [nic(name) for name in physical()],
        "disks": disks(),
        "pci": pci,
        "gpus": sum(one["vendor"] == _NVIDIA and one["class"] in _GPU_CLASSES for one in pci),
    }


def serial_number() -> str | None:
    """The chassis serial number from the firmware."""
    return read_text(f"{_DMI}/product_serial")


def secure_boot(path: str = _SECURE_BOOT) -> bool | None:
    """Whether Secure Boot is on; None if unknown."""
    try:
        with open(path, "rb") as file:
            data = file.read()
    except OSError:
        return None
    return data[4] == 1 if len(data) > 4 else None  # four attribute bytes come first


def nic(name: str, folder: str = INTERFACES) -> dict[str, Any]:
    """One interface; its link state is unknown while it is down."""
    place = f"{folder}/{name}"
    carrier, speed = read_text(f"{place}/carrier"), read_text(f"{place}/speed")
    return {
        "name": name,
        "mac": read_text(f"{place}/address"),
        "pci": last_pci_address(os.path.realpath(f"{place}/device")),
        "driver": link_name(f"{place}/device/driver"),
        "carrier": None if carrier is None else carrier == "1",
        "speed_mbps": int(speed) if speed is not None and speed.isdigit() and int(speed) > 0 else None,
    }


def disks() -> list[dict[str, Any]]:
    """All disks; an unreadable one has an `error` and no signatures."""
    by_path = paths_of("/dev/disk/by-path")
    text = run(["lsblk", "--json", "--bytes", "--nodeps", "--output", _COLUMNS])
    found = []
    for listed in json.loads(text)["blockdevices"]:
        name = os.path.basename(listed["path"])
        # drives without a medium, such as a BMC's virtual drives, are not disks
        if _NOT_DISKS.fullmatch(name) or (listed["rm"] and not listed["size"]):
            continue
        found.append(disk(listed, by_path.get(name, []), os.path.realpath(f"/sys/block/{name}/device")))
    return found


def disk(listed: dict[str, Any], by_path: list[str], device: str) -> dict[str, Any]:
    """One disk, from its lsblk row."""
    path = listed["path"]
    found: dict[str, Any] = {
        "path": path,
        "serial": _stripped(listed["serial"]),
        "wwn": _stripped(listed["wwn"]),
        "model": _stripped(listed["model"]),
        "size_bytes": int(listed["size"]),
        "rotational": bool(listed["rota"]),
        "read_only": bool(listed["ro"]),
        "by_path": by_path,
        "pci": last_pci_address(device),
    }
    try:
        found["signatures"] = signatures.read(path)
    except (AgentError, ValueError, KeyError) as error:
        found |= {"signatures": [], "error": str(error)}
    return found


def paths_of(folder: str) -> dict[str, list[str]]:
    """Device name -> by-path names of the whole disk, without those of partitions."""
    found: dict[str, list[str]] = {}
    for link in sorted(glob.glob(f"{folder}/*")):
        if (name := link_name(link)) is not None:
            found.setdefault(name, []).append(os.path.basename(link))
    return found


def pci_devices(folder: str = _PCI) -> list[dict[str, str]]:
    """All PCI functions; the class without its programming interface, as lspci -n prints it."""
    return [
        {
            "address": os.path.basename(place),
            "vendor": (read_text(f"{place}/vendor") or "")[2:],
            "device": (read_text(f"{place}/device") or "")[2:],
            "class": (read_text(f"{place}/class") or "")[2:6],
        }
        for place in sorted(glob.glob(f"{folder}/*"))
    ]


def last_pci_address(path: str) -> str | None:
    """Address of the PCI function nearest to a device, from its path in /sys."""
    found = _PCI_ADDRESS.findall(path)
    return found[-1] if found else None


def _stripped(value: str | None) -> str | None:
    return (value or "").strip() or None


def _first(pattern: str, text: str) -> str | None:
    match = re.search(pattern, text, re.MULTILINE)
    return match[1].strip() if match else None

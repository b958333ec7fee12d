"""Processors, memory and firmware from proc and sysfs."""

from __future__ import annotations

import re
import struct
from typing import Any

from rackwright.health.probe.source import Source, Unavailable, cpu_list, integer, pairs

CPUS = "/sys/devices/system/cpu"
NODES = "/sys/devices/system/node"
EDAC = "/sys/devices/system/edac/mc"
DMI = "/sys/firmware/dmi/entries"


def cpu(source: Source, request: dict[str, Any]) -> dict[str, Any]:
    """Processors as the kernel uses them."""
    text = source.text("/proc/cpuinfo")
    online = cpu_list(source.text(CPUS + "/online"))
    present = cpu_list(source.text(CPUS + "/present"))
    if not online or not present:
        raise Unavailable(f"{CPUS}: no processor")
    cores, sockets, throttles = set(), set(), []
    governors: dict[str, int] = {}
    for number in online:
        at = f"{CPUS}/cpu{number}"
        socket = integer(source.maybe(at + "/topology/physical_package_id"))
        sockets.add(socket)
        cores.add((socket, integer(source.maybe(at + "/topology/core_id"))))
        governor = source.maybe(at + "/cpufreq/scaling_governor")
        if governor is not None:
            governors[governor] = governors.get(governor, 0) + 1
        throttles.append(integer(source.maybe(at + "/thermal_throttle/core_throttle_count")))
    known = None not in sockets and all(None not in pair for pair in cores)
    model = re.search(r"^(?:model name|CPU implementer)\s*: (.*)$", text, re.MULTILINE)
    return {
        "model": model.group(1) if model else None,
        "sockets": len(sockets) if known else None,
        "cores": len(cores) if known else None,
        "threads": len(online),
        "offline": sorted(set(present) - set(online)),
        "governors": governors,
        "throttled": sum(one or 0 for one in throttles) if None not in throttles else None,
        "microcodes": sorted(set(re.findall(r"^microcode\s*: (.*)$", text, re.MULTILINE))),
        "clocksource": source.maybe("/sys/devices/system/clocksource/clocksource0/current_clocksource"),
        "load": float(source.text("/proc/loadavg").split()[1]),
        "numa": numa(source),
    }


def numa(source: Source) -> list[dict[str, Any]]:
    """NUMA nodes with their processors and memory."""
    found = []
    for name in source.names(NODES):
        if re.fullmatch(r"node\d+", name):
            total = re.search(r"MemTotal:\s+(\d+) kB", source.maybe(f"{NODES}/{name}/meminfo") or "")
            cpus = source.maybe(f"{NODES}/{name}/cpulist") or ""
            found.append(
                {
                    "node": int(name[4:]),
                    "cpus": len(cpu_list(cpus)),
                    "memory_mib": int(total.group(1)) // 1024 if total else None,
                }
            )
    return found


def memory(source: Source, request: dict[str, Any]) -> dict[str, Any]:
    """The kernel's memory, and the error counts of its controllers."""
    meminfo = {key: integer(value) for key, value in pairs(source.text("/proc/meminfo"), ":").items()}
    counts = pairs(source.text("/proc/vmstat"), " ")

    def mib(key: str) -> int | None:
        value = meminfo.get(key)
        return value // 1024 if value is not None else None

    return {
        "total_mib": mib("MemTotal"),
        "available_mib": mib("MemAvailable"),
        "swap_mib": mib("SwapTotal"),
        "corrupted_kib": meminfo.get("HardwareCorrupted", 0),
        "oom_kills": integer(counts.get("oom_kill")),
        "controllers": [
            {
                "name": name,
                "corrected": integer(source.maybe(f"{EDAC}/{name}/ce_count")),
                "uncorrected": integer(source.maybe(f"{EDAC}/{name}/ue_count")),
            }
            for name in source.names(EDAC)
            if re.fullmatch(r"mc\d+", name)
        ],
    }


def firmware(source: Source, request: dict[str, Any]) -> dict[str, Any]:
    """Names and versions from DMI, and every memory slot."""
    at = "/sys/class/dmi/id/"
    if not source.names(at.rstrip("/")):
        raise Unavailable(f"{at}: no DMI")
    return {
        "vendor": source.maybe(at + "sys_vendor"),
        "product": source.maybe(at + "product_name"),
        "board": source.maybe(at + "board_name"),
        "bios": source.maybe(at + "bios_version"),
        "bios_date": source.maybe(at + "bios_date"),
        "slots": slots(source),
    }


def slots(source: Source) -> list[dict[str, Any]] | None:
    """The memory devices of the firmware's table (SMBIOS type 17); None where it cannot be read."""
    names = [name for name in source.names(DMI) if name.startswith("17-")]
    found = []
    for name in sorted(names, key=lambda name: int(name[3:])):
        try:
            found.append(memory_device(source.data(f"{DMI}/{name}/raw", 0, 4096)))
        except (Unavailable, struct.error, IndexError):
            return None
    return found or None


def memory_device(raw: bytes) -> dict[str, Any]:
    """One SMBIOS type 17 structure: size in MiB (0: empty slot), speeds in MT/s, locator."""
    length = raw[1]
    size = struct.unpack_from("<H", raw, 0x0C)[0]
    if size == 0x7FFF and length >= 0x20:
        size = struct.unpack_from("<I", raw, 0x1C)[0] & 0x7FFFFFFF
    elif size == 0xFFFF:
        size = 0
    elif size & 0x8000:
        size = (size & 0x7FFF) // 1024
    strings = raw[length:].split(b"\0")
    locator = strings[raw[0x10] - 1].decode("ascii", "replace").strip() if raw[0x10] else ""
    return {
        "locator": locator,
        "size_mib": size,
        "speed": struct.unpack_from("<H", raw, 0x15)[0] if length >= 0x17 else None,
        "configured": struct.unpack_from("<H", raw, 0x20)[0] if length >= 0x22 else None,
    }

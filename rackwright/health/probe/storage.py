"""NVMe drives, md arrays, and mounted filesystems, each queried with a deadline."""

from __future__ import annotations

import json
import os
import re
import threading
from typing import Any

from rackwright.health.probe.source import TEXT_LIMIT, Source, Unavailable, integer, patience

NVME = "/sys/class/nvme"
KELVIN = 273
STAT_SECONDS = 1.0
SMART_SECONDS = 2.0


def nvme(source: Source, request: dict[str, Any]) -> dict[str, Any]:
    """Every NVMe controller with its SMART log, which needs nvme-cli."""
    drives = [drive(source, name) for name in source.names(NVME) if re.fullmatch(r"nvme\d+", name)]
    threads = [
        threading.Thread(target=add_smart, args=(source, one, patience(request, SMART_SECONDS)), daemon=True)
        for one in drives
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return {"drives": drives}


def drive(source: Source, name: str) -> dict[str, Any]:
    at = f"{NVME}/{name}"
    sectors = [
        integer(source.maybe(f"/sys/block/{block}/size"))
        for block in source.names("/sys/block")
        if re.fullmatch(name + r"(c\d+)?n\d+", block)
    ]
    where = source.target(at + "/device")
    return {
        "name": name,
        "address": where.rsplit("/", 1)[-1] if where else None,
        "model": (source.maybe(at + "/model") or "").strip() or None,
        "firmware": (source.maybe(at + "/firmware_rev") or "").strip() or None,
        "state": source.maybe(at + "/state"),
        "size_gb": sum(size or 0 for size in sectors) * 512 // 10**9 if sectors else None,
        "smart": None,
        "smart_why": None,
    }


def add_smart(source: Source, one: dict[str, Any], limit: float) -> None:
    """The drive's SMART log, or the reason why there is none."""
    try:
        text = source.run(["nvme", "smart-log", "/dev/" + one["name"], "-o", "json"], limit)
        one["smart"] = parse_smart(text)
    except Unavailable as error:
        one["smart_why"] = str(error)


def parse_smart(text: str) -> dict[str, Any]:
    """Read `nvme smart-log -o json`, with the field names of all nvme-cli versions."""
    try:
        log = json.loads(text)
        temperature = log["temperature"]
        warning = log["critical_warning"]
        return {
            "critical_warning": warning["value"] if isinstance(warning, dict) else warning,
            "spare": log["avail_spare"],
            "spare_least": log["spare_thresh"],
            "used": log["percent_used"] if "percent_used" in log else log["percentage_used"],
            "media_errors": int(log["media_errors"]),
            "temperature_c": temperature - KELVIN if temperature > 200 else temperature,
        }
    except (ValueError, KeyError, TypeError) as error:
        raise Unavailable(f"`nvme smart-log` did not print its JSON: {error!r}") from None


def arrays(source: Source, request: dict[str, Any]) -> dict[str, Any]:
    """Every md array."""
    found = []
    for name in source.names("/sys/block"):
        at = f"/sys/block/{name}/md"
        if source.exists(at):
            found.append(
                {
                    "name": name,
                    "level": source.maybe(at + "/level"),
                    "state": source.maybe(at + "/array_state"),
                    "degraded": integer(source.maybe(at + "/degraded")),
                    "action": source.maybe(at + "/sync_action"),
                }
            )
    return {"arrays": found}


def mounts(source: Source, request: dict[str, Any]) -> dict[str, Any]:
    """The declared mounts and their response times; a hung mount blocks a child process, never the probe.

    Users' mounts are not touched: they may hang.
    """
    wanted = set(request.get("mounts") or ["/"])
    found = parse_mounts(source.data("/proc/self/mounts", 0, TEXT_LIMIT), wanted)
    limit = patience(request, STAT_SECONDS)
    threads = [threading.Thread(target=add_usage, args=(source, one, limit), daemon=True) for one in found]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return {"mounts": found}


def parse_mounts(data: bytes, wanted: set[str] | None = None) -> list[dict[str, Any]]:
    """Read /proc/self/mounts: the last mount on each wanted folder (None: on every folder). Names may be in any encoding."""
    found: dict[str, dict[str, Any]] = {}
    lines = [line for line in data.split(b"\n") if line]
    for line in lines:
        fields = line.split(b" ")
        if len(fields) < 4:
            raise Unavailable(f"/proc/self/mounts: a line reads {line[:80]!r}")
        source_, target, kind, options = (
            os.fsdecode(re.sub(rb"\\(\d{3})", octal, field)) for field in fields[:4]
        )
        if wanted is None or target in wanted:
            found[target] = {
                "target": target,
                "source": source_,
                "type": kind,
                "read_only": "ro" in options.split(","),
                "seconds": None,
                "used_percent": None,
                "inodes_percent": None,
                "why": None,
            }
    if not lines:
        raise Unavailable("/proc/self/mounts: no mount")
    return list(found.values())


def octal(found: re.Match[bytes]) -> bytes:
    return bytes([int(found.group(1), 8) & 0xFF])


def add_usage(source: Source, one: dict[str, Any], limit: float) -> None:
    """Query the usage of a filesystem in a child process, which is abandoned if it hangs."""
    started = source.elapsed()
    try:
        text = source.run(["stat", "-f", "-c", "%b %f %a %c %d", one["target"]], limit)
        blocks, free, available, inodes, inodes_free = (int(word) for word in text.split())
    except (Unavailable, ValueError) as error:
        one["why"] = str(error)
        return
    one["seconds"] = round(source.elapsed() - started, 3)
    used = blocks - free
    one["used_percent"] = round(100 * used / (used + available), 1) if used + available else 0.0
    one["inodes_percent"] = round(100 * (inodes - inodes_free) / inodes, 1) if inodes else 0.0

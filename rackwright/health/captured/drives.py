"""Health logs of NVMe drives, and mounts."""

from __future__ import annotations

import json
import os
import re
from typing import Any

from rackwright.boundary import Refused
from rackwright.health.captured.reading import Context, Reading
from rackwright.health.probe.source import Unavailable
from rackwright.health.probe.storage import octal, parse_mounts, parse_smart
from rackwright.health.received import read_document

SMARTCTL_LOG = "nvme_smart_health_information_log"
SMARTCTL_NAMES = {
    "avail_spare": "available_spare",
    "spare_thresh": "available_spare_threshold",
    "percent_used": "percentage_used",
}
"""nvme-cli's names, and smartmontools' for the same fields."""
_OF_THE_NODE = ("nvme-count", "nvme-size")
_MOUNT = re.compile(r"^\S+ /\S* [\w.]+ (?:rw|ro)(?:,\S+)? \d \d$")
_ESCAPE = re.compile(rb"\\(\d{3})")
_OF_ALL_MOUNTS = ("fs-mounted", "fs-source", "fs-answers", "fs-writable", "fs-space", "fs-inodes")
_MEASURED = ("seconds", "used_percent", "inodes_percent", "why")


def as_json(text: str) -> Any:  # noqa: ANN401
    """The JSON document of a text, or None; a refused one counts as missing."""
    if not text.lstrip().startswith(("{", "[")):
        return None
    try:
        return read_document(text)
    except Refused:
        return None


def is_smart(text: str) -> bool:
    """`nvme smart-log -o json` or `smartctl -j -a`."""
    parsed = as_json(text)
    return isinstance(parsed, dict) and (
        SMARTCTL_LOG in parsed or {"critical_warning", "media_errors"} <= set(parsed)
    )


def smart(text: str, context: Context) -> Reading:
    """One drive: how many there are is not in it."""
    parsed = as_json(text)
    drive: dict[str, Any] = {"name": "nvme0", "smart_why": None}
    if SMARTCTL_LOG in parsed:
        log = parsed[SMARTCTL_LOG]
        drive["name"] = str(parsed.get("device", {}).get("name", "nvme0")).rpartition("/")[2]
        drive.update(_renamed(parsed, {"model": "model_name", "firmware": "firmware_version"}))
        parsed = {**log, **_renamed(log, SMARTCTL_NAMES)}
    try:
        drive["smart"] = parse_smart(json.dumps(parsed))
    except Unavailable as error:
        drive.update(smart=None, smart_why=str(error))
    return Reading({"nvme": {"drives": [drive]}}, _OF_THE_NODE)


def _renamed(values: dict[str, Any], names: dict[str, str]) -> dict[str, Any]:
    return {name: values[other] for name, other in names.items() if other in values}


def is_mounts(text: str) -> bool:
    """/proc/self/mounts."""
    lines = [line for line in text.splitlines() if line.strip()]
    return bool(lines) and all(_MOUNT.match(line) for line in lines)


def mounts(text: str, context: Context) -> Reading:
    """Every mount; how full it is and how fast it answers is not in it."""
    data = text.encode()
    targets = {line.split(b" ")[1] for line in data.splitlines() if line.count(b" ") > 2}
    found = parse_mounts(data, {os.fsdecode(_ESCAPE.sub(octal, target)) for target in targets})
    for mount in found:
        for key in _MEASURED:
            del mount[key]
    excerpt = not any(mount["target"] == "/" for mount in found)
    return Reading({"mounts": {"mounts": found}}, _OF_ALL_MOUNTS if excerpt else ())

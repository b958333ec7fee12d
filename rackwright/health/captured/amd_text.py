"""What amd-smi prints."""

from __future__ import annotations

import json
import re
from typing import Any

from rackwright.health.captured.drives import as_json
from rackwright.health.captured.reading import Context, Reading
from rackwright.health.probe import amd

_GPU = re.compile(r"^GPU: (\d+)\s*$", re.MULTILINE)
_LINE = re.compile(r"^(\s+)([A-Z][A-Z0-9_ ]*):\s*(.*)$")
_GROUPS = {
    "temperature": ("hotspot_c", "memory_c"),
    "pcie": ("width", "speed_gts"),
    "ecc": ("uncorrectable", "deferred", "correctable"),
}


def is_amd(text: str) -> bool:
    """`amd-smi static`, `metric` or a part of it, as JSON or as text."""
    parsed = as_json(text)
    listed = parsed.get("gpu_data") if isinstance(parsed, dict) else parsed
    if isinstance(listed, list) and listed and isinstance(listed[0], dict):
        return type(listed[0].get("gpu")) is int
    return _GPU.search(text) is not None


def amd_smi(text: str, context: Context) -> Reading:
    """What the GPUs are, or what was measured; groups that were not asked for are left out."""
    entries = amd.entries(text if as_json(text) is not None else json.dumps(_tree(text)), "metric")
    if all("asic" in entry for entry in entries):
        return Reading({"amd_gpus": {"gpus": [amd.what_it_is(entry) for entry in entries]}})
    gpus = []
    for entry in entries:
        found = amd.measured(entry)
        for group, fields in _GROUPS.items():
            if group not in entry:
                found = {name: value for name, value in found.items() if name not in fields}
        gpus.append(found)
    return Reading({"amd_metrics": {"gpus": gpus}})


def _tree(text: str) -> list[dict[str, Any]]:
    """The text by its indentation; its labels are the JSON's in capitals."""
    entries: list[dict[str, Any]] = []
    above: list[tuple[int, dict[str, Any]]] = []
    for line in text.splitlines():
        gpu, found = _GPU.match(line), _LINE.match(line)
        if gpu:
            entries.append({"gpu": int(gpu.group(1))})
            above = [(0, entries[-1])]
        elif found and above:
            indent = len(found.group(1))
            while above[-1][0] >= indent:
                above.pop()
            name, value = found.group(2).lower(), found.group(3).strip()
            above[-1][1][name] = value or {}
            if not value:
                above.append((indent, above[-1][1][name]))
    return entries

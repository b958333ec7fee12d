"""The kinds of captures that can be read, one line each, recognised by their content."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from rackwright.health.captured import amd_text, bmc, bus, drives, kernel, listing, nvidia, smi_text, tables
from rackwright.health.captured.drives import as_json
from rackwright.health.captured.reading import Context, Reading
from rackwright.health.probe.main import SCHEMA, VERSION


@dataclass(frozen=True)
class Kind:
    """One kind of capture."""

    name: str
    recognise: Callable[[str], bool]
    read: Callable[[str, Context], Reading]


KINDS = (
    Kind("nvidia-smi -q -x", nvidia.is_xml, nvidia.query_xml),
    Kind("nvidia-smi -q", smi_text.is_text, nvidia.query_text),
    Kind("nvidia-smi nvlink", nvidia.is_nvlink, nvidia.nvlink),
    Kind("nvidia-smi topo -m", nvidia.is_topology, nvidia.topology),
    Kind("amd-smi", amd_text.is_amd, amd_text.amd_smi),
    Kind("dcgmi diag", tables.is_diag, tables.diag),
    Kind("dcgmi health", tables.is_health, tables.health),
    Kind("mlxlink", tables.is_mlxlink, tables.mlxlink),
    Kind("nvme SMART", drives.is_smart, drives.smart),
    Kind("infiniband sysfs", listing.is_infiniband, listing.infiniband),
    Kind("md sysfs", listing.is_arrays, listing.arrays),
    Kind("mounts", drives.is_mounts, drives.mounts),
    Kind("lspci", bus.is_lspci, bus.lspci),
    Kind("ipmitool sel", bmc.is_events, bmc.events),
    Kind("ipmitool sel info", bmc.is_log, bmc.log),
    Kind("ipmitool sdr", bmc.is_sensors, bmc.sensors),
    Kind("kernel log", kernel.is_kernel_log, kernel.kernel_log),
)
"""The kernel log comes last, because its lines are the hardest to recognise."""


@dataclass(frozen=True)
class Capture:
    """A capture as a document of the probe."""

    kind: str
    document: dict[str, Any]
    leaves_out: tuple[str, ...]

    @property
    def sections(self) -> tuple[str, ...]:
        """The sections it holds."""
        return tuple(self.document["sections"])


def kind_of(text: str) -> Kind | None:
    """The kind of a text; None for a document of the probe."""
    parsed = as_json(text)
    if isinstance(parsed, dict) and "schema" in parsed:
        return None
    return next((kind for kind in KINDS if kind.recognise(text)), None)


def read_capture(text: str, kind: Kind, context: Context = Context()) -> Capture:  # noqa: B008 - frozen
    """The document in a text; Unavailable if the text does not parse as the kind it looked like."""
    reading = kind.read(text, context)
    document = {
        "schema": SCHEMA,
        "version": VERSION,
        "taken_at": reading.taken_at,
        "node": "capture",
        "fast": False,
        "sections": {
            name: {"ok": True, "why": None, "data": data} for name, data in reading.sections.items()
        },
    }
    return Capture(kind.name, document, reading.leaves_out)

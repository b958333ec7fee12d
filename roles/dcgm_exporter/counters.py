"""Fields of DCGM that are reported, by their names in dcgm_fields.h; pure.

Sources: dcgm_fields.h of DCGM 4.5 and etc/default-counters.csv of dcgm-exporter 4.8.2 (read 2026-11-27). DCGM 4.6 has
new names for many of them and knows these as aliases (legacyDCGMFields of NVIDIA/go-dcgm, read 2026-11-27): a metric has
the name listed here.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

Kind = Literal["counter", "gauge"]


class Counter(NamedTuple):
    """One line of the file of fields."""

    field: str
    kind: Kind
    help: str


_GAUGES = {
    # clocks and why they are not higher
    "DCGM_FI_DEV_SM_CLOCK": "SM clock in MHz",
    "DCGM_FI_DEV_MEM_CLOCK": "Memory clock in MHz",
    "DCGM_FI_DEV_MAX_SM_CLOCK": "Highest SM clock in MHz",
    "DCGM_FI_DEV_CLOCKS_EVENT_REASONS": "Why the clocks are not higher: bits of DCGM_CLOCKS_EVENT_REASON",
    # temperature and power
    "DCGM_FI_DEV_GPU_TEMP": "Temperature of the GPU in C",
    "DCGM_FI_DEV_MEMORY_TEMP": "Temperature of its memory in C",
    "DCGM_FI_DEV_SLOWDOWN_TEMP": "Temperature in C at which it slows down",
    "DCGM_FI_DEV_POWER_USAGE": "Power in W",
    "DCGM_FI_DEV_ENFORCED_POWER_LIMIT": "Power limit in W",
    # PCIe
    "DCGM_FI_DEV_PCIE_LINK_GEN": "PCIe generation of its link now",
    "DCGM_FI_DEV_PCIE_LINK_WIDTH": "Lanes of its PCIe link now",
    # load
    "DCGM_FI_DEV_GPU_UTIL": "Share of time in % in which a kernel ran",
    "DCGM_FI_DEV_MEM_COPY_UTIL": "Share of time in % in which memory was read or written",
    "DCGM_FI_DEV_FB_FREE": "Free memory in MiB",
    "DCGM_FI_DEV_FB_USED": "Used memory in MiB",
    "DCGM_FI_DEV_FB_RESERVED": "Memory in MiB that the driver keeps",
    "DCGM_FI_PROF_GR_ENGINE_ACTIVE": "Share of time in which the graphics engine was active",
    "DCGM_FI_PROF_SM_ACTIVE": "Share of cycles in which an SM had a warp",
    "DCGM_FI_PROF_SM_OCCUPANCY": "Warps on an SM, of those that it can have",
    "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE": "Share of cycles in which tensor cores were active",
    "DCGM_FI_PROF_DRAM_ACTIVE": "Share of cycles in which memory was read or written",
    "DCGM_FI_PROF_PCIE_TX_BYTES": "Bytes/s sent over PCIe",
    "DCGM_FI_PROF_PCIE_RX_BYTES": "Bytes/s received over PCIe",
    "DCGM_FI_PROF_NVLINK_TX_BYTES": "Bytes/s sent over NVLink",
    "DCGM_FI_PROF_NVLINK_RX_BYTES": "Bytes/s received over NVLink",
    # errors
    "DCGM_FI_DEV_XID_ERRORS": "Last XID code, not a count",
    "DCGM_FI_DEV_ROW_REMAP_FAILURE": "Whether a row could not be remapped",
    "DCGM_FI_DEV_ROW_REMAP_PENDING": "Whether a row is remapped at the next reset",
}
_COUNTERS = {
    "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION": "Energy in mJ since the driver was loaded",
    "DCGM_FI_DEV_POWER_VIOLATION": "Time in ns in which the power limit slowed it down",
    "DCGM_FI_DEV_THERMAL_VIOLATION": "Time in ns in which its temperature slowed it down",
    "DCGM_FI_DEV_BOARD_LIMIT_VIOLATION": "Time in ns in which a limit of the board slowed it down",
    "DCGM_FI_DEV_SYNC_BOOST_VIOLATION": "Time in ns in which a slower GPU of its group slowed it down",
    "DCGM_FI_DEV_RELIABILITY_VIOLATION": "Time in ns in which its voltage slowed it down",
    "DCGM_FI_DEV_ECC_SBE_VOL_TOTAL": "Corrected memory errors since the driver was loaded",
    "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL": "Uncorrected memory errors since the driver was loaded",
    "DCGM_FI_DEV_ECC_SBE_AGG_TOTAL": "Corrected memory errors over the GPU's lifetime",
    "DCGM_FI_DEV_ECC_DBE_AGG_TOTAL": "Uncorrected memory errors over the GPU's lifetime",
    "DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS": "Rows remapped because of uncorrected errors",
    "DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS": "Rows remapped because of corrected errors",
    "DCGM_FI_DEV_PCIE_REPLAY_COUNTER": "PCIe packet retransmissions",
    "DCGM_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL": "NVLink flit CRC errors",
    "DCGM_FI_DEV_NVLINK_CRC_DATA_ERROR_COUNT_TOTAL": "NVLink data CRC errors",
    "DCGM_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL": "NVLink packet replays",
    "DCGM_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL": "NVLink recoveries (link retraining)",
}
COUNTERS: dict[str, Counter] = {
    **{name: Counter(name, "gauge", text) for name, text in _GAUGES.items()},
    **{name: Counter(name, "counter", text) for name, text in _COUNTERS.items()},
}
"""By field."""


def text(changes: dict[str, Literal["counter", "gauge", "off"]]) -> str:
    """The file of fields, as dcgm-exporter reads it (encoding/csv of Go: no comma in a cell)."""
    wanted = dict(COUNTERS)
    for field, kind in changes.items():
        if kind == "off":
            wanted.pop(field, None)
        else:
            known = wanted.get(field)
            wanted[field] = Counter(field, kind, known.help if known else "Declared by the site")
    lines = (f"{one.field}, {one.kind}, {one.help.replace(',', ';')}\n" for one in wanted.values())
    return "# written by rackwright\n# DCGM field, type of the metric, help\n" + "".join(lines)

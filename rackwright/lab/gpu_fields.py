"""DCGM fields of simulated GPUs: idle and healthy, or with a fault. The GPU itself does not exist.

Field names and units: dcgm_fields.h of DCGM 4 (read 2026-11-27). Values agree with the simulated nvidia-smi.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rackwright.lab import smi_xml
from rackwright.model.sku import Architecture, Gpus

_TEMPERATURE, _MEMORY_TEMPERATURE, _WATTS = 29, 37, 68.92
_SLOWDOWN = 89
_HW_THERMAL = 0x40
"""Bit of the clock event reasons (DCGM_CLOCKS_EVENT_REASON_HW_THERMAL)."""
_ZERO = (
    *("DCGM_FI_DEV_BOARD_LIMIT_VIOLATION", "DCGM_FI_DEV_POWER_VIOLATION", "DCGM_FI_DEV_THERMAL_VIOLATION"),
    *("DCGM_FI_DEV_SYNC_BOOST_VIOLATION", "DCGM_FI_DEV_LOW_UTIL_VIOLATION", "DCGM_FI_DEV_RELIABILITY_VIOLATION"),
    *("DCGM_FI_DEV_ECC_SBE_VOL_TOTAL", "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL"),
    *("DCGM_FI_DEV_ECC_SBE_AGG_TOTAL", "DCGM_FI_DEV_ECC_DBE_AGG_TOTAL"),
    *("DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS", "DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS"),
    *("DCGM_FI_DEV_ROW_REMAP_FAILURE", "DCGM_FI_DEV_ROW_REMAP_PENDING"),
    *("DCGM_FI_DEV_PCIE_REPLAY_COUNTER", "DCGM_FI_DEV_XID_ERRORS"),
    *("DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_DEV_MEM_COPY_UTIL", "DCGM_FI_DEV_ENC_UTIL", "DCGM_FI_DEV_DEC_UTIL"),
    *("DCGM_FI_PROF_GR_ENGINE_ACTIVE", "DCGM_FI_PROF_SM_ACTIVE", "DCGM_FI_PROF_SM_OCCUPANCY"),
    *("DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", "DCGM_FI_PROF_DRAM_ACTIVE"),
    *("DCGM_FI_PROF_PCIE_TX_BYTES", "DCGM_FI_PROF_PCIE_RX_BYTES"),
    "DCGM_FI_DEV_FB_USED",
)  # fmt: skip
_NVLINK = (
    *("DCGM_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL", "DCGM_FI_DEV_NVLINK_CRC_DATA_ERROR_COUNT_TOTAL"),
    *("DCGM_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL", "DCGM_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL"),
    *("DCGM_FI_PROF_NVLINK_TX_BYTES", "DCGM_FI_PROF_NVLINK_RX_BYTES"),
)
_BROKEN: dict[str, dict[str, float]] = {
    "ecc": {"DCGM_FI_DEV_ECC_DBE_VOL_TOTAL": 3, "DCGM_FI_DEV_ECC_DBE_AGG_TOTAL": 3},
    "throttle": {"DCGM_FI_DEV_GPU_TEMP": _SLOWDOWN, "DCGM_FI_DEV_CLOCKS_EVENT_REASONS": _HW_THERMAL},
    "pcie-width": {"DCGM_FI_DEV_PCIE_LINK_WIDTH": 8},
    "nvlink-down": {"DCGM_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL": 1},
}
_RATES: dict[str, dict[str, float]] = {
    "throttle": {"DCGM_FI_DEV_THERMAL_VIOLATION": 1e9},
    "nvlink-down": {"DCGM_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL": 0.2},
}
"""What grows each second."""


def report(gpus: Gpus, faults: Iterable[str], now: float) -> dict[str, Any]:
    """Each GPU's labels, values, and what grows each second from `now` on; the last GPU has the faults."""
    faults = tuple(faults)
    count = gpus.count - ("lost" in faults)
    if "driver-mismatch" in faults:
        count = 0
    found = [_healthy(index, gpus) for index in range(count)]
    for fault in faults if found else ():
        kind, _, number = fault.partition(":")
        values = {"DCGM_FI_DEV_XID_ERRORS": int(number)} if kind == "xid" else _BROKEN.get(kind, {})
        found[-1]["values"] |= {name: value for name, value in values.items() if name in found[-1]["values"]}
        found[-1]["rates"] |= _RATES.get(kind, {})
    return {"since": now, "gpus": found}


def _healthy(index: int, gpus: Gpus) -> dict[str, Any]:
    architecture = gpus.architecture or Architecture.HOPPER
    sm, memory, sm_most, memory_most = smi_xml.CLOCKS[architecture]
    values: dict[str, float] = {
        **dict.fromkeys(_ZERO, 0),
        **(dict.fromkeys(_NVLINK, 0) if gpus.nvlinks else {}),
        "DCGM_FI_DEV_CLOCKS_EVENT_REASONS": 1,  # idle
        "DCGM_FI_DEV_GPU_TEMP": _TEMPERATURE,
        "DCGM_FI_DEV_MEMORY_TEMP": _MEMORY_TEMPERATURE,
        "DCGM_FI_DEV_SLOWDOWN_TEMP": _SLOWDOWN,
        "DCGM_FI_DEV_SHUTDOWN_TEMP": _SLOWDOWN + 3,
        "DCGM_FI_DEV_POWER_USAGE": _WATTS,
        "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION": 0,
        "DCGM_FI_DEV_SM_CLOCK": sm,
        "DCGM_FI_DEV_MEM_CLOCK": memory,
        "DCGM_FI_DEV_MAX_SM_CLOCK": sm_most,
        "DCGM_FI_DEV_MAX_MEM_CLOCK": memory_most,
        "DCGM_FI_DEV_FB_FREE": gpus.memory_mib - 551,
        "DCGM_FI_DEV_FB_RESERVED": 551,
        "DCGM_FI_DEV_PCIE_LINK_GEN": gpus.pcie_generation or smi_xml.GENERATION.get(architecture, 5),
        "DCGM_FI_DEV_PCIE_LINK_WIDTH": 16,
    }
    if gpus.power_watts is not None:
        values |= {
            "DCGM_FI_DEV_POWER_MGMT_LIMIT": gpus.power_watts,
            "DCGM_FI_DEV_ENFORCED_POWER_LIMIT": gpus.power_watts,
        }
    labels = {
        "gpu": str(index),
        "UUID": smi_xml.uuid(index),
        "pci_bus_id": smi_xml.bus(index),
        "device": f"nvidia{index}",
        "modelName": smi_xml.name(gpus),
    }
    return {
        "labels": labels,
        "values": values,
        "rates": {"DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION": _WATTS * 1000},  # mJ
    }

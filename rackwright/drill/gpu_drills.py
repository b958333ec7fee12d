"""Drills of GPU alerts. The lab's GPUs and the values of these faults are simulated: what is proven is the path
from a field of dcgm-exporter to a person, and not the field."""

from __future__ import annotations

from rackwright.drill.choose import gpu_worker, other_gpu_worker
from rackwright.drill.model import Drill, LabFault, Shell
from rackwright.lab.dcgm_stand_in import OVERRIDES

_HBM_HOT, _GPU_HOT, _WARM = 101, 92, 75
_LANE, _LINK_LANE = "gpu", "gpu links"
"""Counters of an hour resolve slowly."""


def fields(*lines: str, of: str) -> Shell:
    """Other values of fields of dcgm-exporter, `GPU FIELD VALUE` or `GPU FIELD +RATE` each. Drills that run side by side on
    one node are `of` something else each, and of other GPUs."""
    text = "\\n".join(f"{gpu} DCGM_FI_{rest}" for gpu, _, rest in (line.partition(" ") for line in lines))
    path = f"{OVERRIDES}.{of}"
    return Shell(f"printf '{text}\\n' > {path}", f"rm -f {path}")


def _lab(alert: str, fault: str, kind: str) -> Drill:
    return Drill(alert, fault, gpu_worker, LabFault(kind))


def _field(alert: str, fault: str, *lines: str, lane: str = _LANE) -> Drill:
    """Of GPUs 1 to 5, and links of 6 and 7: jobs of other drills have GPU 0."""
    act = fields(*lines, of=lane.replace(" ", "-"))
    return Drill(alert, fault, other_gpu_worker, act, labels={"gpu": lines[0].split()[0]}, lane=lane)


def _link(alert: str, fault: str, *lines: str) -> Drill:
    return _field(alert, fault, *lines, lane=_LINK_LANE)


_FAULTS = (
    _lab("GpuCountLow", "a GPU falls off the bus", "gpu:lost"),
    _lab("GpuXidCritical", "Xid 79 in the kernel log", "gpu:xid:79"),
    _lab("GpuEccUncorrected", "an uncorrectable ECC error", "gpu:ecc"),
)
_XIDS = (
    _field("GpuXidApplication", "Xid 13, an application fault", "1 DEV_XID_ERRORS 13"),
    _field("GpuRecoveryActionChanged", "Xid 154, the driver asks for a recovery", "2 DEV_XID_ERRORS 154"),
    _field("GpuXidUnknown", "Xid 999, which is not in the catalogue", "3 DEV_XID_ERRORS 999"),
)
_MEMORY = (
    _field("GpuRowRemapFailed", "a failed row remapping", "4 DEV_ROW_REMAP_FAILURE 1"),
    _field("GpuRowRemapPending", "a row remapping that waits for a reset", "5 DEV_ROW_REMAP_PENDING 1"),
    _field("GpuRowsRemappedMany", "513 remapped rows", "1 DEV_UNCORRECTABLE_REMAPPED_ROWS 513"),
    _field("GpuMemoryLeftOver", "40 GB in use without a job", "2 DEV_FB_USED 40960"),
)
_CLOCKS = (
    _field("GpuHot", "a GPU at its slowdown temperature", f"1 DEV_GPU_TEMP {_GPU_HOT}"),
    _field("GpuHotWhileIdle", "75 C without a job", f"3 DEV_GPU_TEMP {_WARM}"),
    _field("GpuMemoryHot", "HBM above 95 C", f"2 DEV_MEMORY_TEMP {_HBM_HOT}"),
    _field(
        "GpuThrottledByHeat",
        "thermal slowdown a quarter of the time",
        "3 DEV_THERMAL_VIOLATION +250000000",
    ),
    _field(
        "GpuThrottledByPower",
        "power capping half of the time",
        "4 DEV_POWER_VIOLATION +500000000",
    ),
    _field(
        "GpuThrottledByBoard",
        "board slowdown a tenth of the time",
        "5 DEV_BOARD_LIMIT_VIOLATION +100000000",
    ),
)
_LINKS = (
    _link("GpuPcieWidthLow", "a link trained to x8", "6 DEV_PCIE_LINK_WIDTH 8"),
    _link("GpuPcieGenerationLow", "a busy GPU on PCIe 3", "7 DEV_PCIE_LINK_GEN 3", "7 DEV_GPU_UTIL 97"),
    _link("GpuPcieReplays", "PCIe replays", "6 DEV_PCIE_REPLAY_COUNTER +1000"),
    _link("GpuNvlinkRecovered", "NVLinks that recover", "7 DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL +1"),
    _link("GpuNvlinkErrors", "NVLink replays", "6 DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL +100"),
)
GPU_DRILLS: tuple[Drill, ...] = (*_FAULTS, *_XIDS, *_MEMORY, *_CLOCKS, *_LINKS)

"""Drills of GPU alerts. The lab's GPUs are simulated, and so are the figures of these faults: what is proven is the way
from a field of dcgm-exporter to a person, and not the field."""

from __future__ import annotations

from rackwright.drill.choose import gpu_worker, other_gpu_worker
from rackwright.drill.model import Drill, LabFault, Shell
from rackwright.lab.dcgm_stand_in import OVERRIDES

_HBM_HOT, _GPU_HOT = 101, 92


def _fields(*lines: str) -> Shell:
    """Other values of fields of dcgm-exporter, `GPU FIELD VALUE` or `GPU FIELD +RATE` each."""
    text = "\\n".join(f"{gpu} DCGM_FI_{rest}" for gpu, _, rest in (line.partition(" ") for line in lines))
    return Shell(f"printf '{text}\\n' > {OVERRIDES}", f"rm -f {OVERRIDES}")


def _lab(alert: str, fault: str, kind: str) -> Drill:
    return Drill(alert, fault, gpu_worker, LabFault(kind))


def _field(alert: str, fault: str, *lines: str) -> Drill:
    return Drill(alert, fault, other_gpu_worker, _fields(*lines), labels={"gpu": lines[0].split()[0]})


GPU_DRILLS = (
    Drill("GpuCountLow", "a GPU falls off the bus", gpu_worker, LabFault("gpu:lost")),
    _lab("GpuXidCritical", "Xid 79 in the kernel log", "gpu:xid:79"),
    _lab("GpuEccUncorrected", "an uncorrectable ECC error", "gpu:ecc"),
    _field("GpuXidApplication", "Xid 13, a program's own fault", "0 DEV_XID_ERRORS 13"),
    _field("GpuHot", "a GPU at its slowdown temperature", f"1 DEV_GPU_TEMP {_GPU_HOT}"),
    _field("GpuMemoryHot", "HBM above 95 C", f"2 DEV_MEMORY_TEMP {_HBM_HOT}"),
    _field(
        "GpuThrottledByHeat",
        "clocks lowered by heat a quarter of the time",
        "3 DEV_THERMAL_VIOLATION +250000000",
    ),
    _field("GpuPcieWidthLow", "a link trained to x8", "4 DEV_PCIE_LINK_WIDTH 8"),
    _field("GpuPcieReplays", "PCIe replays", "5 DEV_PCIE_REPLAY_COUNTER +1000"),
    _field("GpuRowRemapFailed", "a row that cannot be remapped", "6 DEV_ROW_REMAP_FAILURE 1"),
    _field("GpuRowRemapPending", "a row that waits for a reset", "7 DEV_ROW_REMAP_PENDING 1"),
)

"""Cases of rackwright.alerts.gpu_links."""

from __future__ import annotations

from tests.unit.alerts.case import Case
from tests.unit.alerts.series import GPU, dcgm, declared

CASES = (
    Case(
        alert="GpuPcieReplays",
        series={dcgm("DEV_PCIE_REPLAY_COUNTER"): "0*61 500*70"},
        fires=3660,
        labels=GPU,
        severity="warning",
        summary="gpu1: GPU 0 repeated 500 PCIe packets within an hour",
        description="GPU 0 of gpu1 had to repeat 500 PCIe packets within an hour. The link is bad, and transfers to the host and the fabric are slow. Reseat the GPU.",
        heals=7260,
        under=({dcgm("DEV_PCIE_REPLAY_COUNTER"): "0*61 460*70"},),
    ),
    Case(
        alert="GpuPcieWidthLow",
        series={dcgm("DEV_PCIE_LINK_WIDTH"): "16*2 8*8 16*3", declared("gpu_pcie_lanes"): "16*13"},
        fires=420,
        labels=GPU,
        severity="warning",
        summary="gpu1: GPU 0 uses 8 PCIe lanes",
        description="GPU 0 of gpu1 uses only 8 PCIe lanes, fewer than its SKU declares. Transfers to the host and through the fabric are slow, and every job on the node with them. Drain it and reseat the GPU.",
        heals=600,
        under=({declared("gpu_pcie_lanes"): "8*13"},),
    ),
    Case(
        alert="GpuPcieGenerationLow",
        series={
            dcgm("DEV_PCIE_LINK_GEN"): "5*2 4*13 5*3",
            declared("gpu_pcie_generation"): "5*18",
            dcgm("DEV_GPU_UTIL"): "90*18",
        },
        fires=720,
        labels=GPU,
        severity="warning",
        summary="gpu1: GPU 0 is busy at PCIe generation 4",
        description="GPU 0 of gpu1 is busy and its PCIe link runs at generation 4, below the declared. Its transfers take twice as long or more. Drain the node and reboot it.",
        heals=900,
        under=(
            {dcgm("DEV_GPU_UTIL"): "50*18"},
            {declared("gpu_pcie_generation"): "4*18"},
        ),
    ),
    Case(
        alert="GpuNvlinkRecovered",
        series={dcgm("DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL"): "0*3 1*70"},
        fires=180,
        labels=GPU,
        severity="warning",
        summary="gpu1: an NVLink of GPU 0 went down and recovered",
        description="An NVLink of GPU 0 on gpu1 was lost and recovered (1 within an hour). The job stood still meanwhile; the next time it may die with XID 74. Drain the node when its jobs have ended.",
        heals=3780,
        under=({dcgm("DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL"): "4*73"},),
    ),
    Case(
        alert="GpuNvlinkErrors",
        series={dcgm("DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL"): "0*61 110*70"},
        fires=3660,
        labels=GPU,
        severity="warning",
        summary="gpu1: 110 NVLink errors on GPU 0 within an hour",
        description="The NVLinks of GPU 0 on gpu1 counted 110 replays or CRC errors within an hour. Collectives inside the node slow down. Drain the node when its jobs have ended.",
        heals=7260,
        under=({dcgm("DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL"): "0*61 90*70"},),
    ),
    Case(
        alert="GpuNvlinkErrors",
        series={
            dcgm("DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL"): "0*61 370000*70",
            dcgm("DEV_NVLINK_CRC_DATA_ERROR_COUNT_TOTAL"): "0*131",
        },
        fires=3660,
        labels=GPU,
        severity="warning",
        summary="gpu1: 370000 NVLink errors on GPU 0 within an hour",
        description="The NVLinks of GPU 0 on gpu1 counted 370000 replays or CRC errors within an hour. Collectives inside the node slow down. Drain the node when its jobs have ended.",
        heals=7260,
        under=(
            {
                dcgm("DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL"): "0*61 340000*70",
                dcgm("DEV_NVLINK_CRC_DATA_ERROR_COUNT_TOTAL"): "0*131",
            },
        ),
    ),
)

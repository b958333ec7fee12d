"""Cases of rackwright.alerts.gpu_clocks."""

from __future__ import annotations

from tests.unit.alerts.case import Case
from tests.unit.alerts.series import GPU, dcgm

CASES = (
    Case(
        alert="GpuHot",
        series={dcgm("DEV_GPU_TEMP"): "60*2 89*8 60*3", dcgm("DEV_SLOWDOWN_TEMP"): "90*13"},
        fires=420,
        labels=GPU,
        severity="warning",
        summary="gpu1: GPU 0 is at 89 °C, about to slow down",
        description="GPU 0 of gpu1 has been above 98 % of the temperature at which it slows itself down for 5 minutes, now at 89 °C. Check the node's fans and its inlet temperature.",
        heals=600,
        under=(
            {dcgm("DEV_GPU_TEMP"): "60*2 88*11"},
            {dcgm("DEV_SLOWDOWN_TEMP"): "0*13"},
        ),
    ),
    Case(
        alert="GpuMemoryHot",
        series={dcgm("DEV_MEMORY_TEMP"): "60*2 96*8 60*3"},
        fires=420,
        labels=GPU,
        severity="warning",
        summary="gpu1: memory of GPU 0 is at 96 °C",
        description="The memory of GPU 0 on gpu1 has been at 96 °C for 5 minutes. Above 95 °C it loses bits and ages fast. Check cooling.",
        heals=600,
        under=(
            {dcgm("DEV_MEMORY_TEMP"): "60*2 95*11"},
            {dcgm("DEV_MEMORY_TEMP"): "9223372036854775794*13"},
        ),
    ),
    Case(
        alert="GpuHotWhileIdle",
        series={dcgm("DEV_GPU_TEMP"): "30*2 71*33 30*3", dcgm("DEV_GPU_UTIL"): "0*38"},
        fires=1920,
        labels=GPU,
        severity="warning",
        summary="gpu1: GPU 0 is idle and at 71 °C",
        description="GPU 0 of gpu1 has been idle for 30 minutes and is at 71 °C. Its cooling does not work, and the next job will be throttled. Check fans and heat sink.",
        heals=2100,
        under=(
            {dcgm("DEV_GPU_TEMP"): "30*2 70*36"},
            {dcgm("DEV_GPU_UTIL"): "10*38"},
        ),
    ),
    Case(
        alert="GpuThrottledByHeat",
        series={dcgm("DEV_THERMAL_VIOLATION"): "0+3600000000*20 68400000000*10"},
        fires=900,
        labels=GPU,
        severity="warning",
        summary="gpu1: heat slows GPU 0 down 6 % of the time",
        description="Heat has held down the clock of GPU 0 on gpu1 for 6 % of the time over 10 minutes. Its job runs at the speed of this GPU. Check fans, heat sink and inlet temperature.",
        heals=1200,
        under=({dcgm("DEV_THERMAL_VIOLATION"): "0+2760000000*20 52440000000*10"},),
    ),
    Case(
        alert="GpuThrottledByPower",
        series={dcgm("DEV_POWER_VIOLATION"): "0+15000000000*70 1035000000000*10"},
        fires=3900,
        labels=GPU,
        severity="info",
        summary="gpu1: GPU 0 is at its power limit 25 % of the time",
        description="GPU 0 of gpu1 has spent 25 % of the last hour at its power limit. Under full load that is normal. On one node of a job alone, its limit is wrong: nvidia-smi -q -d POWER.",
        heals=4200,
        under=({dcgm("DEV_POWER_VIOLATION"): "0+10800000000*70 745200000000*10"},),
    ),
    Case(
        alert="GpuThrottledByBoard",
        series={
            dcgm("DEV_BOARD_LIMIT_VIOLATION"): "0+1200000000*15 16800000000*10",
            dcgm("DEV_RELIABILITY_VIOLATION"): "0*25",
        },
        fires=480,
        labels=GPU,
        severity="warning",
        summary="gpu1: the board holds GPU 0 back",
        description="The board's or a reliability limit has held down GPU 0 on gpu1 for 2 % of the time over 5 minutes. Suspect a power supply or the power brake. Look at the BMC's event log.",
        heals=1020,
        under=({dcgm("DEV_BOARD_LIMIT_VIOLATION"): "0+540000000*15 7560000000*10"},),
    ),
)

"""Cases of rackwright.alerts.gpus."""

from __future__ import annotations

from tests.unit.alerts.case import Case
from tests.unit.alerts.series import GPU, GPU1, dcgm, declared, node

CASES = (
    Case(
        alert="GpuCountLow",
        series={
            declared("gpus"): "3*15",
            dcgm("DEV_GPU_TEMP", gpu="2", UUID="GPU-0c"): "30*15",
            node("up"): "1*15",
            node("up", job="dcgm", instance="gpu1:9400"): "1*15",
            dcgm("DEV_GPU_TEMP"): "30*15",
            dcgm("DEV_GPU_TEMP", gpu="1", UUID="GPU-0b"): "30*3 stale _*7 30*4",
        },
        fires=300,
        labels=GPU1,
        severity="critical",
        summary="gpu1 has 2 GPUs, fewer than declared",
        description="DCGM sees 2 GPUs on gpu1, fewer than its SKU declares. One has fallen off the bus, or the driver does not load it. Drain the node, then reboot it once; a GPU that stays away needs an RMA.",
        heals=660,
        under=(
            {dcgm("DEV_GPU_TEMP", gpu="1", UUID="GPU-0b"): "30*15"},
            {node("up"): "0*15"},
            {
                node("up", job="dcgm", instance="gpu1:9400"): "0*15",
                dcgm("DEV_GPU_TEMP"): "stale",
                dcgm("DEV_GPU_TEMP", gpu="1", UUID="GPU-0b"): "stale",
                dcgm("DEV_GPU_TEMP", gpu="2", UUID="GPU-0c"): "stale",
            },
        ),
    ),
    Case(
        alert="GpuXidCritical",
        series={
            dcgm("DEV_XID_ERRORS"): "0*3 79*2 43*5 0*1 43*3",
            node("up", job="dcgm", instance="gpu1:9400"): "1*14",
        },
        fires=180,
        labels={**GPU, "xid": "79"},
        severity="critical",
        summary="gpu1: GPU 0 reported XID 79",
        description="GPU 0 (GPU-0a) of gpu1 reported XID 79, after which no new job may use it. Drain the node; rackwright catalog --table xid lists the action for this XID.",
        heals=600,
        under=(
            {dcgm("DEV_XID_ERRORS"): "0*3 31*5 0*3"},
            {dcgm("DEV_XID_ERRORS"): "0*3 63*5 0*3"},
        ),
    ),
    Case(
        alert="GpuRecoveryActionChanged",
        series={dcgm("DEV_XID_ERRORS"): "0*3 154*5 0*3"},
        fires=180,
        labels={**GPU, "xid": "154"},
        severity="critical",
        summary="gpu1: the driver asks for a recovery of GPU 0",
        description="The driver changed the recovery action of GPU 0 on gpu1 (XID 154). The kernel log has the new one: journalctl -k -g 'GPU recovery action' -n 5. Carry it out.",
        heals=480,
        under=({dcgm("DEV_XID_ERRORS"): "0*3 79*5 0*3"},),
    ),
    Case(
        alert="GpuXidApplication",
        series={dcgm("DEV_XID_ERRORS"): "0*16 31*20"},
        fires=960,
        labels={**GPU, "xid": "31"},
        severity="info",
        summary="gpu1: GPU 0 reported XID 31, which blames the job",
        description="GPU 0 of gpu1 reported XID 31: a fault of the program that ran there. The node needs no action. If different jobs get it on the same GPU, the GPU is at fault.",
        heals=1860,
        under=({dcgm("DEV_XID_ERRORS"): "0*16 63*20"},),
    ),
    Case(
        alert="GpuXidUnknown",
        series={dcgm("DEV_XID_ERRORS"): "0*3 999*5 0*3"},
        fires=180,
        labels={**GPU, "xid": "999"},
        severity="warning",
        summary="gpu1: GPU 0 reported XID 999, which is not in the catalogue",
        description="GPU 0 of gpu1 reported XID 999, and rackwright's catalogue does not know it. Look it up in NVIDIA's XID documentation, and drain the node until you know.",
        heals=480,
        under=({dcgm("DEV_XID_ERRORS"): "0*3 79*5 0*3"},),
    ),
)

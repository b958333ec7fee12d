"""Cases of rackwright.alerts.gpu_memory."""

from __future__ import annotations

from tests.unit.alerts.case import Case
from tests.unit.alerts.series import GPU, dcgm, series, slurm

CASES = (
    Case(
        alert="GpuEccUncorrected",
        series={
            dcgm("DEV_ECC_DBE_VOL_TOTAL", hpc_job="7"): "0*3 stale",
            dcgm("DEV_ECC_DBE_VOL_TOTAL"): "_*3 1*70",
        },
        fires=180,
        labels=GPU,
        severity="critical",
        summary="gpu1: GPU 0 has uncorrected memory errors",
        description="GPU 0 (GPU-0a) of gpu1 had uncorrected ECC errors (1 within an hour). The job that owned the memory was killed. Drain the node and reset the GPU.",
        heals=3780,
        under=(
            {
                dcgm("DEV_ECC_DBE_VOL_TOTAL", hpc_job="7"): "3*3 stale",
                dcgm("DEV_ECC_DBE_VOL_TOTAL"): "_*3 3*70",
            },
        ),
    ),
    Case(
        alert="GpuRowRemapFailed",
        series={dcgm("DEV_ROW_REMAP_FAILURE"): "0*2 1*3 0*3"},
        fires=120,
        labels=GPU,
        severity="critical",
        summary="gpu1: GPU 0 cannot remap a bad row",
        description="GPU 0 (GPU-0a) of gpu1 has a bad row of memory and no spare one left for it. It has to be replaced. Drain the node and open an RMA.",
        heals=300,
        under=({dcgm("DEV_ROW_REMAP_FAILURE"): "0*8"},),
    ),
    Case(
        alert="GpuRowRemapPending",
        series={dcgm("DEV_ROW_REMAP_PENDING"): "0*2 1*8 0*3"},
        fires=420,
        labels=GPU,
        severity="warning",
        summary="gpu1: GPU 0 needs a reset to replace a bad row",
        description="GPU 0 of gpu1 has a bad row of memory that a spare one replaces at the next reset. Until then it can fail again. Drain the node and reset the GPU when its jobs have ended.",
        heals=600,
        under=({dcgm("DEV_ROW_REMAP_PENDING"): "0*2 1*5 0*6"},),
    ),
    Case(
        alert="GpuRowsRemappedMany",
        series={dcgm("DEV_UNCORRECTABLE_REMAPPED_ROWS"): "511*2 513*3 0*2"},
        fires=120,
        labels=GPU,
        severity="critical",
        summary="gpu1: GPU 0 has replaced 513 rows of memory",
        description="GPU 0 (GPU-0a) of gpu1 has replaced 513 rows after uncorrected errors. That is the limit from which vendors replace it. Drain the node and open an RMA.",
        heals=300,
        under=({dcgm("DEV_UNCORRECTABLE_REMAPPED_ROWS"): "511*2 512*5"},),
    ),
    Case(
        alert="GpuMemoryLeftOver",
        series={dcgm("DEV_FB_USED"): "100*2 1025*18 100*3", slurm("slurm_node_gpus", node="gpu1"): "8*23"},
        fires=1020,
        labels=GPU,
        severity="warning",
        summary="gpu1: memory is taken on GPU 0, which no job has",
        description="1025 MiB are taken on GPU 0 of gpu1 although Slurm has given it to no job. A process was left behind or runs outside Slurm, and the next job runs out of memory. Find it: nvidia-smi; fuser -v /dev/nvidia0.",
        heals=1200,
        under=(
            {dcgm("DEV_FB_USED"): "100*2 1024*21"},
            {series("slurm_job_gpu", job="7", node="gpu1", gpu="0", instance="head1:9341"): "1*23"},
            {slurm("slurm_node_gpus", node="gpu1"): "0*23"},
            # MIG, or details of jobs that cannot be read: jobs have GPUs, and it is not known which
            {slurm("slurm_node_gpus_allocated", node="gpu1"): "7*23"},
        ),
    ),
)

"""Cases of rackwright.alerts.jobs."""

from __future__ import annotations

from tests.unit.alerts.case import Case
from tests.unit.alerts.series import dcgm, declared, series

CASES = (
    Case(
        alert="JobGpusIdle",
        series={
            dcgm("DEV_GPU_UTIL"): "2*80 90*10",
            series("slurm_job_gpu", instance="head1:9341", job="7", node="gpu1", gpu="0"): "1*90",
            series(
                "slurm_job_info",
                instance="head1:9341",
                job="7",
                user="ada",
                account="research",
                partition="main",
                qos="normal",
            ): "1*90",
            series("slurm_job_start_timestamp_seconds", instance="head1:9341", job="7"): "0*90",
        },
        fires=3960,
        labels={"account": "research", "job": "7", "partition": "main", "user": "ada"},
        severity="warning",
        summary="Job 7 of ada leaves its GPUs idle",
        description="The GPUs of job 7 (ada, account research) have been 2.0 % busy over the last hour. Other jobs wait for them. Ask the user whether the job still works: job-metrics 7.",
        heals=4920,
        under=(
            {dcgm("DEV_GPU_UTIL"): "5*90"},
            {series("slurm_job_start_timestamp_seconds", instance="head1:9341", job="7"): "-3600+60*90"},
        ),
    ),
    Case(
        alert="JobStalled",
        series={
            declared("gpu_power_watts"): "700*25",
            dcgm("DEV_GPU_UTIL"): "100*25",
            dcgm("DEV_POWER_USAGE"): "150*25",
            dcgm("PROF_PIPE_TENSOR_ACTIVE"): "0.4*2 0*18 0.4*5",
            dcgm("DEV_GPU_UTIL", gpu="1", UUID="GPU-0b"): "100*25",
            dcgm("DEV_POWER_USAGE", gpu="1", UUID="GPU-0b"): "150*25",
            dcgm("PROF_PIPE_TENSOR_ACTIVE", gpu="1", UUID="GPU-0b"): "0.4*2 0*18 0.4*5",
            series("slurm_job_gpu", instance="head1:9341", job="7", node="gpu1", gpu="0"): "1*25",
            series("slurm_job_gpu", instance="head1:9341", job="7", node="gpu1", gpu="1"): "1*25",
            series(
                "slurm_job_info",
                instance="head1:9341",
                job="7",
                user="ada",
                account="research",
                partition="main",
                qos="normal",
            ): "1*25",
        },
        fires=1020,
        labels={"account": "research", "job": "7", "partition": "main", "user": "ada"},
        severity="warning",
        summary="Job 7 of ada looks stalled",
        description="All GPUs of job 7 (ada, account research) are at least 100 % busy, draw little power and use no tensor cores for 15 minutes: ranks wait for each other in a collective. Find the rank that is behind, or the node.",
        heals=1200,
        under=(
            {dcgm("DEV_POWER_USAGE", gpu="1", UUID="GPU-0b"): "245*25"},
            {dcgm("DEV_GPU_UTIL"): "90*25"},
            {dcgm("PROF_PIPE_TENSOR_ACTIVE"): "0.01*25"},
        ),
    ),
)

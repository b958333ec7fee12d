"""Cases of rackwright.alerts.recording."""

from __future__ import annotations

from tests.unit.alerts.case import Recorded
from tests.unit.alerts.series import GPU, GPU1, dcgm, declared, series, slurm

_JOB = {"job": "7", "instance": "head1:9341"}
_HAS = {
    series("slurm_job_gpu", **_JOB, node="gpu1", gpu="0"): "1*6",
    series("slurm_job_gpu", **_JOB, node="gpu1", gpu="1"): "1*6",
    series("slurm_job_info", **_JOB, user="ada", account="research", partition="main", qos="normal"): "1*6",
}
"""Job 7 of Ada has GPUs 0 and 1."""


def _gpu(name: str, **labels: str) -> str:
    return series(name, **{**GPU, **labels})


def _two(field: str, first: str, second: str) -> dict[str, str]:
    """Of GPU 0, in the hands of a job, and of GPU 1."""
    return {
        dcgm(field, hpc_job="7"): first,
        dcgm(field, gpu="1", UUID="GPU-0b", hpc_job="7"): second,
    }


def _as_is(record: str, field: str, value: float) -> Recorded:
    """A figure that MIG instances share, without the job that has it."""
    instances = {dcgm(field, GPU_I_ID=number, hpc_job="7"): f"{value:g}*6" for number in ("3", "5")}
    return Recorded(record, instances, {_gpu(record): value})


def _in_seconds(record: str, field: str, *others: str) -> Recorded:
    further = {dcgm(one): "1000000000*6" for one in others}
    return Recorded(record, {dcgm(field): "2500000000*6", **further}, {_gpu(record): 2.5 + len(others)})


CASES = (
    Recorded(
        "gpu:xid:last",
        _two("DEV_XID_ERRORS", "0*3 79*3", "0*6"),
        {_gpu("gpu:xid:last", xid="79"): 1},
    ),
    Recorded(
        "gpu:xid:seen",
        {
            **_two("DEV_XID_ERRORS", "0*1 79*1 43*4", "48*2 0*1 13*3"),
            series("up", **GPU1, job="dcgm", instance="gpu1:9400"): "1*6",
        },
        {
            _gpu("gpu:xid:seen", xid="79"): 1,
            _gpu("gpu:xid:seen", xid="43"): 1,
            _gpu("gpu:xid:seen", xid="13", gpu="1", UUID="GPU-0b"): 1,
        },
    ),
    _as_is("gpu:ecc_uncorrected:total", "DEV_ECC_DBE_VOL_TOTAL", 3),
    _as_is("gpu:pcie_replays:total", "DEV_PCIE_REPLAY_COUNTER", 12),
    _as_is("gpu:nvlink_replays:total", "DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL", 5),
    _as_is("gpu:nvlink_recoveries:total", "DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL", 1),
    _as_is("gpu:tensor_active:ratio", "PROF_PIPE_TENSOR_ACTIVE", 0.5),
    _as_is("gpu:power_watts:max", "DEV_POWER_USAGE", 612.5),
    Recorded(
        "gpu:nvlink_crc_errors:total",
        {
            dcgm("DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL"): "40*6",
            dcgm("DEV_NVLINK_CRC_DATA_ERROR_COUNT_TOTAL"): "2*6",
        },
        {_gpu("gpu:nvlink_crc_errors:total"): 42},
    ),
    _in_seconds("gpu:throttled_by_heat_seconds:total", "DEV_THERMAL_VIOLATION"),
    _in_seconds("gpu:throttled_by_power_seconds:total", "DEV_POWER_VIOLATION"),
    _in_seconds(
        "gpu:throttled_by_board_seconds:total", "DEV_BOARD_LIMIT_VIOLATION", "DEV_RELIABILITY_VIOLATION"
    ),
    Recorded("gpu:utilisation:ratio", {dcgm("DEV_GPU_UTIL"): "97*6"}, {_gpu("gpu:utilisation:ratio"): 0.97}),
    Recorded(
        "gpu:power:ratio",
        {dcgm("DEV_POWER_USAGE"): "350*6", declared("gpu_power_watts"): "700*6"},
        {_gpu("gpu:power:ratio"): 0.5},
    ),
    Recorded(
        "job:gpu_utilisation:avg",
        {**_HAS, **_two("DEV_GPU_UTIL", "100*6", "50*6")},
        {series("job:gpu_utilisation:avg", job="7"): 0.75},
    ),
    Recorded(
        "job:gpu_utilisation:min",
        {**_HAS, **_two("DEV_GPU_UTIL", "100*6", "50*6")},
        {series("job:gpu_utilisation:min", job="7"): 0.5},
    ),
    Recorded(
        "job:gpu_tensor_active:max",
        {**_HAS, **_two("PROF_PIPE_TENSOR_ACTIVE", "0.25*6", "0.5*6")},
        {series("job:gpu_tensor_active:max", job="7"): 0.5},
    ),
    Recorded(
        "job:gpu_power:max",
        {**_HAS, **_two("DEV_POWER_USAGE", "175*6", "350*6"), declared("gpu_power_watts"): "700*6"},
        {series("job:gpu_power:max", job="7"): 0.5},
    ),
    Recorded(
        "job:gpu_power_watts:sum",
        {**_HAS, **_two("DEV_POWER_USAGE", "175*6", "350*6")},
        {series("job:gpu_power_watts:sum", job="7"): 525},
    ),
    Recorded(
        "account:gpu_power_watts:sum",
        {**_HAS, **_two("DEV_POWER_USAGE", "175*6", "350*6")},
        {series("account:gpu_power_watts:sum", account="research", user="ada"): 525},
    ),
    Recorded(
        "account:gpus_idle:count",
        {**_HAS, **_two("DEV_GPU_UTIL", "100*6", "4*6")},
        {series("account:gpus_idle:count", account="research", user="ada"): 1},
    ),
    Recorded(
        "cluster:gpus_allocated:ratio",
        {
            slurm("slurm_node_gpus", node="gpu1"): "8*6",
            slurm("slurm_node_gpus", node="gpu2"): "8*6",
            slurm("slurm_node_gpus_allocated", node="gpu1"): "8*6",
            slurm("slurm_node_gpus_allocated", node="gpu2"): "4*6",
        },
        {"cluster:gpus_allocated:ratio": 0.75},
    ),
)

"""Recorded series that several rules, a job's page or an account's page need.

DCGM's series carry the job that has the GPU (`hpc_job`), so that a counter becomes another series when the job ends, and the
increase in between is lost. The counters are recorded here without that label; MIG instances of one GPU become one.
"""

from __future__ import annotations

from rackwright.alerts.promql import PLACE
from rackwright.alerts.rule import Recording, RuleGroup

GPU = f"{PLACE}, gpu, UUID"
"""Labels of one GPU."""
_DCGM = frozenset({"dcgm"})
_DECLARED = frozenset({"dcgm", "node"})
_JOBS = frozenset({"dcgm", "slurm"})
_NS = "/ 1e9"


def dcgm(field: str) -> str:
    """A field of DCGM's, one value for each GPU."""
    return f'max by ({GPU}) (DCGM_FI_{field}{{job="dcgm"}})'


def _of_job(aggregate: str, figure: str) -> str:
    return f"{aggregate} by (job) (slurm_job_gpu * on (node, gpu) group_left () {figure})"


_GPUS = RuleGroup(
    "gpu_figures",
    (
        Recording(
            "gpu:xid:last",
            f'count_values by ({GPU}) ("xid", DCGM_FI_DEV_XID_ERRORS{{job="dcgm"}} > 0)',
            "A series for the last XID of each GPU that had one since DCGM started; the number is its label xid.",
            _DCGM,
        ),
        Recording(
            "gpu:xid:seen",
            f"""
gpu:xid:last
or ((gpu:xid:seen unless on (node, gpu) ({dcgm("DEV_XID_ERRORS")} == 0)) and on (node) up{{job="dcgm"}})
""",
            "A series for each XID that has been a GPU's last one since DCGM started; DCGM itself keeps only the newest.",
            _DCGM,
        ),
        Recording(
            "gpu:ecc_uncorrected:total",
            dcgm("DEV_ECC_DBE_VOL_TOTAL"),
            "Uncorrected ECC errors since the driver was loaded.",
            _DCGM,
        ),
        Recording(
            "gpu:pcie_replays:total", dcgm("DEV_PCIE_REPLAY_COUNTER"), "PCIe packets sent again.", _DCGM
        ),
        Recording(
            "gpu:nvlink_crc_errors:total",
            f"{dcgm('DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL')} + {dcgm('DEV_NVLINK_CRC_DATA_ERROR_COUNT_TOTAL')}",
            "CRC errors of a GPU's NVLinks.",
            _DCGM,
        ),
        Recording(
            "gpu:nvlink_replays:total",
            dcgm("DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL"),
            "NVLink packets sent again.",
            _DCGM,
        ),
        Recording(
            "gpu:nvlink_recoveries:total",
            dcgm("DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL"),
            "Times that NVLinks had to recover.",
            _DCGM,
        ),
        Recording(
            "gpu:throttled_by_heat_seconds:total",
            f"{dcgm('DEV_THERMAL_VIOLATION')} {_NS}",
            "Seconds that heat held the clock down.",
            _DCGM,
        ),
        Recording(
            "gpu:throttled_by_power_seconds:total",
            f"{dcgm('DEV_POWER_VIOLATION')} {_NS}",
            "Seconds at the power limit.",
            _DCGM,
        ),
        Recording(
            "gpu:throttled_by_board_seconds:total",
            f"({dcgm('DEV_BOARD_LIMIT_VIOLATION')} + {dcgm('DEV_RELIABILITY_VIOLATION')}) {_NS}",
            "Seconds that the board's limit or a reliability limit held the clock down.",
            _DCGM,
        ),
        Recording(
            "gpu:utilisation:ratio",
            f"{dcgm('DEV_GPU_UTIL')} / 100",
            "Share of time in which a kernel ran.",
            _DCGM,
        ),
        Recording(
            "gpu:tensor_active:ratio",
            dcgm("PROF_PIPE_TENSOR_ACTIVE"),
            "Share of cycles in which tensor cores worked.",
            _DCGM,
        ),
        Recording("gpu:power_watts:max", dcgm("DEV_POWER_USAGE"), "Power draw of each GPU, watts.", _DCGM),
        Recording(
            "gpu:power:ratio",
            "gpu:power_watts:max / on (node) group_left () rackwright_declared_gpu_power_watts",
            "Power draw as a share of the SKU's declared maximum.",
            _DECLARED,
        ),
    ),
)

_BY_JOB = RuleGroup(
    "job_figures",
    (
        Recording(
            "job:gpu_utilisation:avg",
            _of_job("avg", "gpu:utilisation:ratio"),
            "Mean utilisation of a job's GPUs.",
            _JOBS,
        ),
        Recording(
            "job:gpu_utilisation:min",
            _of_job("min", "gpu:utilisation:ratio"),
            "Utilisation of its least busy GPU.",
            _JOBS,
        ),
        Recording(
            "job:gpu_tensor_active:max",
            _of_job("max", "gpu:tensor_active:ratio"),
            "Tensor activity of its most active GPU.",
            _JOBS,
        ),
        Recording(
            "job:gpu_power:max",
            _of_job("max", "gpu:power:ratio"),
            "Highest power draw of its GPUs, as a share of the declared maximum.",
            _JOBS | {"node"},
        ),
        Recording(
            "job:gpu_power_watts:sum",
            _of_job("sum", "gpu:power_watts:max"),
            "Power of all its GPUs, watts.",
            _JOBS,
        ),
        Recording(
            "account:gpu_power_watts:sum",
            "sum by (account, user) (job:gpu_power_watts:sum * on (job) group_left (account, user) slurm_job_info)",
            "Power of all GPUs of an account's user, watts; summed over time it is the energy.",
            _JOBS,
        ),
        Recording(
            "account:gpus_idle:count",
            "count by (account, user) ((slurm_job_gpu * on (node, gpu) group_left () gpu:utilisation:ratio < 0.05) "
            "* on (job) group_left (account, user) slurm_job_info)",
            "GPUs that an account's user has and that are less than 5 % busy.",
            _JOBS,
        ),
        Recording(
            "cluster:gpus_allocated:ratio",
            "sum(slurm_node_gpus_allocated) / sum(slurm_node_gpus)",
            "Share of all GPUs that jobs hold.",
            frozenset({"slurm"}),
        ),
    ),
)

GROUPS = (_GPUS, _BY_JOB)

"""What is asked of Prometheus about one job of one user. A user supplies a number, and never an expression.

Every expression is joined with the series with the owner of the job, at each point in time: where the job is another
user's, Prometheus itself returns nothing.
"""

from __future__ import annotations

import re

JOB = re.compile(r"[0-9]{1,10}")
USER_MAX = 200
"""Characters of a user's name, as slurm_job_info has it."""

_GPU = {
    "gpu utilization": ("DCGM_FI_DEV_GPU_UTIL", "%"),
    "gpu tensor active": ("100 * DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", "%"),
    "gpu power": ("DCGM_FI_DEV_POWER_USAGE", "W"),
    "gpu memory used": ("DCGM_FI_DEV_FB_USED / 1024", "GiB"),
    "gpu temperature": ("DCGM_FI_DEV_GPU_TEMP", "C"),
}
_NODE = {
    "node cpu busy": ('sum by (node) (rate(node_cpu_seconds_total{mode!="idle"}[2m]))', "cores"),
    "node memory used": ("(node_memory_MemTotal_bytes - node_memory_MemAvailable_bytes) / 2 ^ 30", "GiB"),
    "infiniband received": (
        "sum by (node) (rate(node_infiniband_port_data_received_bytes_total[2m])) / 1e9",
        "GB/s",
    ),
    "infiniband sent": (
        "sum by (node) (rate(node_infiniband_port_data_transmitted_bytes_total[2m])) / 1e9",
        "GB/s",
    ),
    "nfs read": ("sum by (node) (rate(node_mountstats_nfs_total_read_bytes_total[2m])) / 1e9", "GB/s"),
    "nfs written": ("sum by (node) (rate(node_mountstats_nfs_total_write_bytes_total[2m])) / 1e9", "GB/s"),
}
"""Of the whole node, which the job may share."""
UNITS = {name: unit for name, (_, unit) in {**_GPU, **_NODE}.items()}


def is_askable(user: str) -> bool:
    """Whether Prometheus can be asked about a user of this name, which a directory chooses: `EX\\ada`, `ada@example.com`."""
    return user.isprintable() and 0 < len(user) <= USER_MAX


def expressions(job: str, user: str | None) -> dict[str, str]:
    """PromQL by what it shows; `user` None: whichever user the job has. ValueError where it is not a job or not a user."""
    owner = _owner(job, user)
    gpus = f'(slurm_job_gpu{{job="{job}"}} and on (job) {owner})'
    nodes = f'(slurm_job_cpus{{job="{job}"}} and on (job) {owner})'
    return {
        **{
            name: f"({expression}) * on (node, gpu) group_left (job) {gpus}"
            for name, (expression, _) in _GPU.items()
        },
        **{name: f"({expression}) and on (node) {nodes}" for name, (expression, _) in _NODE.items()},
    }


def ownership(job: str, user: str | None, days: int) -> str:
    """Non-empty where the job ran within these days, and is the user's."""
    return f"count_over_time({_owner(job, user)}[{days}d])"


def _owner(job: str, user: str | None) -> str:
    """The series with the owner of the job."""
    if not JOB.fullmatch(job) or (user is not None and not is_askable(user)):
        raise ValueError("not a job of a user")
    if user is None:
        return f'slurm_job_info{{job="{job}"}}'
    quoted = user.replace("\\", "\\\\").replace('"', '\\"')
    return f'slurm_job_info{{job="{job}",user="{quoted}"}}'

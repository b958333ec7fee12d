"""One job, as its user sees it."""

from __future__ import annotations

from rackwright.dashboards.model import Colour, Dashboard, Row, Thresholds, Unit
from rackwright.dashboards.parts import JOB, USE, stat, table, time

_ON = 'slurm_job_gpu{job="$job"}'
_NODES = 'and on (node) slurm_job_cpus{job="$job"}'


_NO_GPU = "No GPU of this job has figures."
"""The panel `What it holds` shows whether it has any."""


def _gpu(expression: str) -> str:
    return f"{_ON} * on (node, gpu) group_left () max by (node, gpu) ({expression})"


_SPAN = 'slurm_job_info{job="$job"}'
_SEEN = f"max by (job, user, account, partition, qos) (max_over_time(timestamp({_SPAN})[$__range:]))"
_BEGAN = 'max by (job) (last_over_time(slurm_job_start_timestamp_seconds{job="$job"}[$__range]))'
_TENSOR = f"({_ON} * on (node, gpu) group_left () gpu:tensor_active:ratio)[$__range:]"


def _mean(recorded: str) -> str:
    return f'avg_over_time({recorded}{{job="$job"}}[$__range])'


_NOW = Row(
    "The job",
    (
        table(
            "What it is",
            "Whose job it is, where it was submitted, and how long it has run, or ran.",
            ("job", "user", "account", "partition", "qos"),
            (f"{_SEEN} - on (job) group_left () {_BEGAN}", "has run", Unit.SECONDS),
            width=24,
            height=4,
        ),
        stat(
            "What it holds",
            Unit.NUMBER,
            "GPUs, nodes and CPUs that the job holds, whether it uses them or not.",
            ('sum(last_over_time(slurm_job_gpus{job="$job"}[$__range]))', "GPUs"),
            ('count(last_over_time(slurm_job_cpus{job="$job"}[$__range]))', "nodes"),
            ('sum(last_over_time(slurm_job_cpus{job="$job"}[$__range]))', "CPUs"),
        ),
        stat(
            "GPU utilization",
            Unit.RATIO,
            "Mean of its GPUs over the span. Below 40 %: the job waits for data, or asks for more GPUs than it uses.",
            (_mean("job:gpu_utilisation:avg"), "mean"),
            thresholds=USE,
            empty=_NO_GPU,
        ),
        stat(
            "Tensor cores active",
            Unit.RATIO,
            "Mean of its GPUs over the span. The best single figure of how well a training run uses its cards: 30 to 60 % is "
            "usual.",
            (f"avg(avg_over_time({_TENSOR}))", "mean"),
            thresholds=Thresholds(((0.1, Colour.NOTICE), (0.25, Colour.GOOD)), base=Colour.WARN),
            empty=_NO_GPU,
        ),
        stat(
            "Power",
            Unit.WATTS,
            "All its GPUs together, mean over the span. Far below the number of GPUs times their usual power: they wait.",
            (_mean("job:gpu_power_watts:sum"), "mean"),
            empty=_NO_GPU,
        ),
        stat(
            "Energy",
            Unit.KILOWATT_HOURS,
            "Of its GPUs, within the span. The whole node takes about half as much again.",
            ('sum_over_time(job:gpu_power_watts:sum{job="$job"}[$__range:1m]) * 60 / 3.6e6', "energy"),
            empty="No GPU of this job has figures of a whole minute.",
        ),
        stat(
            "Slowest GPU",
            Unit.RATIO,
            "Utilization of the least busy GPU against the mean of all. Well below 1: one rank holds up the others.",
            (
                f"{_mean('job:gpu_utilisation:min')} / ({_mean('job:gpu_utilisation:avg')} > 0)",
                "least of mean",
            ),
            thresholds=Thresholds(((0.5, Colour.NOTICE), (0.8, Colour.GOOD)), base=Colour.BAD),
            empty="No GPU of the job did anything.",
        ),
    ),
)
_GPUS = Row(
    "GPUs",
    (
        time(
            "Utilization",
            Unit.PERCENT,
            "By GPU. Lines that lie together are ranks in step. One flat line: a rank died or waits. Regular gaps: "
            "checkpoints or data loading.",
            (_gpu("DCGM_FI_DEV_GPU_UTIL"), "{{node}} GPU {{gpu}}"),
            low=0,
            high=100,
            leads_to=("node",),
            empty=_NO_GPU,
        ),
        time(
            "Tensor cores active by GPU",
            Unit.RATIO,
            "Share of cycles in which tensor cores work. Near zero with high utilization: the job waits inside of a kernel, "
            "usually for the network.",
            (_gpu("DCGM_FI_PROF_PIPE_TENSOR_ACTIVE"), "{{node}} GPU {{gpu}}"),
            low=0,
            high=1,
            leads_to=("node",),
            empty=_NO_GPU,
        ),
        time(
            "Power by GPU",
            Unit.WATTS,
            "High utilization at low power is a stalled job: it spins and computes nothing.",
            (_gpu("DCGM_FI_DEV_POWER_USAGE"), "{{node}} GPU {{gpu}}"),
            low=0,
            leads_to=("node",),
            empty=_NO_GPU,
        ),
        time(
            "GPU memory in use",
            Unit.BYTES,
            "A line at the card's size is one step from running out; far below it, a larger batch fits.",
            (f"1048576 * ({_gpu('DCGM_FI_DEV_FB_USED')})", "{{node}} GPU {{gpu}}"),
            low=0,
            leads_to=("node",),
            empty=_NO_GPU,
        ),
        time(
            "Temperature by GPU",
            Unit.CELSIUS,
            "A GPU that is far hotter than the others may be throttled: contact the cluster's staff.",
            (_gpu("DCGM_FI_DEV_GPU_TEMP"), "{{node}} GPU {{gpu}}"),
            leads_to=("node",),
            empty=_NO_GPU,
        ),
        time(
            "NVLink by GPU",
            Unit.BYTES_PER_SECOND,
            "Sent and received between GPUs of a node. Zero with several GPUs: they talk over PCIe or not at all.",
            (
                _gpu("DCGM_FI_PROF_NVLINK_TX_BYTES + DCGM_FI_PROF_NVLINK_RX_BYTES"),
                "{{node}} GPU {{gpu}}",
            ),
            low=0,
            leads_to=("node",),
            empty=_NO_GPU,
        ),
    ),
)
_HOSTS = Row(
    "Nodes",
    (
        time(
            "CPU busy",
            Unit.RATIO,
            "Of whole nodes, which the job may share. One core busy and GPUs idle: data is loaded by one process.",
            (
                'avg by (node) (1 - rate(node_cpu_seconds_total{mode="idle"}[$__rate_interval])) ' + _NODES,
                "{{node}}",
            ),
            low=0,
            high=1,
            leads_to=("node",),
        ),
        time(
            "Memory in use",
            Unit.BYTES,
            "Of whole nodes. A line that climbs without end is a leak; the job ends when it reaches its limit.",
            (
                f"sum by (node) (node_memory_MemTotal_bytes - node_memory_MemAvailable_bytes) {_NODES}",
                "{{node}}",
            ),
            low=0,
            leads_to=("node",),
        ),
        time(
            "Fabric received",
            Unit.BYTES_PER_SECOND,
            "By node, all rails. Nodes of one job receive alike; one that receives less is behind a bad link.",
            (
                "sum by (node) (rate(node_infiniband_port_data_received_bytes_total[$__rate_interval])) "
                + _NODES,
                "{{node}}",
            ),
            low=0,
            leads_to=("node",),
        ),
        time(
            "Fabric by rail",
            Unit.BYTES_PER_SECOND,
            "Of all the job's nodes together, by port. One flat rail is a bad link or a rail that NCCL does not use.",
            (
                (
                    "sum by (device) (rate(node_infiniband_port_data_received_bytes_total[$__rate_interval]) "
                    f"{_NODES})"
                ),
                "{{device}}",
            ),
            low=0,
        ),
        time(
            "Ethernet received",
            Unit.BYTES_PER_SECOND,
            "By node, all interfaces: file servers, containers, data from outside.",
            (
                'sum by (node) (rate(node_network_receive_bytes_total{device!="lo"}[$__rate_interval])) '
                + _NODES,
                "{{node}}",
            ),
            low=0,
            leads_to=("node",),
        ),
        time(
            "File servers",
            Unit.BYTES_PER_SECOND,
            "Read from and, below zero, written to NFS servers, by node. Reads all the time with idle GPUs: the data does not "
            "keep up.",
            (
                "sum by (node) (rate(node_mountstats_nfs_total_read_bytes_total[$__rate_interval])) "
                + _NODES,
                "{{node}} read",
            ),
            (
                "-sum by (node) (rate(node_mountstats_nfs_total_write_bytes_total[$__rate_interval])) "
                + _NODES,
                "{{node}} written",
            ),
            leads_to=("node",),
        ),
        time(
            "Local disks",
            Unit.BYTES_PER_SECOND,
            "Read and, below zero, written, by node.",
            (
                "sum by (node) (rate(node_disk_read_bytes_total[$__rate_interval])) " + _NODES,
                "{{node}} read",
            ),
            (
                "-sum by (node) (rate(node_disk_written_bytes_total[$__rate_interval])) " + _NODES,
                "{{node}} written",
            ),
            leads_to=("node",),
        ),
    ),
)
JOB_PAGE = Dashboard(
    "job",
    "Job",
    "One job, for its user: whether it uses the GPUs it holds, whether its ranks are in step, and what it waits for.",
    (_NOW, _GPUS, _HOSTS),
    (JOB,),
    since="6h",
    for_users=True,
)

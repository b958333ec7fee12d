"""Overview of the cluster."""

from __future__ import annotations

from rackwright.dashboards.model import Colour, Dashboard, Row, Thresholds, Unit
from rackwright.dashboards.parts import (
    ANY_IS_BAD,
    BY_STATE,
    JOB_STATES,
    NODE_STATES,
    NONE_IS_GOOD,
    counted,
    stat,
    table,
    time,
)

_NOW = Row(
    "Now",
    (
        stat(
            "Nodes that answer",
            Unit.NUMBER,
            "Nodes whose metrics are read. Fewer than the declared nodes: look at the table of nodes that do not answer.",
            ('sum(up{job="node"})', "answer"),
            ("count(rackwright_declared_cpus)", "declared"),
        ),
        stat(
            "GPUs that jobs hold",
            Unit.RATIO,
            "Share of Slurm's GPUs that are allocated. Low while jobs wait: look at the queue for the reason.",
            ("cluster:gpus_allocated:ratio", "GPUs"),
            low=0,
            high=1,
        ),
        stat(
            "CPUs that jobs hold",
            Unit.RATIO,
            "Share of Slurm's CPUs that are allocated.",
            ("sum(slurm_node_cpus_allocated) / sum(slurm_node_cpus)", "CPUs"),
            low=0,
            high=1,
        ),
        stat(
            "Jobs",
            Unit.NUMBER,
            "Jobs that run and jobs that wait.",
            ('sum(slurm_jobs{state="running"})', "running"),
            ('sum(slurm_jobs{state="pending"})', "pending"),
            colours=JOB_STATES,
        ),
        stat(
            "Nodes out of service",
            Unit.NUMBER,
            "Nodes that Slurm gives no job: drained, draining or down. Look for reasons in the table below.",
            (
                counted(
                    'count by (node) (slurm_node_state{state=~"drained|draining|down|fail"})', "slurm_up"
                ),
                "nodes",
            ),
            thresholds=NONE_IS_GOOD,
        ),
        stat(
            "Alerts that fire",
            Unit.NUMBER,
            "Critical alerts: jobs fail or data is at risk. Warnings need work in the next days.",
            (
                counted('ALERTS{alertstate="firing",severity="critical"}', 'up{job="prometheus"}'),
                "critical",
            ),
            (counted('ALERTS{alertstate="firing",severity="warning"}', 'up{job="prometheus"}'), "warning"),
            thresholds=ANY_IS_BAD,
        ),
    ),
)
_WORK = Row(
    "Work",
    (
        time(
            "Nodes by state",
            Unit.NUMBER,
            "Nodes as Slurm has them, each once. A band of `drained` or `down` that grows is hardware that fails faster than it is "
            "repaired; `idle` while jobs wait is a limit or a fragmented cluster.",
            *BY_STATE,
            stacked=True,
            colours=NODE_STATES,
        ),
        time(
            "Jobs over time",
            Unit.NUMBER,
            "Running and waiting jobs. Waiting jobs that grow while nodes are idle: look at the queue.",
            ('sum by (state) (slurm_jobs{state=~"running|pending"})', "{{state}}"),
            colours=JOB_STATES,
        ),
        time(
            "GPUs declared, held and busy",
            Unit.NUMBER,
            "Three lines that should lie together. Between `declared` and `in Slurm` are broken nodes, between `in Slurm` and "
            "`held` is free capacity, between `held` and `busy` is waste.",
            ("sum(rackwright_declared_gpus)", "declared"),
            ("sum(slurm_node_gpus)", "in Slurm"),
            ("sum(slurm_node_gpus_allocated)", "held"),
            ("sum(DCGM_FI_DEV_GPU_UTIL) / 100", "busy"),
            colours={
                "declared": Colour.OFF,
                "in Slurm": Colour.PLANNED,
                "held": Colour.NOTICE,
                "busy": Colour.BUSY,
            },
        ),
        time(
            "GPU utilization",
            Unit.PERCENT,
            "Mean of all GPUs. Utilization only shows that a kernel runs; tensor activity shows that it computes. High "
            "utilization with tensor activity near zero is a job that waits for data or for the network.",
            ("avg(DCGM_FI_DEV_GPU_UTIL)", "utilization"),
            ("100 * avg(DCGM_FI_PROF_PIPE_TENSOR_ACTIVE)", "tensor active"),
            low=0,
            high=100,
        ),
        time(
            "CPU busy",
            Unit.RATIO,
            "Mean by what nodes are for. A head that is busy all the time delays every job's start.",
            (
                'avg by (role) (1 - rate(node_cpu_seconds_total{mode="idle"}[$__rate_interval]))',
                "{{role}}",
            ),
            low=0,
            high=1,
        ),
        time(
            "Memory in use",
            Unit.RATIO,
            "Of the nodes that hold a role, all memory that programs cannot get back from the kernel.",
            (
                "1 - sum by (role) (node_memory_MemAvailable_bytes) / sum by (role) (node_memory_MemTotal_bytes)",
                "{{role}}",
            ),
            low=0,
            high=1,
        ),
        time(
            "Network of the nodes",
            Unit.BYTES_PER_SECOND,
            "All Ethernet interfaces together. Received and sent lie together where traffic stays in the cluster.",
            (
                'sum(rate(node_network_receive_bytes_total{device!="lo"}[$__rate_interval]))',
                "received",
            ),
            ('sum(rate(node_network_transmit_bytes_total{device!="lo"}[$__rate_interval]))', "sent"),
        ),
        time(
            "GPU power",
            Unit.WATTS,
            "All GPUs together, and the most they are declared to take. A flat line far below while jobs run: they wait.",
            ("sum(DCGM_FI_DEV_POWER_USAGE)", "now"),
            ("sum(rackwright_declared_gpus * rackwright_declared_gpu_power_watts)", "declared"),
            colours={"declared": Colour.OFF, "now": Colour.BUSY},
        ),
    ),
)
_ATTENTION = Row(
    "What needs action",
    (
        table(
            "Alerts",
            "Alerts that fire. Each has a runbook page in the documentation, by its name.",
            ("severity", "alertname", "node", "rack"),
            (
                'max by (severity, alertname, node, rack) (ALERTS{alertstate="firing",severity=~"critical|warning"})',
                "firing",
                Unit.NUMBER,
            ),
            width=24,
            empty="No alert fires.",
        ),
        table(
            "Nodes that do not answer",
            "Declared nodes without metrics. All of one rack or leaf: look at its switch or power first.",
            ("node", "rack", "leaf"),
            (
                '1 - (up{job="node"} < 1)',
                "down",
                Unit.NUMBER,
            ),
            empty="Every declared node answers.",
        ),
        table(
            "Drained nodes",
            "Since when, why, and who did it. A drain of the health check ends by itself once the node is well.",
            ("node", "reason", "user"),
            ("time() - slurm_node_drain_since_timestamp_seconds", "for", Unit.SECONDS),
            thresholds=Thresholds(((86400, Colour.NOTICE), (7 * 86400, Colour.BAD))),
            empty="No node is drained.",
        ),
    ),
)
OVERVIEW = Dashboard(
    "overview",
    "Cluster overview",
    "Whether the cluster works, what it works on, and what needs attention. The page to begin with.",
    (_NOW, _WORK, _ATTENTION),
    since="6h",
)

"""One node."""

from __future__ import annotations

from rackwright.dashboards.model import Colour, Dashboard, Row, Thresholds, Unit
from rackwright.dashboards.parts import (
    ANSWERS,
    ANY_IS_BAD,
    FULLNESS,
    GPU_HEAT,
    NODE,
    bars,
    each_gpu,
    node_power,
    stat,
    table,
    time,
)

_NOW = Row(
    "Now",
    (
        stat(
            "Answers",
            Unit.STATE,
            "Whether its metrics are read. `down` with everything else empty: the node is off or unreachable.",
            ('max(up{job="node",node="$node"})', "node"),
            states=ANSWERS,
        ),
        stat(
            "Up since",
            Unit.SECONDS,
            "Time since its last boot. Shorter than expected: it rebooted by itself; look for the reason in its logs.",
            ('time() - max(node_boot_time_seconds{node="$node"})', "uptime"),
        ),
        stat(
            "Memory in use",
            Unit.RATIO,
            "Memory that programs use. Above 90 % the kernel's OOM killer may end jobs.",
            (
                '1 - max(node_memory_MemAvailable_bytes{node="$node"} / node_memory_MemTotal_bytes)',
                "memory",
            ),
            thresholds=FULLNESS,
        ),
        stat(
            "Failed units",
            Unit.NUMBER,
            "Units of systemd that rackwright declares and that have failed.",
            ('sum(node_systemd_unit_state{node="$node",state="failed"})', "units"),
            thresholds=ANY_IS_BAD,
        ),
        stat(
            "Failed health checks",
            Unit.NUMBER,
            "Checks that failed in the health check's last pass; the table below names them.",
            ('sum(rackwright_health_checks{node="$node",status="FAIL"})', "checks"),
            thresholds=ANY_IS_BAD,
        ),
        stat(
            "Drift",
            Unit.STATE,
            "Whether `rackwright apply` would change something here; `rackwright drift` lists the changes.",
            ('max(rackwright_drift_drifted{node="$node"})', "node"),
            states={0.0: ("as declared", Colour.GOOD), 1.0: ("drifted", Colour.WARN)},
        ),
    ),
)
_WORK = Row(
    "What it works on",
    (
        table(
            "Jobs on this node",
            "Running jobs with CPUs here; follow one to its own page.",
            ("job", "user", "account", "partition"),
            (
                'slurm_job_cpus{node="$node"} * on (job) group_left (user, account, partition) slurm_job_info',
                "CPUs",
                Unit.NUMBER,
            ),
            empty="No job runs here.",
        ),
        table(
            "Failed checks",
            "Health checks that failed in the last pass and what the policy does about each.",
            ("check", "action"),
            ('max by (check, action) (rackwright_health_failed{node="$node"})', "failed", Unit.NUMBER),
            empty="No health check fails.",
        ),
    ),
)
_CPU = Row(
    "CPU and memory",
    (
        time(
            "CPU by mode",
            Unit.RATIO,
            "`user` is work, `system` the kernel, `iowait` waiting for a disk or a file server. Much `system` on a GPU node is "
            "often a polling process or memory that is compacted.",
            (
                'avg by (mode) (rate(node_cpu_seconds_total{node="$node",mode!="idle"}[$__rate_interval]))',
                "{{mode}}",
            ),
            stacked=True,
            low=0,
            high=1,
        ),
        time(
            "Load and CPUs",
            Unit.NUMBER,
            "Processes that run or wait, and CPUs. Load far above the CPUs with idle CPUs: processes hang in a filesystem.",
            ('node_load1{node="$node"}', "load, 1 min"),
            ('count(node_cpu_seconds_total{node="$node",mode="idle"})', "CPUs"),
            ('node_processes_state{node="$node",state="D"}', "waiting for a device"),
            colours={"CPUs": Colour.OFF, "waiting for a device": Colour.BAD},
        ),
        time(
            "Memory",
            Unit.BYTES,
            "What programs hold, the cache, and what is free. A line that climbs to the top and falls: a job was killed for "
            "memory.",
            (
                'node_memory_MemTotal_bytes{node="$node"} - node_memory_MemAvailable_bytes',
                "in use",
            ),
            ('node_memory_Cached_bytes{node="$node"} + node_memory_Buffers_bytes', "cache"),
            ('node_memory_MemTotal_bytes{node="$node"}', "all"),
            colours={"all": Colour.OFF},
            low=0,
        ),
        time(
            "Stalls",
            Unit.RATIO,
            "Share of time in which some process waited for CPU, memory or a disk (the kernel's pressure stall information). "
            "Memory above a few per cent: too much runs here.",
            ('rate(node_pressure_cpu_waiting_seconds_total{node="$node"}[$__rate_interval])', "CPU"),
            ('rate(node_pressure_memory_waiting_seconds_total{node="$node"}[$__rate_interval])', "memory"),
            ('rate(node_pressure_io_waiting_seconds_total{node="$node"}[$__rate_interval])', "disk"),
            low=0,
        ),
    ),
)
_GPU = Row(
    "GPUs",
    (
        time(
            "GPU utilization",
            Unit.PERCENT,
            "Of each GPU. One flat GPU among busy ones: the job lost a rank.",
            (each_gpu("DCGM_FI_DEV_GPU_UTIL", 'node="$node"'), "GPU {{gpu}}"),
            low=0,
            high=100,
        ),
        time(
            "GPU temperature",
            Unit.CELSIUS,
            "One GPU above its neighbours: its heat sink; all together: fans or air.",
            (each_gpu("DCGM_FI_DEV_GPU_TEMP", 'node="$node"'), "GPU {{gpu}}"),
            thresholds=GPU_HEAT,
        ),
        time(
            "GPU power",
            Unit.WATTS,
            "One GPU below the others at the same utilization is throttled or waits for its neighbours.",
            (each_gpu("DCGM_FI_DEV_POWER_USAGE", 'node="$node"'), "GPU {{gpu}}"),
            low=0,
        ),
        time(
            "GPU memory in use",
            Unit.BYTES,
            "Memory that a process holds on each GPU; memory without a job is a process that was left behind.",
            ("1048576 * " + each_gpu("DCGM_FI_DEV_FB_USED", 'node="$node"'), "GPU {{gpu}}"),
            low=0,
        ),
    ),
)
_NETWORK = Row(
    "Network",
    (
        time(
            "Ethernet",
            Unit.BYTES_PER_SECOND,
            "Received and, below zero, sent, by interface.",
            (
                'rate(node_network_receive_bytes_total{node="$node",device!="lo"}[$__rate_interval])',
                "{{device}} received",
            ),
            (
                '-rate(node_network_transmit_bytes_total{node="$node",device!="lo"}[$__rate_interval])',
                "{{device}} sent",
            ),
        ),
        time(
            "Lost packets",
            Unit.PER_SECOND,
            "Errors and drops by interface. More than zero for long: a cable, a duplex mismatch, or a full queue.",
            (
                (
                    'rate(node_network_receive_errs_total{node="$node",device!="lo"}[$__rate_interval])'
                    ' + rate(node_network_transmit_errs_total{node="$node",device!="lo"}[$__rate_interval])'
                ),
                "{{device}} errors",
            ),
            (
                (
                    'rate(node_network_receive_drop_total{node="$node",device!="lo"}[$__rate_interval])'
                    ' + rate(node_network_transmit_drop_total{node="$node",device!="lo"}[$__rate_interval])'
                ),
                "{{device}} drops",
            ),
            low=0,
        ),
        time(
            "Fabric",
            Unit.BYTES_PER_SECOND,
            "Received by port. In a job that uses all rails the lines lie together; one flat rail is a bad link.",
            (
                'rate(node_infiniband_port_data_received_bytes_total{node="$node"}[$__rate_interval])',
                "{{device}}",
            ),
            low=0,
        ),
        time(
            "Clock",
            Unit.SECONDS,
            "How far the clock is from its source. More than some milliseconds between nodes breaks MUNGE and traces.",
            ('node_timex_offset_seconds{node="$node"}', "offset"),
        ),
    ),
)
_DISKS = Row(
    "Disks and filesystems",
    (
        bars(
            "Filesystems",
            Unit.RATIO,
            "How full each is. A full root filesystem stops daemons one by one.",
            (
                '1 - node_filesystem_avail_bytes{node="$node"} / node_filesystem_size_bytes',
                "{{mountpoint}}",
            ),
            thresholds=FULLNESS,
            low=0,
            high=1,
        ),
        time(
            "Disks",
            Unit.BYTES_PER_SECOND,
            "Read and, below zero, written, by disk.",
            ('rate(node_disk_read_bytes_total{node="$node"}[$__rate_interval])', "{{device}} read"),
            ('-rate(node_disk_written_bytes_total{node="$node"}[$__rate_interval])', "{{device}} written"),
        ),
    ),
)
_HARDWARE = Row(
    "Hardware",
    (
        time(
            "Temperatures of the BMC",
            Unit.CELSIUS,
            "What the board's sensors report: inlet, CPUs, memory.",
            ('ipmi_temperature_celsius{node="$node"}', "{{name}}"),
        ),
        time(
            "Power of the node",
            Unit.WATTS,
            "What the BMC measures for the whole node.",
            (node_power('node="$node"'), "node"),
            low=0,
        ),
        time(
            "Memory errors",
            Unit.NUMBER,
            "Errors since the boot that ECC corrected or could not correct. Corrected ones that grow: a module that will fail; "
            "one that could not be corrected: drain the node.",
            (
                'sum by (controller) (node_edac_correctable_errors_total{node="$node"})',
                "controller {{controller}} corrected",
            ),
            (
                'sum by (controller) (node_edac_uncorrectable_errors_total{node="$node"})',
                "controller {{controller}} not corrected",
            ),
            thresholds=Thresholds(((1, Colour.WARN),)),
            low=0,
        ),
    ),
)
NODE_PAGE = Dashboard(
    "node",
    "Node",
    "One node: its jobs, CPUs, GPUs, links and disks, and the results of its checks.",
    (_NOW, _WORK, _CPU, _GPU, _NETWORK, _DISKS, _HARDWARE),
    (NODE,),
    since="6h",
)

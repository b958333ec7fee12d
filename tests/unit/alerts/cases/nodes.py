"""Cases of rackwright.alerts.nodes."""

from __future__ import annotations

from tests.unit.alerts.case import Case
from tests.unit.alerts.series import GPU1, NODE, blackbox, node

CASES = (
    Case(
        alert="NodeDown",
        series={node("up"): "1*3 0*10 1*5"},
        fires=300,
        labels=NODE,
        severity="critical",
        summary="gpu1 is down",
        description="gpu1 answers neither on its exporters' ports nor by ssh. Slurm sets it DOWN after SlurmdTimeout and its jobs are lost. Look at its console through the BMC, then power-cycle it.",
        heals=780,
        under=(
            {node("up"): "1*3 0*2 1*13"},
            {blackbox("probe_success", probe="ssh", instance="10.0.0.11:22"): "1*18"},
        ),
    ),
    Case(
        alert="RackDown",
        series={
            node("up", node="gpu1"): "1*2 0*5 1*3",
            node("up", node="gpu2"): "1*2 0*5 1*3",
            node("up", node="gpu3"): "1*2 0*5 1*3",
            node("up", node="gpu4"): "1*2 0*5 1*3",
            node("up", node="gpu5"): "1*10",
        },
        fires=180,
        labels={"rack": "r1"},
        severity="critical",
        summary="Rack r1: 80 % of its nodes are down",
        description="80 % of the nodes in rack r1 do not answer. Check the rack's power feeds and its management switch before any single node.",
        heals=420,
        under=(
            {node("up", node="gpu4"): "1*10", node("up", node="gpu5"): "stale"},
            {
                node("up", node="gpu2"): "stale",
                node("up", node="gpu3"): "stale",
                node("up", node="gpu4"): "stale",
                node("up", node="gpu5"): "stale",
            },
            {blackbox("probe_success", node="gpu4", probe="ssh", instance="10.0.0.14:22"): "1*10"},
        ),
    ),
    Case(
        alert="NodeRebooted",
        series={node("node_time_seconds"): "1000+60*30", node("node_boot_time_seconds"): "100*10 1500*20"},
        fires=600,
        labels=NODE,
        severity="info",
        summary="gpu1 booted 1m 40s ago",
        description="gpu1 booted 1m 40s ago. If it was not rebooted on purpose, read how the previous boot ended: journalctl -k -b -1 -n 200.",
        heals=1140,
        under=({node("node_boot_time_seconds"): "400*30"},),
    ),
    Case(
        alert="ProcessesBlocked",
        series={node("node_processes_state", state="D"): "2*2 21*20 2*3"},
        fires=1020,
        labels={**NODE, "state": "D"},
        severity="warning",
        summary="gpu1: 21 processes are blocked in the kernel",
        description="21 processes on gpu1 have been in state D for 15 minutes, usually because a filesystem does not answer. See what they wait for: ps -eo pid,stat,wchan:32,cmd | awk '$2 ~ /^D/'.",
        heals=1320,
        under=({node("node_processes_state", state="D"): "2*2 20*23"},),
    ),
    Case(
        alert="ConntrackNearlyFull",
        series={
            node("node_nf_conntrack_entries"): "10*2 76*8 10*3",
            node("node_nf_conntrack_entries_limit"): "100*13",
        },
        fires=420,
        labels=NODE,
        severity="warning",
        summary="gpu1: the connection table is 76 % full",
        description="The kernel's connection table on gpu1 is 76 % full. Once it is full, new connections are dropped. Find out who opens them: ss -s, conntrack -L.",
        heals=600,
        under=({node("node_nf_conntrack_entries"): "10*2 75*11"},),
    ),
    Case(
        alert="CpuThrottledByHeat",
        series={
            node("node_cpu_core_throttles_total", core="0", package="0"): "0+9*80 711*70",
            node("node_cpu_core_throttles_total", core="1", package="0"): "0+9*80 711*70",
        },
        fires=3960,
        labels=GPU1,
        severity="warning",
        summary="gpu1: heat slows the CPUs down",
        description="Heat slowed the cores of gpu1 down 1080 times within an hour. Its jobs run slow and hold up their other nodes. Check its fans and the inlet temperature.",
        heals=5040,
        under=(
            {
                node("node_cpu_core_throttles_total", core="0", package="0"): "0+8*80 632*70",
                node("node_cpu_core_throttles_total", core="1", package="0"): "0+8*80 632*70",
            },
        ),
    ),
    Case(
        alert="SensorNearCritical",
        series={
            node("node_hwmon_temp_celsius", chip="platform_coretemp_0", sensor="temp1"): "60*2 96*8 60*3",
            node("node_hwmon_temp_crit_celsius", chip="platform_coretemp_0", sensor="temp1"): "100*13",
        },
        fires=420,
        labels={**NODE, "chip": "platform_coretemp_0", "sensor": "temp1"},
        severity="warning",
        summary="gpu1: platform_coretemp_0 temp1 at 96 °C",
        description="temp1 of platform_coretemp_0 on gpu1 reads 96 °C, within 5 °C of the limit at which the part slows down or shuts off. Check fans and inlet air.",
        heals=600,
        under=(
            {node("node_hwmon_temp_celsius", chip="platform_coretemp_0", sensor="temp1"): "60*2 95*11"},
            {node("node_hwmon_temp_crit_celsius", chip="platform_coretemp_0", sensor="temp1"): "0*13"},
        ),
    ),
)

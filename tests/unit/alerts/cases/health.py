"""Cases of rackwright.alerts.health."""

from __future__ import annotations

from tests.unit.alerts.case import Case
from tests.unit.alerts.series import GPU1, NODE, declared, node

CASES = (
    Case(
        alert="HealthCheckFailed",
        series={node("rackwright_health_failed", check="gpu-count", action="reboot"): "_*2 1*5 stale _*2"},
        fires=180,
        labels={**NODE, "action": "reboot", "check": "gpu-count"},
        severity="critical",
        summary="gpu1: health check gpu-count fails and asks for: reboot",
        description="The health check gpu-count fails on gpu1, and the node should take no jobs until it is repaired (reboot). What was seen, and what to do: rackwright why FILE gpu1.",
        heals=420,
        under=(
            {
                node("rackwright_health_failed", check="gpu-count", action="reboot"): "_*2 1*1 stale _*6",
                node("rackwright_health_failed", check="nvme-worn", action="none"): "1*10",
            },
        ),
    ),
    Case(
        alert="HealthCheckWarning",
        series={node("rackwright_health_failed", check="nvme-worn", action="none"): "_*2 1*33 stale _*2"},
        fires=1920,
        labels={**NODE, "action": "none", "check": "nvme-worn"},
        severity="warning",
        summary="gpu1: health check nvme-worn fails",
        description="The health check nvme-worn has failed on gpu1 for 30 minutes. Jobs may go on. Repair it in the next maintenance: rackwright why FILE gpu1 has the remedy.",
        heals=2100,
        under=(
            {
                node("rackwright_health_failed", check="nvme-worn", action="none"): "_*2 1*29 stale _*6",
                node("rackwright_health_failed", check="gpu-count", action="reboot"): "1*38",
            },
        ),
    ),
    Case(
        alert="HealthWouldDrain",
        series={node("rackwright_health_would_drain", check="gpu-count"): "_*2 1*13 stale _*2"},
        fires=720,
        labels={**NODE, "check": "gpu-count"},
        severity="warning",
        summary="gpu1 would be drained for gpu-count, but only observes",
        description="gpu1 would drain itself for gpu-count if health.act were true. Jobs still start there. Drain it by hand if the check is right, or correct the declaration if it is not.",
        heals=900,
        under=({node("rackwright_health_would_drain", check="gpu-count"): "_*2 1*9 stale _*6"},),
    ),
    Case(
        alert="HealthUnknown",
        series={node("rackwright_health_checks", status="UNKNOWN"): "0*2 2*63 0*3"},
        fires=3720,
        labels={**NODE, "status": "UNKNOWN"},
        severity="warning",
        summary="gpu1: health checks are UNKNOWN (2)",
        description="Some health checks of gpu1 (2) have been UNKNOWN for an hour: a tool is missing, hangs, or prints unexpected output. Unknown is not healthy. See which: rackwright health FILE --limit gpu1.",
        heals=3900,
        under=(
            {
                node("rackwright_health_checks", status="UNKNOWN"): "0*68",
                node("rackwright_health_checks", status="FAIL"): "2*68",
            },
        ),
    ),
    Case(
        alert="HealthNeedsHuman",
        series={node("rackwright_health_alert"): "0*2 1*4 0*2"},
        fires=180,
        labels=NODE,
        severity="critical",
        summary="gpu1: the health check may not act and needs an operator",
        description="The health check of gpu1 may not act on what it found: too much of the partition is drained already, it has rebooted too often, or its state is UNKNOWN. The node still takes jobs. Decide: rackwright why FILE gpu1.",
        heals=360,
        under=({node("rackwright_health_alert"): "0*2 1*1 0*5"},),
    ),
    Case(
        alert="HealthCheckNotRunning",
        series={
            node("rackwright_health_last_pass_timestamp_seconds"): "0*35 2100*5",
            node("node_time_seconds"): "9000+60*40",
            node("node_boot_time_seconds"): "0*40",
        },
        fires=1920,
        labels=NODE,
        severity="warning",
        summary="gpu1: no health check for 32m 0s",
        description="The last health check of gpu1 ended 32m 0s ago. Faults go unnoticed there. Slurm starts it: see whether slurmd runs, then start it by hand.",
        heals=2100,
        under=(
            {node("rackwright_health_last_pass_timestamp_seconds"): "-1800+60*40"},
            {node("node_boot_time_seconds"): "9000+60*40"},
        ),
    ),
    Case(
        alert="HealthVerdictMissing",
        series={
            declared("health_check"): "1*40",
            node("up"): "1*40",
            node("rackwright_health_last_pass_timestamp_seconds"): "0*2 stale _*33 2100*4",
        },
        fires=1920,
        labels=GPU1,
        severity="warning",
        summary="gpu1: no verdict of the health check in its metrics",
        description="gpu1 runs jobs and is declared to check itself, and its metrics have had no verdict for 30 minutes. The check has never run, or its metrics file is gone. No alert about its health can fire. rackwright verify FILE --limit gpu1 shows which.",
        heals=2160,
        under=(
            {declared("health_check"): "_*40"},
            {node("up"): "0*40"},
            {node("rackwright_health_last_pass_timestamp_seconds"): "0*40"},
        ),
    ),
    Case(
        alert="NodeRebootsOften",
        series={node("node_context_switches_total"): "5+1*3 1+1*2 1+1*2 1+1*2 1+1*25"},
        fires=9 * 3600,
        labels=GPU1,
        severity="critical",
        summary="gpu1 has rebooted 4 times within a day",
        description="gpu1 has rebooted 4 times within 24 hours. It takes a job with it each time. Drain it, and do not reboot it again before its event log has been read.",
        heals=27 * 3600,
        every=3600,
        under=({node("node_context_switches_total"): "5+1*3 1+1*2 1+1*2 1+1*27"},),
    ),
)

"""Cases of rackwright.alerts.upkeep."""

from __future__ import annotations

from tests.unit.alerts.case import Case
from tests.unit.alerts.series import GPU1, HEAD, HEAD1, declared, head, node

CASES = (
    Case(
        alert="NodeDrifted",
        series={
            declared("node"): "1*22",
            head(
                "rackwright_drift_drifted", node="gpu1", exported_node="gpu1", cluster="site"
            ): "0*2 1*18 0*2",
        },
        fires=1020,
        labels=GPU1,
        severity="warning",
        summary="gpu1 is no longer as declared",
        description="Something on gpu1 differs from the cluster file. See what, rackwright drift FILE, and either apply the file or declare the change.",
        heals=1200,
        under=(
            {
                head(
                    "rackwright_drift_drifted", node="gpu1", exported_node="gpu1", cluster="site"
                ): "0*2 1*14 0*6"
            },
        ),
    ),
    Case(
        alert="DriftUnknown",
        series={
            declared("node"): "1*70",
            node("up"): "1*70",
            head(
                "rackwright_drift_unreachable", node="gpu1", exported_node="gpu1", cluster="site"
            ): "0*2 1*64 0*4",
            head("rackwright_drift_unknown", node="gpu1", exported_node="gpu1", cluster="site"): "0*70",
        },
        fires=3720,
        labels=GPU1,
        severity="warning",
        summary="gpu1: the drift state is unknown",
        description="The drift check has not been able to read gpu1 for an hour, or does not trust its answer. Run rackwright drift FILE for the reason.",
        heals=3960,
        under=(
            {node("up"): "0*70"},
            {head("rackwright_drift_unreachable", node="gpu1", exported_node="gpu1", cluster="site"): "0*70"},
        ),
    ),
    Case(
        alert="DriftUnknown",
        series={
            declared("node"): "1*70",
            node("up"): "1*70",
            head(
                "rackwright_drift_unknown", node="gpu1", exported_node="gpu1", cluster="site"
            ): "0*2 1*64 0*4",
        },
        fires=3720,
        labels=GPU1,
        severity="warning",
        summary="gpu1: the drift state is unknown",
        description="The drift check has not been able to read gpu1 for an hour, or does not trust its answer. Run rackwright drift FILE for the reason.",
        heals=3960,
        under=(
            {
                head(
                    "rackwright_drift_unknown", node="gpu1", exported_node="gpu1", cluster="site"
                ): "0*2 1*58 0*10"
            },
        ),
    ),
    Case(
        alert="DriftCheckNotRunning",
        series={head("rackwright_drift_last_check_timestamp_seconds", cluster="site"): "0*28 16500*4"},
        fires=15600,
        labels={**HEAD, "cluster": "site"},
        severity="warning",
        summary="head1: no drift check for 4h 20m 0s",
        description="The last drift check that head1 reports ended 4h 20m 0s ago. Changes go unnoticed. See its timer: systemctl list-timers 'rackwright-drift*'.",
        heals=16800,
        under=({head("rackwright_drift_last_check_timestamp_seconds", cluster="site"): "-14400+600*32"},),
        every=600,
    ),
    Case(
        alert="BackupFailed",
        series={head("rackwright_backup_failed", cluster="site", exported_node="head1"): "0*2 1*3 0*2"},
        fires=120,
        labels={**HEAD1, "cluster": "site"},
        severity="warning",
        summary="The last backup of head1 failed",
        description="The last backup of head1 failed. The one before it is still there and grows old. Read why, journalctl -u rackwright-backup there, then start another.",
        heals=300,
        under=({head("rackwright_backup_failed", cluster="site", exported_node="head1"): "0*7"},),
    ),
    Case(
        alert="BackupTooOld",
        series={
            head(
                "rackwright_backup_last_success_timestamp_seconds", cluster="site", exported_node="head1"
            ): "0*52 187000*3"
        },
        fires=180000,
        labels={**HEAD1, "cluster": "site"},
        severity="critical",
        summary="The newest backup of head1 is 2d 2h 0m 0s old",
        description="The newest backup of head1 was made 2d 2h 0m 0s ago. A head that dies now loses what happened since. Find out why its timer makes none: journalctl -u rackwright-backup.",
        heals=187200,
        under=(
            {
                head(
                    "rackwright_backup_last_success_timestamp_seconds", cluster="site", exported_node="head1"
                ): "-172800+3600*55"
            },
        ),
        every=3600,
    ),
    Case(
        alert="RunFailed",
        series={head("rackwright_run_last_exit_status", command="apply"): "0*2 1*3 0*2"},
        fires=120,
        labels={**HEAD, "command": "apply"},
        severity="info",
        summary="The last rackwright apply failed",
        description="The last rackwright apply ended with exit status 1. Nodes may be half-way between two declarations. See which: rackwright runs FILE; rackwright resume ID finishes it.",
        heals=300,
        under=(
            {
                head("rackwright_run_last_exit_status", command="apply"): "0*2 2*5",
                head("rackwright_run_last_exit_status", command="verify"): "1*7",
            },
        ),
    ),
    Case(
        alert="BurninSlower",
        series={
            head("rackwright_burnin_busbw_gbs", nodes="gpu[1-32]", stage="together"): "400*3 355*3 395*3"
        },
        fires=10800,
        labels={**HEAD, "nodes": "gpu[1-32]", "stage": "together"},
        severity="warning",
        summary="The last burn-in of gpu[1-32] reached 355 GB/s, less than before",
        description="The last burn-in (together, gpu[1-32]) reached 355 GB/s, below 90 % of the best within 30 days. Something got slower: rackwright burnin compare FILE names the nodes.",
        heals=21600,
        under=({head("rackwright_burnin_busbw_gbs", nodes="gpu[1-32]", stage="together"): "400*3 360*6"},),
        every=3600,
    ),
)

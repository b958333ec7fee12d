"""Cases of rackwright.alerts.slurm."""

from __future__ import annotations

from tests.unit.alerts.case import Case
from tests.unit.alerts.series import SLURM, head, series, slurm

CASES = (
    Case(
        alert="SlurmUnreachable",
        series={slurm("slurm_up"): "1*2 0*5 1*3"},
        fires=240,
        labels=SLURM,
        severity="critical",
        summary="slurmctld does not answer",
        description="The exporter on the head gets no answer from slurmctld, although its unit runs or is not monitored. Users cannot submit, and no job starts. Try scontrol ping, then sdiag; read journalctl -u slurmctld.",
        heals=420,
        under=(
            {
                head(
                    "node_systemd_unit_state", name="slurmctld.service", state="active", type="notify"
                ): "0*10"
            },
            {slurm("slurm_up"): "1*2 0*2 1*6"},
        ),
    ),
    Case(
        # it hangs, and the one of a pair that stands by is stopped
        alert="SlurmUnreachable",
        series={
            slurm("slurm_up"): "1*2 0*5 1*3",
            head("node_systemd_unit_state", name="slurmctld.service", state="active", type="notify"): "1*10",
            head(
                "node_systemd_unit_state",
                name="slurmctld.service",
                state="active",
                type="notify",
                node="head2",
                instance="head2:9100",
            ): "0*10",
        },
        fires=240,
        labels=SLURM,
        severity="critical",
        summary="slurmctld does not answer",
        description="The exporter on the head gets no answer from slurmctld, although its unit runs or is not monitored. Users cannot submit, and no job starts. Try scontrol ping, then sdiag; read journalctl -u slurmctld.",
        heals=420,
        under=(
            {
                head(
                    "node_systemd_unit_state", name="slurmctld.service", state="active", type="notify"
                ): "0*10"
            },
        ),
    ),
    Case(
        alert="SlurmMetricsStale",
        series={slurm("slurm_scrape_age_seconds"): "30*2 301*4 30*2"},
        fires=180,
        labels=SLURM,
        severity="warning",
        summary="Slurm's figures are 5m 1s old",
        description="What Prometheus knows of Slurm is 5m 1s old: its collector hangs or fails. Alerts about nodes and jobs in Slurm are blind. Read journalctl -u 'slurm*' on the head.",
        heals=360,
        under=({slurm("slurm_scrape_age_seconds"): "30*2 300*6"},),
    ),
    Case(
        alert="SlurmdbdQueueLong",
        series={slurm("slurm_dbd_agent_queue_length"): "0*2 5001*8 0*3"},
        fires=420,
        labels=SLURM,
        severity="critical",
        summary="5001 accounting records wait for slurmdbd",
        description="slurmctld holds 5001 accounting records that slurmdbd has not taken. At MaxDBDMsgs it drops them, and job history is lost for good. Bring slurmdbd or its database back: sdiag | grep DBD.",
        heals=600,
        under=({slurm("slurm_dbd_agent_queue_length"): "0*2 5000*11"},),
    ),
    Case(
        alert="SlurmSourceFailed",
        series={slurm("slurm_source_up", source="scheduler"): "1*2 0*18 1*3"},
        fires=1020,
        labels={**SLURM, "source": "scheduler"},
        severity="warning",
        summary="Slurm's exporter cannot read: scheduler",
        description="For 15 minutes Slurm's exporter has got no answer about scheduler, while slurmctld answers about nodes and jobs. Alerts that need these figures cannot fire. Read why: journalctl -u 'slurm*exporter*' -n 20 on the head.",
        heals=1200,
        under=({slurm("slurm_source_up", source="scheduler"): "1*2 0*14 1*7"},),
    ),
    Case(
        alert="SlurmQueueStuck",
        series={
            slurm("slurm_oldest_fitting_seconds", partition="main"): "4000+60*65",
            series("slurm_job_start_timestamp_seconds", instance="head1:9341", job="7"): "0*65",
            series("slurm_job_start_timestamp_seconds", instance="head1:9341", job="8"): "_*55 3300*10",
        },
        fires=2700,
        labels={**SLURM, "partition": "main"},
        severity="warning",
        summary="Partition main: jobs wait, enough nodes are idle, and nothing starts",
        description="A job has waited 1h 51m 40s in partition main, as many nodes as it asks for are idle there, and no job has started anywhere for half an hour. The scheduler hangs or a limit blocks all jobs. See sdiag and squeue --start.",
        heals=3300,
        under=(
            {slurm("slurm_oldest_fitting_seconds", partition="main"): "3600*65"},
            {series("slurm_job_start_timestamp_seconds", instance="head1:9341", job="7"): "-1700+60*65"},
        ),
    ),
    Case(
        alert="SlurmBackfillStopped",
        series={
            slurm("slurm_scheduler_backfill_last_timestamp_seconds"): "0*25 1500*5",
            slurm("slurm_oldest_pending_seconds", partition="main"): "1000*30",
        },
        fires=1260,
        labels=SLURM,
        severity="warning",
        summary="The backfill scheduler last ran 21m 0s ago",
        description="Backfill last ran 21m 0s ago although jobs wait. Only the head of the queue starts; small jobs no longer fill gaps. See sdiag, and slurmctld's log for what it waits for.",
        heals=1500,
        under=(
            {slurm("slurm_oldest_pending_seconds", partition="main"): "900*30"},
            {slurm("slurm_scheduler_backfill_last_timestamp_seconds"): "-900+60*30"},
        ),
    ),
    Case(
        alert="SlurmSchedulerSlow",
        series={slurm("slurm_scheduler_main_cycle_seconds"): "0.01*2 2.1*18 0.01*3"},
        fires=1020,
        labels=SLURM,
        severity="warning",
        summary="A cycle of the scheduler takes 2.1s",
        description="The main scheduler's cycle has taken more than 2 s for 15 minutes, now 2.1s. Meanwhile slurmctld answers no requests, and commands time out. See sdiag for the depth of the queue.",
        heals=1200,
        under=({slurm("slurm_scheduler_main_cycle_seconds"): "0.01*2 2*21"},),
    ),
    Case(
        alert="SlurmServerThreadsHigh",
        series={slurm("slurm_server_threads"): "3*2 201*8 3*3"},
        fires=420,
        labels=SLURM,
        severity="warning",
        summary="slurmctld has 201 of 256 threads in use",
        description="slurmctld has had more than 200 of its 256 threads in use for 5 minutes, now 201. At 256 it takes no further request, and commands fail. Find the user with the most requests: sdiag, RPC statistics by user.",
        heals=600,
        under=({slurm("slurm_server_threads"): "3*2 200*11"},),
    ),
)

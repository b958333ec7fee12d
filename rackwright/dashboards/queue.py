"""The queue: what waits, how long, and why."""

from __future__ import annotations

from rackwright.dashboards.model import Colour, Dashboard, Row, Thresholds, Unit
from rackwright.dashboards.parts import JOB_STATES, NODE_STATES, PARTITION, bars, stat, table, time

_IN = '{partition=~"$partition"}'
_WAIT = Thresholds(((3600, Colour.NOTICE), (86400, Colour.BAD)))
_NOW = Row(
    "Now",
    (
        stat(
            "Running",
            Unit.NUMBER,
            "Jobs that run. None while jobs wait: every node is drained or down, or the partition is.",
            ('sum(slurm_jobs{state="running"})', "jobs"),
        ),
        stat(
            "Waiting",
            Unit.NUMBER,
            "Jobs that wait in the queue, for any reason.",
            (f"sum(slurm_jobs_pending{_IN}) or 0 * max(slurm_up)", "jobs"),
        ),
        stat(
            "Longest wait",
            Unit.SECONDS,
            "The oldest job that waits for resources or priority, since it could have started.",
            (f"max(slurm_oldest_pending_seconds{_IN}) or 0 * max(slurm_up)", "wait"),
            thresholds=_WAIT,
        ),
        stat(
            "Median wait",
            Unit.SECONDS,
            "Half of the jobs that started in the last hour waited less.",
            ('max(slurm_wait_seconds{partition=~"$partition",quantile="0.5"})', "wait"),
            empty="No job started in the last hour.",
        ),
        stat(
            "Scheduler cycle",
            Unit.SECONDS,
            "The last pass of the main scheduler. Above some seconds, commands of users time out.",
            ("max(slurm_scheduler_main_cycle_seconds)", "cycle"),
            thresholds=Thresholds(((2, Colour.NOTICE), (10, Colour.BAD))),
        ),
        stat(
            "Last backfill",
            Unit.SECONDS,
            "Time since the backfill scheduler last ended a pass. Long: it is stuck, and only the highest priorities start.",
            ("time() - max(slurm_scheduler_backfill_last_timestamp_seconds > 0)", "ago"),
            thresholds=Thresholds(((300, Colour.NOTICE), (1800, Colour.BAD))),
            empty="The backfill scheduler has made no pass yet.",
        ),
    ),
)
_WAITING = Row(
    "Who waits, and why",
    (
        time(
            "Waiting jobs by reason",
            Unit.NUMBER,
            "`Priority` and `Resources` are a full cluster. `QOSMax...` and `AssocGrp...` are limits of accounts; "
            "`ReqNodeNotAvail` is a reservation or a broken node; `Dependency` waits for another job.",
            (f"sum by (reason) (slurm_jobs_pending{_IN})", "{{reason}}"),
            stacked=True,
            empty="No job waits.",
        ),
        time(
            "Longest wait by partition",
            Unit.SECONDS,
            "A line that climbs by itself is a job that cannot start: ask Slurm why.",
            (f"slurm_oldest_pending_seconds{_IN}", "{{partition}}"),
            low=0,
            empty="No job waits for resources or priority.",
        ),
        time(
            "Wait of jobs that started",
            Unit.SECONDS,
            "Median and the longest tenth, of jobs that started in the hour before.",
            (f"slurm_wait_seconds{_IN}", "{{partition}} {{quantile}}"),
            low=0,
            empty="No job started in this time.",
        ),
        bars(
            "Waiting jobs by account",
            Unit.NUMBER,
            "Whose jobs wait now. One account with nearly all of them has hit its own limit, not the cluster's.",
            ('sum by (account) (slurm_account_jobs{state="pending"})', "{{account}}"),
            empty="No job waits.",
        ),
    ),
)
_RUNNING = Row(
    "Who runs",
    (
        time(
            "Jobs",
            Unit.NUMBER,
            "Running and waiting jobs. Waiting jobs that grow at a steady number of running ones: a full cluster.",
            ('sum by (state) (slurm_jobs{state=~"running|pending"})', "{{state}}"),
            colours=JOB_STATES,
        ),
        time(
            "GPUs by account",
            Unit.NUMBER,
            "GPUs that jobs of each account hold.",
            ("sum by (account) (slurm_account_gpus_allocated)", "{{account}}"),
            stacked=True,
            empty="No job holds a GPU.",
        ),
        time(
            "CPUs by account",
            Unit.NUMBER,
            "CPUs that jobs of each account hold.",
            ("sum by (account) (slurm_account_cpus_allocated)", "{{account}}"),
            stacked=True,
            empty="No job runs.",
        ),
        time(
            "Nodes of the partitions",
            Unit.NUMBER,
            "By state; a node that drains with a job is in two. Idle nodes in a partition whose jobs wait: the jobs ask for more "
            "than one idle node has.",
            (
                (
                    'sum by (state) (slurm_partition_nodes{partition=~"$partition",'
                    'state=~"idle|allocated|mixed|drained|draining|down"})'
                ),
                "{{state}}",
            ),
            low=0,
            colours=NODE_STATES,
        ),
        table(
            "Running jobs",
            "Jobs that run now; follow one to its own page.",
            ("job", "user", "account", "partition", "qos"),
            (
                (
                    'slurm_job_info{partition=~"$partition"} * on (job) group_left () '
                    "(time() - slurm_job_start_timestamp_seconds)"
                ),
                "has run",
                Unit.SECONDS,
            ),
            (
                'slurm_job_info{partition=~"$partition"} * on (job) group_left () sum by (job) (slurm_job_gpus)',
                "GPUs",
                Unit.NUMBER,
            ),
            width=24,
            height=10,
            empty="No job runs.",
        ),
    ),
)
_SCHEDULER = Row(
    "The scheduler",
    (
        time(
            "Cycles",
            Unit.SECONDS,
            "How long the last main and backfill passes took. A backfill pass of minutes does not reach the jobs at the end of "
            "the queue.",
            ("slurm_scheduler_main_cycle_seconds", "main"),
            ("slurm_scheduler_backfill_cycle_seconds", "backfill"),
            low=0,
        ),
        time(
            "Threads of slurmctld",
            Unit.NUMBER,
            "Requests in work. Many for long: users' scripts that ask for the queue every second.",
            ("slurm_server_threads", "threads"),
            low=0,
        ),
        time(
            "Messages for slurmdbd",
            Unit.NUMBER,
            "Accounting records that wait for the database. A number that only grows: slurmdbd or MariaDB is down, and records "
            "are lost once the queue is full.",
            ("slurm_dbd_agent_queue_length", "messages"),
            low=0,
            thresholds=Thresholds(((1000, Colour.WARN),)),
        ),
        time(
            "Age of these figures",
            Unit.SECONDS,
            "Time since Slurm was last asked. Above some minutes: it does not answer, and everything on this page is old.",
            ("slurm_scrape_age_seconds", "age"),
            low=0,
            thresholds=Thresholds(((300, Colour.WARN),)),
        ),
    ),
)
QUEUE = Dashboard(
    "queue",
    "Queue and waiting times",
    "Who runs, who waits, how long and why, and whether the scheduler keeps up.",
    (_NOW, _WAITING, _RUNNING, _SCHEDULER),
    (PARTITION,),
    since="24h",
)

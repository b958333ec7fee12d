"""The workload manager's controller, its queue and its scheduler."""

from __future__ import annotations

from rackwright.alerts import sources, steps
from rackwright.alerts.prose import listed, prose
from rackwright.alerts.rule import Alert, RuleGroup, Severity, Threshold

_SLURM = frozenset({"slurm"})
_SDIAG = "`sdiag` shows threads, RPCs by user and type, and the last cycles of both schedulers."

_UNREACHABLE = Alert(
    name="SlurmUnreachable",
    expr="""
slurm_up{job="slurm"} == 0
unless on () max(node_systemd_unit_state{job="node",name="slurmctld.service",state="active"}) == 0
""",
    hold_seconds=120,
    severity=Severity.CRITICAL,
    summary="slurmctld does not answer",
    description=prose("""
        The exporter on the head gets no answer from slurmctld, although its unit runs or is not monitored. Users cannot submit, and no
        job starts. Try scontrol ping, then sdiag; read journalctl -u slurmctld.
    """),
    means="slurmctld hangs, is overloaded, or refuses the exporter. SlurmctldDown fires instead where its unit runs on no head.",
    steps=listed(f"""
        - `scontrol ping` on the head. UP: it answers you; then see `journalctl -u 'slurm*exporter*' -n 50`.
        - It hangs: `top -Hp $(pidof slurmctld)`. One thread at 100 % is the scheduler; see SlurmSchedulerSlow.
        - `ss -tn state close-wait '( sport = :6817 )' | wc -l`: thousands of clients? Find the user: {_SDIAG}
        - Is `StateSaveLocation` on a mount that hangs? See MountStale.
        - {steps.restart("slurmctld")} Jobs go on during a restart.
    """),
    jobs=_SLURM,
    also_reads=frozenset({"node"}),
)

_SOURCE = Alert(
    name="SlurmSourceFailed",
    expr='slurm_source_up{job="slurm"} == 0',
    hold_seconds=900,
    severity=Severity.WARNING,
    summary="Slurm's exporter cannot read: {{ $labels.source }}",
    description=prose("""
        For 15 minutes Slurm's exporter has got no answer about {{ $labels.source }}, while slurmctld answers about nodes and jobs. Alerts that need
        these figures cannot fire. Read why: journalctl -u 'slurm*exporter*' -n 20 on the head.
    """),
    means=prose("""
        `scheduler` is sdiag: cycles, threads, records for slurmdbd. `details` is which GPUs jobs have. `accounting` is sacct: waiting
        times, jobs that have ended, energy.
    """),
    steps=listed(f"""
        - `journalctl -u 'slurm*exporter*' -n 20` on the head has the answer, or that there was none in time.
        - `time sdiag`, `time scontrol show job -d | wc -l`, `time sacct -S now-1hour | wc -l`: which is slow, which fails?
        - `accounting`: see SlurmdbdDown, MariadbDown, SlurmdbdQueueLong.
        - slurmctld is slow: see SlurmSchedulerSlow. {_SDIAG}
    """),
    jobs=_SLURM,
)

_STALE = Alert(
    name="SlurmMetricsStale",
    expr='slurm_scrape_age_seconds{job="slurm"} > <seconds>',
    hold_seconds=60,
    severity=Severity.WARNING,
    summary="Slurm's figures are {{ $value | humanizeDuration }} old",
    description=prose("""
        What Prometheus knows of Slurm is {{ $value | humanizeDuration }} old: its collector hangs or fails. Alerts about nodes and
        jobs in Slurm are blind. Read journalctl -u 'slurm*' on the head.
    """),
    means="The collector asks slurmctld once per interval and serves its last answer until it has a newer one.",
    steps=listed(f"""
        - `systemctl list-units '*slurm*'` on the head: does the collector run? {steps.journal("UNIT")}
        - `time sinfo`, `time squeue | wc -l`, `time sdiag`: which of them takes more than seconds?
        - slurmctld is slow: see SlurmSchedulerSlow and SlurmServerThreadsHigh.
    """),
    jobs=_SLURM,
    thresholds={
        "seconds": Threshold(
            300,
            "seconds",
            "Age of Slurm's figures.",
            "rackwright: five intervals of the exporter (2026-11-27)",
        )
    },
)

_DBD_QUEUE = Alert(
    name="SlurmdbdQueueLong",
    expr='slurm_dbd_agent_queue_length{job="slurm"} > <messages>',
    hold_seconds=300,
    severity=Severity.CRITICAL,
    summary="{{ $value }} accounting records wait for slurmdbd",
    description=prose("""
        slurmctld holds {{ $value }} accounting records that slurmdbd has not taken. At MaxDBDMsgs it drops them, and job history
        is lost for good. Bring slurmdbd or its database back: sdiag | grep DBD.
    """),
    means="slurmdbd is down, or slower than jobs end.",
    steps=listed(f"""
        - `sdiag | grep 'DBD Agent queue'` twice, a minute apart: does it grow?
        - `sacctmgr show cluster` fails: see SlurmdbdDown and MariadbDown.
        - It answers and the queue grows: the database is slow. `mariadb -e 'SHOW PROCESSLIST'`; a large sacct or a purge runs.
        - Win time: raise MaxDBDMsgs (`slurm.conf`), apply, `scontrol reconfigure`.
        - {steps.restart("slurmdbd")}
    """),
    jobs=_SLURM,
    thresholds={
        "messages": Threshold(
            5000,
            "records",
            "Records that wait.",
            f"{sources.STACKHPC}: half of MaxDBDMsgs, 10,000 by default ({sources.SLURM_CONF})",
        )
    },
)

_QUEUE_STUCK = Alert(
    name="SlurmQueueStuck",
    expr="""
slurm_oldest_fitting_seconds > <pending>
unless on () (time() - max(slurm_job_start_timestamp_seconds)) < <started>
""",
    hold_seconds=900,
    severity=Severity.WARNING,
    summary="Partition {{ $labels.partition }}: jobs wait, enough nodes are idle, and nothing starts",
    description=prose("""
        A job has waited {{ $value | humanizeDuration }} in partition {{ $labels.partition }}, as many nodes as it asks for are idle there, and no
        job has started anywhere for half an hour. The scheduler hangs or a limit blocks all jobs. See sdiag and squeue --start.
    """),
    means=prose("""
        Idle nodes with a queue are normal while a large job gathers nodes, so only jobs count that as many nodes as they ask for are
        idle for. Jobs that wait for a limit, a dependency or a start time are left out. What else a job asks for (a feature, GPUs
        of a type) is not looked at.
    """),
    steps=listed(f"""
        - `squeue -p PARTITION -t PD -o '%i %u %Q %r %S' --sort=-p | head`: the reason of the job with the highest priority.
        - `Resources`: does it fit at all? `scontrol show job ID`, `sinfo -p PARTITION -o '%n %t %G'`.
        - A reservation keeps the idle nodes: `scontrol show res`.
        - {_SDIAG} `Last cycle` far in the past: see SlurmBackfillStopped.
        - Licences, GRES or a QOS limit used up by jobs that have ended: `scontrol show assoc_mgr`.
        - {steps.restart("slurmctld")} It reads its state again; jobs go on.
    """),
    jobs=_SLURM,
    thresholds={
        "pending": Threshold(
            3600,
            "seconds",
            "Time that a job has waited that has room.",
            "rackwright: an hour beside idle nodes (2026-11-27)",
        ),
        "started": Threshold(
            1800,
            "seconds",
            "Time since any job started.",
            "rackwright: sixty backfill intervals of 30 s (2026-11-27)",
        ),
    },
)

_BACKFILL = Alert(
    name="SlurmBackfillStopped",
    expr="""
time() - slurm_scheduler_backfill_last_timestamp_seconds{job="slurm"} > <seconds>
and on () max(slurm_oldest_pending_seconds) > <seconds>
""",
    hold_seconds=300,
    severity=Severity.WARNING,
    summary="The backfill scheduler last ran {{ $value | humanizeDuration }} ago",
    description=prose("""
        Backfill last ran {{ $value | humanizeDuration }} ago although jobs wait. Only the head of the queue starts; small jobs no
        longer fill gaps. See sdiag, and slurmctld's log for what it waits for.
    """),
    means=prose("""
        Backfill runs every 30 s by default while jobs wait for room, and not for those that are held or wait for another job.
        It stops when slurmctld is busy with RPCs, or when a cycle never ends.
    """),
    steps=listed(f"""
        - {_SDIAG}
        - `Server thread count` near 256: see SlurmServerThreadsHigh.
        - `Last depth cycle` in the thousands: limit it (`bf_max_job_test`, `bf_max_job_user`, `bf_max_time` in SchedulerParameters).
        - `scontrol show config | grep -i SchedulerType` has to print `sched/backfill`.
        - {steps.restart("slurmctld")}
    """),
    jobs=_SLURM,
    thresholds={
        "seconds": Threshold(
            900,
            "seconds",
            "Time since the last backfill cycle began, and that a job has waited for room.",
            "rackwright: thirty intervals of 30 s, bf_interval's default (2026-11-27)",
        )
    },
)

_SLOW = Alert(
    name="SlurmSchedulerSlow",
    expr='slurm_scheduler_main_cycle_seconds{job="slurm"} > <seconds>',
    hold_seconds=900,
    severity=Severity.WARNING,
    summary="A cycle of the scheduler takes {{ $value | humanizeDuration }}",
    description=prose("""
        The main scheduler's cycle has taken more than <seconds> s for 15 minutes, now {{ $value | humanizeDuration }}. Meanwhile slurmctld
        answers no requests, and commands time out. See sdiag for the depth of the queue.
    """),
    means="The queue is deeper than slurmctld can look through in time. Other operations wait while the scheduler runs.",
    steps=listed(f"""
        - {_SDIAG}
        - `squeue -h -t PD -o %u | sort | uniq -c | sort -n | tail`: one user with tens of thousands of jobs? Use a job array, or
          limit them: `MaxSubmitJobs` in the association.
        - `default_queue_depth`, `sched_min_interval`, `partition_job_depth` in SchedulerParameters limit the work of a cycle.
        - `top` on the head: is another program taking its CPU?
    """),
    jobs=_SLURM,
    thresholds={
        "seconds": Threshold(
            2, "seconds", "Time of one cycle.", f"max_sched_time, 2 s by default: {sources.SLURM_CONF}"
        )
    },
)

_THREADS = Alert(
    name="SlurmServerThreadsHigh",
    expr='slurm_server_threads{job="slurm"} > <threads>',
    hold_seconds=300,
    severity=Severity.WARNING,
    summary="slurmctld has {{ $value }} of 256 threads in use",
    description=prose("""
        slurmctld has had more than <threads> of its 256 threads in use for 5 minutes, now {{ $value }}. At 256 it takes no further
        request, and commands fail. Find the user with the most requests: sdiag, RPC statistics by user.
    """),
    means="Too many requests at once: a user who runs squeue in a loop, a workflow manager, many short jobs that end together.",
    steps=listed("""
        - `sdiag | sed -n '/by user/,$p' | head -20`: the user with the most RPCs, and their type.
        - Ask that user to poll less often, or use `sacct`; a workflow manager needs an interval of a minute.
        - Until then: `rl_enable` in SlurmctldParameters limits RPCs per user.
        - Many jobs that end together: `sdiag | grep COMPLETE`; ask for longer jobs, or steps in one job.
    """),
    jobs=_SLURM,
    thresholds={
        "threads": Threshold(
            200,
            "threads",
            "Threads in use.",
            "MAX_SERVER_THREADS is 256: Slurm, src/slurmctld/slurmctld.h (read 2026-11-27)",
        )
    },
)

GROUP = RuleGroup(
    "slurm", (_UNREACHABLE, _STALE, _SOURCE, _DBD_QUEUE, _QUEUE_STUCK, _BACKFILL, _SLOW, _THREADS)
)

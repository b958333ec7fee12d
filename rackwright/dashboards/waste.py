"""GPUs that are held and not used."""

from __future__ import annotations

from rackwright.dashboards.model import Colour, Dashboard, Row, Thresholds, Unit
from rackwright.dashboards.parts import USE, bars, counted, held, owned, stat, table, time

_UTIL = held("avg_over_time(gpu:utilisation:ratio[30m])")
_NOW_UTIL = held("gpu:utilisation:ratio")
_TENSOR = held("avg_over_time(gpu:tensor_active:ratio[30m])")
_OF_USER = f"avg by (user, account) ({owned(_UTIL)})"
_WASTE = Thresholds(((1, Colour.NOTICE), (8, Colour.BAD)))

_NOW = Row(
    "Now",
    (
        stat(
            "GPUs held",
            Unit.NUMBER,
            "GPUs that jobs hold: what the figures beside it are a part of.",
            ("count(slurm_job_gpu) or 0 * max(slurm_up)", "GPUs"),
        ),
        stat(
            "Held and idle",
            Unit.NUMBER,
            "GPUs that a job holds and that were below 5 % for the last half hour.",
            (counted(f"{_UTIL} < 0.05", "slurm_up"), "GPUs"),
            thresholds=_WASTE,
        ),
        stat(
            "Held and below 40 %",
            Unit.NUMBER,
            "GPUs that a job holds and that were below 40 % for the last half hour.",
            (counted(f"{_UTIL} < 0.4", "slurm_up"), "GPUs"),
            thresholds=_WASTE,
        ),
        stat(
            "Utilization of held GPUs",
            Unit.RATIO,
            "Mean of the GPUs that jobs hold, last half hour.",
            (f"avg({_UTIL})", "utilization"),
            thresholds=USE,
            empty="No job holds a GPU.",
        ),
        stat(
            "Goodput",
            Unit.RATIO,
            "Share of held GPUs whose tensor cores were active for more than 5 % of the last half hour.",
            (f"count({_TENSOR} > 0.05) / count({_TENSOR}) or 0 * count({_TENSOR})", "of held GPUs"),
            thresholds=USE,
            empty="No job holds a GPU.",
        ),
        stat(
            "Idle while jobs wait",
            Unit.NUMBER,
            "GPUs that no job holds, while jobs wait. Limits, fragments, or nodes that are drained.",
            (
                (
                    "(sum(slurm_node_gpus) - sum(slurm_node_gpus_allocated)) and on () (sum(slurm_jobs_pending) > 0)"
                    " or 0 * max(slurm_up)"
                ),
                "GPUs",
            ),
        ),
    ),
)
_WHERE = Row(
    "Whose",
    (
        table(
            "Utilization by user and account",
            "Mean of the last half hour, least first. Below 40 %: write to the user; the job's page shows what it waits for.",
            ("user", "account"),
            (f"sort({_OF_USER})", "utilization", Unit.RATIO),
            (f"count by (user, account) ({owned('slurm_job_gpu')})", "GPUs held", Unit.NUMBER),
            (f"count by (user, account) ({owned(_UTIL)} < 0.05)", "idle", Unit.NUMBER),
            thresholds=USE,
            height=10,
            empty="No job holds a GPU.",
        ),
        table(
            "Jobs below 40 %",
            "Mean of the job's GPUs over the last half hour, least first, of jobs that have run for half an hour.",
            ("job", "user", "account"),
            (
                (
                    f"sort(avg by (job, user, account) ({owned(_UTIL)}) < 0.4 and on (job) "
                    "(time() - slurm_job_start_timestamp_seconds > 1800))"
                ),
                "utilization",
                Unit.RATIO,
            ),
            height=10,
            thresholds=USE,
            empty="No job of half an hour or more uses less than 40 % of its GPUs.",
        ),
        bars(
            "Idle GPU hours by account",
            Unit.NUMBER,
            "Hours of GPUs that were held below 5 %, over the span that is shown.",
            (
                "sum by (account) (sum_over_time(account:gpus_idle:count[$__range:5m])) / 12",
                "{{account}}",
            ),
            empty="No held GPU was idle.",
        ),
        bars(
            "Idle GPU hours by user",
            Unit.NUMBER,
            "The same hours by user: whom to write to.",
            (
                "sum by (user) (sum_over_time(account:gpus_idle:count[$__range:5m])) / 12",
                "{{user}}",
            ),
            empty="No held GPU was idle.",
        ),
    ),
)
_COURSE = Row(
    "Over time",
    (
        time(
            "Held GPUs by use",
            Unit.NUMBER,
            "Held GPUs in three bands. The lowest should be thin; one that stays overnight is usually a notebook left open.",
            (f"count({_NOW_UTIL} < 0.05)", "idle"),
            (f"count({_NOW_UTIL} >= 0.05 < 0.4)", "below 40 %"),
            (f"count({_NOW_UTIL} >= 0.4)", "in use"),
            colours={"idle": Colour.BAD, "below 40 %": Colour.NOTICE, "in use": Colour.GOOD},
            stacked=True,
            empty="No job held a GPU.",
        ),
        time(
            "Utilization by account",
            Unit.RATIO,
            "Mean of the GPUs that each account's jobs hold.",
            (f"avg by (account) ({owned(_NOW_UTIL)})", "{{account}}"),
            low=0,
            high=1,
            empty="No job held a GPU.",
        ),
        time(
            "CPUs held and busy",
            Unit.NUMBER,
            "CPUs of workers that jobs hold, and that are busy. On a cluster without GPUs this is the waste.",
            ("sum(slurm_node_cpus_allocated)", "held"),
            ('sum(rate(node_cpu_seconds_total{role="worker",mode!="idle"}[$__rate_interval]))', "busy"),
            colours={"held": Colour.NOTICE, "busy": Colour.BUSY},
            low=0,
        ),
    ),
)
WASTE = Dashboard(
    "waste",
    "GPU waste",
    "GPUs that jobs hold and do not use, by user, account and job.",
    (_NOW, _WHERE, _COURSE),
    since="24h",
)

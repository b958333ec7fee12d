"""Jobs that hold GPUs and do not use them."""

from __future__ import annotations

from rackwright.alerts.prose import listed, prose
from rackwright.alerts.rule import Alert, RuleGroup, Severity, Threshold

_WHO = "* on (job) group_left (account, partition, user) slurm_job_info"

_IDLE = Alert(
    name="JobGpusIdle",
    expr=f"""
(avg_over_time(job:gpu_utilisation:avg[1h]) * 100 < <percent>
and on (job) (time() - max by (job) (slurm_job_start_timestamp_seconds)) > <seconds>) {_WHO}
""",
    hold_seconds=300,
    severity=Severity.WARNING,
    summary="Job {{ $labels.job }} of {{ $labels.user }} leaves its GPUs idle",
    description=prose("""
        The GPUs of job {{ $labels.job }} ({{ $labels.user }}, account {{ $labels.account }}) have been {{ $value | printf "%.1f" }} % busy
        over the last hour. Other jobs wait for them. Ask the user whether the job still works: job-metrics {{ $labels.job }}.
    """),
    means="An interactive session that was left open, a job that waits for data, or one that asked for more GPUs than it uses.",
    steps=listed("""
        - `scontrol show job JOB`: interactive, or a batch script? When does it end?
        - `job-metrics JOB` on the head: all GPUs idle, or some? CPU and network idle too? Then it hangs or waits.
        - Write to the user, with the figures. Unused GPUs of a running job: next time ask for fewer.
        - No answer and a queue: `scancel JOB`, if your site's rules allow it.
        - Jobs that are meant to idle, e.g. notebooks: put them in a separate partition, and route this alert by it.
    """),
    jobs=frozenset({"dcgm", "slurm"}),
    thresholds={
        "percent": Threshold(
            5,
            "percent",
            "Mean utilisation of the job's GPUs over an hour.",
            "rackwright: an idle GPU shows 0 (2026-11-27)",
        ),
        "seconds": Threshold(
            3600,
            "seconds",
            "Time that the job has run.",
            "rackwright: loading data takes a while (2026-11-27)",
        ),
    },
)

_STALLED = Alert(
    name="JobStalled",
    expr=f"""
(job:gpu_utilisation:min * 100 > <utilisation>
and on (job) job:gpu_power:max * 100 < <power>
and on (job) job:gpu_tensor_active:max * 100 < <tensor>) {_WHO}
""",
    hold_seconds=900,
    severity=Severity.WARNING,
    summary="Job {{ $labels.job }} of {{ $labels.user }} looks stalled",
    description=prose("""
        All GPUs of job {{ $labels.job }} ({{ $labels.user }}, account {{ $labels.account }}) are at least {{ $value | printf "%.0f" }} % busy, draw little power and use no tensor cores for 15 minutes: ranks wait for each other in a collective. Find the rank that is
        behind, or the node.
    """),
    means=prose("""
        A collective that waits spins on the GPU: utilisation is 100 %, power is low, and tensor cores are idle. One rank has died,
        hangs in I/O, or sits on a broken link. It will not get better by itself.
    """),
    steps=listed("""
        - Its nodes: `squeue -j JOB -o %N`. Any alert for one of them: FabricPortDown, GpuXidCritical, MountStale? Start there.
        - The rank that differs: GPU dashboard by job, the one GPU with another power or utilisation. `py-spy dump --pid PID` there.
        - Its log: NCCL's watchdog names the collective and the rank; `NCCL_DEBUG=WARN` names the link.
        - Ask the user whether this is expected (evaluation, a long CPU phase would show low utilisation instead).
        - Hung: `scancel --signal=ABRT JOB` first, for a core dump; then `scancel JOB`. It restarts from its checkpoint.
        - Test the nodes before the next job: `rackwright burnin FILE --nodes NODESET`.
    """),
    jobs=frozenset({"dcgm", "node", "slurm"}),
    thresholds={
        "utilisation": Threshold(
            90,
            "percent",
            "Utilisation of the least busy GPU.",
            "rackwright: a waiting collective shows 100 (2026-11-27)",
        ),
        "power": Threshold(
            35,
            "percent",
            "Power of the hungriest GPU, of its maximum.",
            "rackwright: training is above half, idling at a tenth (2026-11-27)",
        ),
        "tensor": Threshold(
            1,
            "percent",
            "Tensor activity of the most active GPU.",
            "rackwright: spinning does no matrix product (2026-11-27)",
        ),
    },
    source="The pattern, high utilisation with low power, is what ClusterMAX expects providers to detect (read 2026-11-20)",
)

GROUP = RuleGroup("jobs", (_IDLE, _STALLED))

"""Metrics of jobs: their number, their owners, and the resources of each running job by node."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import NamedTuple

from prometheus_client.metrics_core import Metric

from rackwright.workload.slurm.metrics.details import Share, Shares
from rackwright.workload.slurm.metrics.families import gauge
from rackwright.workload.slurm.metrics.jobs import WAITING, Job
from rackwright.workload.slurm.metrics.node_figures import partitions
from rackwright.workload.slurm.metrics.nodes import Node

OTHERS = "(others)"
"""Account and user of what is beyond the limit."""
_ALWAYS = ("pending", "running")
_FREE = frozenset(("idle",))
"""And neither planned for another job, nor reserved, nor without an answer, which are further states."""


class Limits(NamedTuple):
    """Limits on the number of series, because Prometheus keeps every one."""

    jobs: int
    """Running jobs with separate series."""
    accounts: int
    """Pairs of account and user."""


def queue_figures(jobs: Sequence[Job], nodes: Sequence[Node], limits: Limits, now: float) -> Iterator[Metric]:
    """How many jobs wait and run, and for whom."""
    states = Counter(dict.fromkeys(_ALWAYS, 0))
    waiting: Counter[tuple[str, str]] = Counter()
    free = Counter(name for node in nodes if node.states == _FREE for name in node.partitions)
    oldest = dict.fromkeys(partitions(nodes), 0.0)
    fitting = dict(oldest)
    for job in jobs:
        states[job.state] += job.tasks
        if job.state != "pending":
            continue
        for partition in job.partitions:
            waiting[partition, job.reason] += job.tasks
            if job.reason in WAITING and job.eligible is not None:
                waited = now - job.eligible
                oldest[partition] = max(oldest.get(partition, 0.0), waited)
                if job.nodes <= free[partition]:
                    fitting[partition] = max(fitting[partition], waited)
    yield gauge("slurm_jobs", "Jobs in each state; each task of an array is one.", ("state",), _of(states))
    yield gauge(
        "slurm_jobs_pending",
        "Pending jobs by reason, in each partition that they may run in.",
        ("partition", "reason"),
        sorted(waiting.items()),
    )
    yield gauge(
        "slurm_oldest_pending_seconds",
        "For how long a job has been waiting for room (reason Resources, Priority or None), the one that waits longest.",
        ("partition",),
        _of(oldest),
    )
    yield gauge(
        "slurm_oldest_fitting_seconds",
        "The same for jobs that need no more nodes than are idle in the partition and not planned for another job.",
        ("partition",),
        _of(fitting),
    )
    yield from _account_figures(jobs, limits.accounts)


def _account_figures(jobs: Sequence[Job], limit: int) -> Iterator[Metric]:
    pairs = sorted({(job.account, job.user) for job in jobs})
    kept = set(pairs[:limit])
    count: Counter[tuple[str, str, str]] = Counter()
    cpus: Counter[tuple[str, str]] = Counter()
    gpus: Counter[tuple[str, str]] = Counter()
    for job in jobs:
        pair = (job.account, job.user)
        pair = pair if pair in kept else (OTHERS, OTHERS)
        count[(*pair, job.state)] += job.tasks
        cpus[pair] += job.cpus if job.allocated else 0
        gpus[pair] += job.gpus if job.allocated else 0
    labels = ("account", "user")
    yield gauge(
        "slurm_account_jobs", "Jobs of an account and user.", (*labels, "state"), sorted(count.items())
    )
    yield gauge("slurm_account_cpus_allocated", "CPUs that running jobs have.", labels, sorted(cpus.items()))
    yield gauge("slurm_account_gpus_allocated", "GPUs that running jobs have.", labels, sorted(gpus.items()))
    yield gauge(
        "slurm_accounts_left_out",
        f"Pairs of account and user beyond the limit, which are summed up as {OTHERS}.",
        (),
        [((), len(pairs) - len(kept))],
    )


def job_figures(
    jobs: Sequence[Job], shares: Mapping[int, Shares], nodes: Iterable[Node], limit: int
) -> Iterator[Metric]:
    """Each running job by its own number; with GPUs first where they are too many."""
    running = [job for job in jobs if job.allocated]
    shown = sorted(running, key=lambda job: (job.gpus == 0, job.id))[:limit]
    known = {node.name for node in nodes}
    yield gauge(
        "slurm_job_info",
        "1 for each running job; `job` is Slurm's job ID, which array tasks have too.",
        ("job", "user", "account", "partition", "qos"),
        (((str(job.id), job.user, job.account, job.partitions[0], job.qos), 1) for job in shown),
    )
    yield gauge(
        "slurm_job_start_timestamp_seconds",
        "When a running job started.",
        ("job",),
        (((str(job.id),), job.start) for job in shown if job.start is not None),
    )
    yield from _place_figures(
        [
            ((str(job.id), node), share)
            for job in shown
            for node, share in shares.get(job.id, {}).items()
            if node in known
        ]
    )
    yield gauge(
        "slurm_jobs_left_out",
        "Running jobs beyond the limit, which have no separate series.",
        (),
        [((), len(running) - len(shown))],
    )
    yield gauge(
        "slurm_jobs_without_details",
        "Running jobs whose resources by node are not known yet.",
        (),
        [((), sum(job.id not in shares for job in shown))],
    )


def _place_figures(places: Sequence[tuple[tuple[str, str], Share]]) -> Iterator[Metric]:
    """What each job has on each node."""
    at = ("job", "node")
    cpus = ((place, share.cpus) for place, share in places if share.cpus is not None)
    yield gauge("slurm_job_cpus", "CPUs that a job has on a node.", at, cpus)
    gpus = ((place, share.gpus.number) for place, share in places if share.gpus.number)
    yield gauge("slurm_job_gpus", "GPUs that a job has on a node, or MIG instances.", at, gpus)
    yield gauge(
        "slurm_job_gpu",
        "1 for each GPU that a job has; `gpu` is its number on the node.",
        (*at, "gpu"),
        chain.from_iterable(
            (((*place, str(index)), 1) for index in share.gpus.indices) for place, share in places
        ),
    )


def _of(count: Mapping[str, float]) -> list[tuple[tuple[str], float]]:
    return [((key,), figure) for key, figure in sorted(count.items())]

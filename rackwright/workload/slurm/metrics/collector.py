"""Queries Slurm once per interval and writes the answers for the server; runs as Slurm's user and does not listen."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import NamedTuple, NoReturn, TypeVar

from prometheus_client.metrics_core import Metric

from rackwright.workload.slurm.metrics import accounting, details, jobs, nodes, scheduler, snapshot
from rackwright.workload.slurm.metrics.ask import Ask, asked
from rackwright.workload.slurm.metrics.details import Key, Shares, key_of
from rackwright.workload.slurm.metrics.families import counter, exposition, gauge, summary
from rackwright.workload.slurm.metrics.job_figures import Limits, job_figures, queue_figures
from rackwright.workload.slurm.metrics.jobs import Job
from rackwright.workload.slurm.metrics.node_figures import node_figures
from rackwright.workload.slurm.metrics.snapshot import Snapshot
from rackwright.workload.states import NoAnswer

T = TypeVar("T")


class Settings(NamedTuple):
    """How often, how long, how much."""

    output: str
    interval: float = 30
    timeout: float = 15
    accounting_interval: float = 300
    """0: accounting is never asked."""
    max_jobs: int = 10_000
    max_accounts: int = 5_000


class Collector:
    """Cache between collections of what need not be queried again."""

    def __init__(self, settings: Settings, ask: Ask, clock: Callable[[], float] = time.time) -> None:
        self._settings = settings
        self._ask = ask
        self._clock = clock
        self._shares: dict[Key, Shares] = {}
        self._most = details.MOST
        self._ended = accounting.Ended()
        self._waits: Mapping[str, Mapping[float, float]] = {}
        self._accounting_due = 0.0
        self._up: dict[str, bool] = {}

    def metrics(self) -> bytes:
        """One collection as Prometheus' text; raises NoAnswer if slurmctld does not report nodes or jobs."""
        now = self._clock()
        all_nodes = nodes.parse_nodes(self._ask(nodes.COMMAND))
        all_jobs = jobs.parse_jobs(self._ask(jobs.COMMAND))
        settings = self._settings
        found = [
            *node_figures(all_nodes),
            *queue_figures(all_jobs, all_nodes, Limits(settings.max_jobs, settings.max_accounts), now),
            *job_figures(all_jobs, self._details(all_jobs), all_nodes, settings.max_jobs),
            *self._scheduler_figures(),
            *self._accounting_figures(now),
        ]
        found.append(
            gauge(
                "slurm_source_up",
                "Whether the last query was answered, by source: scheduler, details of jobs, accounting.",
                ("source",),
                (((source,), up) for source, up in sorted(self._up.items())),
            )
        )
        return exposition(found)

    def _tried(self, source: str, command: Sequence[str], read: Callable[[str], T]) -> T | None:
        """An optional answer; None if there is none, and the rest is still reported."""
        try:
            found = read(self._ask(command))
        except NoAnswer as error:
            _log(f"{source}: {error}")
            self._up[source] = False
            return None
        self._up[source] = True
        return found

    def _details(self, all_jobs: Sequence[Job]) -> dict[int, Shares]:
        """Of jobs that run; asked once for each."""
        running = {key_of(job): job for job in all_jobs if job.allocated}
        self._shares = {key: shares for key, shares in self._shares.items() if key in running}
        missing = [job for key, job in running.items() if key not in self._shares]
        if missing:
            command, chosen = details.question(missing, self._most)
            found = self._tried("details", command, details.parse_details)
            # if a busy head fails on a large query, try a smaller one
            self._most = (
                max(details.LEAST, self._most // 2) if found is None else min(details.MOST, self._most * 2)
            )
            self._shares.update({key_of(job): found[job.id] for job in chosen if found and job.id in found})
        return {key.id: shares for key, shares in self._shares.items()}

    def _scheduler_figures(self) -> Iterator[Metric]:
        found = self._tried("scheduler", scheduler.COMMAND, scheduler.parse_scheduler)
        if found is not None:
            for name, about, field in _SCHEDULER:
                figure = getattr(found, field)
                yield gauge(name, about, (), [] if figure is None else [((), figure)])

    def _accounting_figures(self, now: float) -> Iterator[Metric]:
        every = self._settings.accounting_interval
        if not every:
            return
        if now >= self._accounting_due or self._accounting_due > now + every:  # or the clock was set back
            self._ask_accounting(now)
        yield summary(
            "slurm_wait_seconds",
            "How long jobs that started in the last hour had waited since they became eligible.",
            ("partition",),
            (
                ((partition, f"{quantile:g}"), seconds)
                for partition, quantiles in sorted(self._waits.items())
                for quantile, seconds in quantiles.items()
            ),
        )
        yield counter(
            "slurm_jobs_ended",
            "Jobs that have ended, by state.",
            ("partition", "state"),
            sorted(self._ended.jobs.items()),
        )
        yield counter(
            "slurm_account_energy_joules",
            "Energy of jobs that have ended, from Slurm's accounting.",
            ("account", "user"),
            sorted(self._ended.joules.items()),
        )

    def _ask_accounting(self, now: float) -> None:
        records = self._tried("accounting", accounting.command(now), accounting.parse_records)
        every = self._settings.accounting_interval
        self._accounting_due = now + (min(every, _AGAIN_SECONDS) if records is None else every)
        self._waits = accounting.waits(records or (), now)
        if records is not None:
            self._ended.add(records)


_AGAIN_SECONDS = 60
"""When to query accounting again after it did not answer."""
_SCHEDULER: tuple[tuple[str, str, str], ...] = (
    (
        "slurm_scheduler_main_cycle_seconds",
        "How long the last cycle of the main scheduler took.",
        "main_cycle",
    ),
    ("slurm_scheduler_backfill_cycle_seconds", "How long the last cycle of backfill took.", "backfill_cycle"),
    (
        "slurm_scheduler_backfill_last_timestamp_seconds",
        "Time of the last backfill cycle.",
        "backfill_last",
    ),
    ("slurm_scheduler_queue_length", "Pending jobs that the main scheduler last looked at.", "queue_length"),
    ("slurm_server_threads", "Threads of slurmctld that answer requests.", "server_threads"),
    ("slurm_dbd_agent_queue_length", "Records that slurmctld has not sent to slurmdbd yet.", "dbd_queue"),
)


def collected(
    collector: Collector, before: Snapshot, clock: Callable[[], float] = time.monotonic
) -> Snapshot:
    """The next snapshot: new metrics, or the old ones with the reason why new ones are missing."""
    attempted = clock()
    try:
        return Snapshot(attempted, attempted, None, collector.metrics())
    except NoAnswer as error:
        _log(str(error))
        return before._replace(attempted=attempted, error=str(error))


def run(settings: Settings) -> NoReturn:
    """Collect forever, with at least one interval between the starts of two collections."""
    collector = Collector(settings, partial(asked, seconds=settings.timeout))
    last = Snapshot(time.monotonic())
    while True:
        last = collected(collector, last)
        snapshot.write(settings.output, last)
        time.sleep(max(1.0, last.attempted + settings.interval - time.monotonic()))


def _log(text: str) -> None:
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()


def main(arguments: Sequence[str]) -> NoReturn:
    """The program."""
    parser = argparse.ArgumentParser(description="Asks Slurm for the figures that Prometheus reads.")
    parser.add_argument("--output", required=True, help="file for the server")
    for name, kind in (("interval", float), ("timeout", float), ("accounting-interval", float)):
        parser.add_argument(f"--{name}", type=kind, default=Settings._field_defaults[name.replace("-", "_")])
    for name in ("max-jobs", "max-accounts"):
        parser.add_argument(f"--{name}", type=int, default=Settings._field_defaults[name.replace("-", "_")])
    run(Settings(**vars(parser.parse_args(arguments))))

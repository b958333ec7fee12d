"""Accounting records of the last hour: how long jobs waited, how they ended, and what energy they took."""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable
from datetime import datetime, timezone
from typing import NamedTuple

from rackwright.boundary import printable
from rackwright.workload.slurm.metrics.jobs import SEPARATOR, time_of
from rackwright.workload.states import NoAnswer

WINDOW_SECONDS = 3600
QUANTILES = (0.5, 0.9, 0.99)
_FIELDS = (
    "JobIDRaw",
    "Partition",
    "Account",
    "User",
    "State",
    "Eligible",
    "Start",
    "End",
    "ConsumedEnergyRaw",
)
_JOULES = re.compile(r"[0-9]{1,18}", re.ASCII)
_UNENDED = frozenset(("pending", "running", "suspended", "requeued", "resizing", "revoked"))


class Record(NamedTuple):
    """One job."""

    id: str
    partition: str
    account: str
    user: str
    state: str
    eligible: float | None
    start: float | None
    end: float | None
    joules: float

    @property
    def ended(self) -> bool:
        """Whether it has."""
        return self.end is not None and self.state not in _UNENDED


def command(now: float) -> tuple[str, ...]:
    """sacct's question for the jobs that were there in the window."""
    since = datetime.fromtimestamp(now - WINDOW_SECONDS, timezone.utc).strftime("%Y-%m-%dT%H:%M:%S")  # noqa: UP017
    return (
        *("sacct", "-a", "-X", "-n", "-P", f"--delimiter={SEPARATOR}"),
        *("-S", since, "-o", ",".join(_FIELDS)),
    )


def parse_records(output: str) -> list[Record]:
    """What `command` prints; NoAnswer where it is not that."""
    return [_record(line) for line in output.split("\n") if line.strip()]


def _record(line: str) -> Record:
    cells = line.split(SEPARATOR)
    if len(cells) != len(_FIELDS):
        raise NoAnswer(f"`sacct` printed something else: {printable(line, 80)}")
    number, partition, account, user, state, eligible, start, end, energy = (cell.strip() for cell in cells)
    try:
        return Record(
            id=number,
            partition=printable(partition.partition(",")[0], 200),  # one that never started may name several
            account=printable(account, 200),
            user=printable(user, 200),
            state=printable(state.lower().partition(" ")[0], 64),  # `CANCELLED by 3000`
            eligible=time_of(eligible),
            start=time_of(start),
            end=time_of(end),
            joules=float(energy) if _JOULES.fullmatch(energy) else 0.0,
        )
    except ValueError:
        raise NoAnswer(f"`sacct` printed something else: {printable(line, 80)}") from None


def waits(records: Iterable[Record], now: float) -> dict[str, dict[float, float]]:
    """Quantiles of the seconds between eligible and started, by partition, of jobs that started in the window."""
    found: dict[str, list[float]] = defaultdict(list)
    for record in records:
        if record.start is not None and record.eligible is not None and record.start > now - WINDOW_SECONDS:
            found[record.partition].append(max(0.0, record.start - record.eligible))
    return {
        partition: {quantile: _quantile(sorted(seconds), quantile) for quantile in QUANTILES}
        for partition, seconds in found.items()
    }


def _quantile(ordered: list[float], quantile: float) -> float:
    """The smallest of them that this share of them does not exceed."""
    return ordered[max(0, math.ceil(quantile * len(ordered)) - 1)]


class Ended:
    """Counts jobs once, when they have ended; those that had before this program started are left out.

    A restart begins at 0, as Prometheus expects of counters; what the window held then was counted before.
    """

    def __init__(self) -> None:
        self.jobs: Counter[tuple[str, str]] = Counter()
        """By partition and state."""
        self.joules: dict[tuple[str, str], float] = defaultdict(float)
        """By account and user, where Slurm measures energy."""
        self._seen: set[tuple[str, float | None]] | None = None

    def add(self, records: Iterable[Record]) -> None:
        """The records of a window, in which most have been counted."""
        ended = {(record.id, record.end): record for record in records if record.ended}
        if self._seen is not None:
            for key in ended.keys() - self._seen:
                record = ended[key]
                self.jobs[record.partition, record.state] += 1
                if record.joules:
                    self.joules[record.account, record.user] += record.joules
        self._seen = set(ended)

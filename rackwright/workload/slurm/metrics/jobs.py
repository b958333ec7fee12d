"""The queue: one line for each job, of fields that no user chooses.

Names, comments and commands of jobs are left out, as users may write anything into them: `scontrol show job` prints a
line feed in a name as it is, so that a job could pose as another one (seen with 24.11.5, 2026-11-27).
"""

from __future__ import annotations

import re
from datetime import datetime, timezone
from typing import NamedTuple

from rackwright.boundary import printable
from rackwright.workload.slurm.metrics.gres import gpus_of_tres
from rackwright.workload.states import NoAnswer

SEPARATOR = "\x1f"
_FIELDS = (
    *("jobid", "jobarrayid", "username", "account", "partition", "qos", "state", "starttime"),
    *("eligibletime", "numcpus", "numnodes", "nodelist", "tres-alloc", "reason"),
)
COMMAND = ("squeue", "-a", "-h", "-O", ",".join(f"{field}:{SEPARATOR}" for field in _FIELDS))
"""squeue(1), 21.08 to 26.05: `field:suffix`, without a size whole."""
ALLOCATED = frozenset(
    ("running", "suspended", "configuring", "stopped", "signaling", "stage_out", "resizing")
)
"""States of jobs that hold nodes and have not ended."""
WAITING = frozenset(("None", "Priority", "Resources"))
"""Reasons of jobs that would run if there were room. None: the scheduler has not looked at the job yet, or hangs."""
_TASKS = re.compile(r"_\[([0-9,:-]+)(?:%[0-9]+)?\]$", re.ASCII)
_RANGE = re.compile(r"([0-9]{1,10})(?:-([0-9]{1,10})(?::([0-9]{1,10}))?)?", re.ASCII)
_TASKS_MAX = 4_000_001
"""MaxArraySize's limit (slurm.conf(5))."""
_WORD = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,63}", re.ASCII)
_NO_ROOM = "Nodes required for job are "
"""How slurmctld explains the reason Resources where nodes are down, drained or reserved."""


class Job(NamedTuple):
    """One job, one part of a heterogeneous job, one task of an array, or all pending tasks of one."""

    id: int
    """Its own number, as prologs and DCGM know it; not that of the array."""
    tasks: int
    user: str
    account: str
    partitions: tuple[str, ...]
    """A pending job may name several."""
    qos: str
    state: str
    start: float | None
    eligible: float | None
    cpus: int
    nodes: int
    node_list: str
    gpus: int
    reason: str

    @property
    def allocated(self) -> bool:
        """Whether it holds nodes and has not ended."""
        return self.state in ALLOCATED


def parse_jobs(output: str) -> list[Job]:
    """What COMMAND prints; NoAnswer where it is not that."""
    return [_job(line) for line in output.split("\n") if line.strip()]


def _job(line: str) -> Job:
    cells = line.split(SEPARATOR)
    if len(cells) != len(_FIELDS) + 1:
        raise NoAnswer(f"`squeue` printed something else: {printable(line, 80)}")
    number, array, user, account, partition, qos, state, start, eligible, cpus, nodes, names, tres, why = (
        cell.strip() for cell in cells[:-1]
    )
    try:
        return Job(
            id=int(number),
            tasks=tasks_in(array),
            user=printable(user, 200),
            account=printable(account, 200),
            partitions=tuple(printable(name, 200) for name in partition.split(",")),
            qos=printable(qos, 200),
            state=printable(state.lower(), 64),
            start=time_of(start),
            eligible=time_of(eligible),
            cpus=_count(cpus),
            nodes=_count(nodes),
            node_list=names,
            gpus=gpus_of_tres(tres),
            reason=reason_of(why),
        )
    except (ValueError, OverflowError) as error:
        raise NoAnswer(f"`squeue` printed something else: {error}: {printable(line, 80)}") from None


def tasks_in(array: str) -> int:
    """How many tasks a job of squeue's is, e.g. 20 of `1520_[1-20%3]`; 1 of `1520_7` and of other jobs."""
    found = _TASKS.search(array)
    if found is None:
        return 1
    count = 0
    for piece in found[1].split(","):
        numbers = _RANGE.fullmatch(piece)
        if numbers is None:
            return 1
        first, last, step = int(numbers[1]), int(numbers[2] or numbers[1]), int(numbers[3] or 1)
        count += max(0, (last - first) // max(1, step) + 1)
    return min(count, _TASKS_MAX)


def reason_of(text: str) -> str:
    """Slurm's word for why a job waits, without names of nodes and jobs behind it."""
    if text.startswith(_NO_ROOM):
        return "Resources"
    word = _WORD.match(text)
    if word is None or text[word.end() : word.end() + 1] not in ("", ",", "(", ":"):
        return "Other"
    return word[0]


def time_of(text: str) -> float | None:
    """Seconds since 1970 of a time that a tool printed in UTC; None where there is none yet."""
    if not text[:1].isdigit():
        return None
    return datetime.fromisoformat(text).replace(tzinfo=timezone.utc).timestamp()  # noqa: UP017 - Python 3.9


def _count(text: str) -> int:
    """Slurm writes counts from 10,000 on with K, M or G (23.02 and older) or whole."""
    scale = {"K": 1024, "M": 1024**2, "G": 1024**3}.get(text[-1:], 1)
    return int(float(text.rstrip("KMG")) * scale)

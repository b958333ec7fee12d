"""What each job has on each node: CPUs, GPUs and their numbers; only Slurm's JSON has this in a form that users cannot forge.

A job's JSON is some 8 KB, and 15 KB more for each of its nodes (24.11.5, 2026-11-27), so that all jobs of a large site
would take minutes of squeue's CPU time an hour and a GiB of memory. What a job has does not change while it runs, so it is asked once.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any, NamedTuple

from rackwright.workload.slurm.metrics.gres import NONE, Gpus, gpus_of_gres
from rackwright.workload.slurm.metrics.jobs import Job
from rackwright.workload.slurm.output import parse_hostlist
from rackwright.workload.states import NoAnswer

MOST, LEAST = 1000, 50
"""Jobs in one question, and nodes that they have; the rest waits for the next collection."""
COMMAND = ("squeue", "-a", "--json", "-j")
"""Numbers of jobs follow."""


class Share(NamedTuple):
    """What a job has on a node."""

    cpus: int | None
    gpus: Gpus = NONE


Shares = Mapping[str, Share]
"""By node."""


class Key(NamedTuple):
    """What is the same as long as a job has the same: a job that is requeued or resized has another."""

    id: int
    start: float | None
    node_list: str
    cpus: int


def key_of(job: Job) -> Key:
    """See Key."""
    return Key(job.id, job.start, job.node_list, job.cpus)


def question(jobs: Iterable[Job], most: int = MOST) -> tuple[tuple[str, ...], list[Job]]:
    """The command for as many of these jobs as one answer may hold, those with GPUs first, and which they are."""
    chosen: list[Job] = []
    nodes = 0
    for job in sorted(jobs, key=lambda job: (job.gpus == 0, job.id)):
        nodes += job.nodes
        if len(chosen) >= most or (chosen and nodes > most):
            break
        chosen.append(job)
    numbers = [str(job.id) for job in chosen]
    if len(numbers) == 1:
        numbers *= 2  # asked for one alone, squeue fails where that has just ended
    return (*COMMAND, ",".join(numbers)), chosen


def parse_details(output: str) -> dict[int, Shares]:
    """What each job in `squeue --json` has on its nodes, without those that cannot be read; NoAnswer where it is not that."""
    try:
        jobs = json.loads(output)["jobs"]
        numbered = {int(job["job_id"]): job for job in jobs}
    except (KeyError, OverflowError, RecursionError, TypeError, ValueError) as error:
        raise NoAnswer(f"`squeue` printed something else: {type(error).__name__}: {error}") from None
    found = {}
    for number, job in numbered.items():
        with suppress(AttributeError, KeyError, TypeError, ValueError):
            found[number] = _shares(job)
    return found


def _shares(job: Mapping[str, Any]) -> Shares:
    names, cpus = _allocation(job)
    names = names or parse_hostlist(job.get("nodes") or "")
    if len(cpus) != len(names):
        cpus = [None] * len(names)
    details = job.get("gres_detail") or []
    gpus = [gpus_of_gres(one or "") for one in details]
    if len(gpus) != len(names):
        gpus = [NONE] * len(names)
    return {name: Share(count, gpu) for name, count, gpu in zip(names, cpus, gpus)}  # noqa: B905 - Python 3.9


def _allocation(job: Mapping[str, Any]) -> tuple[list[str], list[int | None]]:
    """Names of nodes, empty where the release has none there (22.05 and older), and CPUs in the same order.

    The places where releases have them: data_parser v0.0.41 (24.05) and newer, v0.0.39 (23.02) and v0.0.40 (23.11), and
    openapi v0.0.38 (22.05), as public records of squeue's answers show them (read 2026-11-27).
    """
    resources = job.get("job_resources")
    if not isinstance(resources, dict):
        return [], []
    nodes = resources.get("nodes")
    if isinstance(nodes, dict):
        found = nodes.get("allocation") or []
        return [one["name"] for one in found], [_number(one.get("cpus", {}).get("count")) for one in found]
    found = resources.get("allocated_nodes") or []
    if isinstance(found, dict):
        return [], [_number(found[key].get("cpus")) for key in sorted(found, key=int)]
    return [one["nodename"] for one in found], _cpus_of_cores(found, _number(job.get("cpus")))


def _cpus_of_cores(nodes: Iterable[Mapping[str, Any]], cpus: int | None) -> list[int | None]:
    """v0.0.39 and v0.0.40 name cores alone, and how many CPUs the job has in all."""
    cores = [
        [state for socket in node["sockets"].values() for state in socket["cores"].values()] for node in nodes
    ]
    counts = [sum(str(state).startswith("allocated") for state in states) for states in cores]
    threads, rest = divmod(cpus or 0, sum(counts) or 1)
    return [count * threads for count in counts] if threads and not rest else [None] * len(counts)


def _number(value: Any) -> int | None:  # noqa: ANN401 - JSON
    """A count, or `{"set": true, "number": 2}` as newer releases write one."""
    value = value.get("number") if isinstance(value, dict) else value
    return value if isinstance(value, int) and not isinstance(value, bool) else None

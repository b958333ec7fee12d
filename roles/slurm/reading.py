"""What Slurm's tools print, as types. Pure functions, tested on recorded output."""

from __future__ import annotations

import re
from dataclasses import dataclass

from rackwright.claims.check import Undetermined
from rackwright.workload.slurm import output as output_of
from rackwright.workload.slurm.output import NodeReport
from rackwright.workload.states import NoAnswer


def parse_nodes(output: str) -> dict[str, NodeReport]:
    """`scontrol show node -o` by name; Undetermined where a line lacks what a check compares."""
    try:
        found = output_of.parse_nodes(output)
    except NoAnswer as error:
        raise Undetermined(str(error)) from None
    for report in found.values():
        if report.cpus is None or report.memory_mib is None:
            raise Undetermined(f"`scontrol show node` does not print the CPUs and memory of {report.name}")
    return found


@dataclass(frozen=True)
class JobRow:
    """One row of `sacct -X -P -n --format=JobID,State,ExitCode,NodeList`."""

    job: str
    state: str
    exit_code: str
    nodes: str


def parse_jobs(output: str) -> dict[str, JobRow]:
    """sacct's rows by job id."""
    rows = (line.split("|") for line in output.splitlines())
    return {cells[0]: JobRow(*cells) for cells in rows if len(cells) == 4}


@dataclass(frozen=True)
class Rank:
    """What one MPI rank printed: how many there are, where it runs, and the sum over all."""

    rank: int
    size: int
    total: int
    host: str


def parse_ranks(output: str) -> list[Rank]:
    """Lines `rackwright-mpi RANK SIZE TOTAL HOST`; everything else MPI prints is passed over."""
    found = re.findall(r"^rackwright-mpi (\d+) (\d+) (\d+) (\S+)$", output, re.MULTILINE)
    return sorted((Rank(int(a), int(b), int(c), host) for a, b, c, host in found), key=lambda rank: rank.rank)


def parse_given(output: str) -> dict[str, str]:
    """Lines `rackwright-gpu NODE DEVICES`: what CUDA may see on each node, empty where nothing."""
    return dict(re.findall(r"^rackwright-gpu (\S+) ?(\S*)$", output, re.MULTILINE))


def parse_greetings(output: str) -> dict[str, str]:
    """Lines `rackwright-job JOBID NODE` of a job's tasks: job id by node."""
    found = re.findall(r"^rackwright-job (\d+) (\S+)$", output, re.MULTILINE)
    return {node: job for job, node in found}

"""What Slurm's tools print, as types. Pure functions, tested on recorded output."""

from __future__ import annotations

import re
from dataclasses import dataclass

from rackwright.claims.check import Undetermined

_NODE = re.compile(r"(?:^|\s)([A-Za-z:/]+)=(\S*)")


@dataclass(frozen=True)
class NodeReport:
    """One node as slurmctld sees it; states are words such as IDLE, DRAIN, NOT_RESPONDING."""

    name: str
    cpus: int
    memory_mib: int
    gres: str
    states: frozenset[str]
    reason: str


def parse_nodes(output: str) -> dict[str, NodeReport]:
    """`scontrol show node -o`: one line per node."""
    found = {}
    for line in filter(None, map(str.strip, output.splitlines())):
        values = dict(_NODE.findall(line))
        try:
            report = NodeReport(
                name=values["NodeName"],
                cpus=int(values["CPUTot"]),
                memory_mib=int(values["RealMemory"]),
                gres="" if values.get("Gres", "") == "(null)" else values.get("Gres", ""),
                states=frozenset(values["State"].rstrip("*").split("+")),
                reason=_reason(line),
            )
        except (KeyError, ValueError) as error:
            raise Undetermined(f"unreadable line of `scontrol show node`: {line[:80]!r}") from error
        found[report.name] = report
    return found


def _reason(line: str) -> str:
    match = re.search(r"\sReason=(.*?)\s*\[\S+@\S+\]", line)
    return match[1] if match else ""


def parse_lines_of_keys(output: str) -> list[dict[str, str]]:
    """Lines of `Key=value` words, as `scontrol show partition -o` and `show topology` print them."""
    return [dict(_NODE.findall(line)) for line in output.splitlines() if "=" in line]


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
    """What one MPI rank said: how many there are, where it runs, and the sum over all."""

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

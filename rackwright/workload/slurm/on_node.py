"""Slurm as one node sees it: queried rarely, with a deadline. Standard library only, Python 3.9: runs on nodes."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable

from rackwright.workload.commands import run
from rackwright.workload.slurm.output import SINFO, Row, parse_nodes, parse_rows
from rackwright.workload.states import DrainShare, NoAnswer, NodeState

_STEP = re.compile(r"slurmstepd: \[(\d{1,10})\.")
_JOB = re.compile(r"(\d{1,10})\|(\d{1,10})")

Run = Callable[["list[str]"], str]


def shares_of(rows: Iterable[Row], node: str) -> list[DrainShare]:
    """The partitions of a node, and what health checks have drained in them besides it."""
    rows = list(rows)
    found = []
    for name in dict.fromkeys(row.partition for row in rows if row.node == node):
        members = [row for row in rows if row.partition == name]
        drained = sum(row.drained_by_health and row.node != node for row in members)
        found.append(DrainShare(name, len(members), drained))
    return found


def gives_way(rows: Iterable[Row], node: str, percent: float) -> bool:
    """Whether a node that has just been drained exceeds the limit, because others were drained at the same time.

    The earliest stay drained, by the time of their reason and then by name, so that every node reaches the same decision.
    """
    rows = list(rows)
    for share in shares_of(rows, node):
        members = [row for row in rows if row.partition == share.group and row.drained_by_health]
        order = [name for _, name in sorted((row.since, row.node) for row in members)]
        if node in order and order.index(node) >= share.allowed(percent):
            return True
    return False


class SlurmOnNode:
    """Queries and commands to Slurm about one node."""

    settle_seconds = 1.1
    """Slurm dates a drain in whole seconds: one of the same second that counts as earlier, by its node's name,
    may still be on its way."""

    def __init__(self, node: str, run: Run = run) -> None:
        self._node = node
        self._run = run

    def state(self) -> NodeState:
        """This node."""
        found = parse_nodes(self._run(["scontrol", "show", "node", self._node, "-o"]))
        if self._node not in found:
            raise NoAnswer(f"`scontrol show node` printed nothing of {self._node}")
        return found[self._node].state

    def job_among(self, command_lines: Iterable[str]) -> bool:
        """Each step has a `slurmstepd: [614.0]`; `slurmstepd infinity` only holds a cgroup open."""
        return any(line.startswith("slurmstepd: [") for line in command_lines)

    def jobs_among(self, command_lines: Iterable[str]) -> frozenset[str]:
        """Of `slurmstepd: [614.extern]`, which each job has from its prolog to its epilog (PrologFlags=Contain)."""
        found = (_STEP.match(line) for line in command_lines)
        return frozenset(one[1] for one in found if one is not None)

    def jobs(self) -> dict[str, int]:
        """Jobs that slurmctld has on this node, including those in their prolog or epilog."""
        lines = self._run(["squeue", "-h", "-w", self._node, "-o", "%A|%U"]).splitlines()
        jobs = {}
        for line in lines:
            job = _JOB.fullmatch(line.strip())
            if job is None:
                raise NoAnswer(f"`squeue` printed {line[:80]!r}")
            jobs[job[1]] = int(job[2])
        return jobs

    def rows(self) -> list[Row]:
        """Every node of every partition."""
        return parse_rows(self._run(list(SINFO)))

    def shares(self) -> list[DrainShare]:
        """See `shares_of`."""
        return shares_of(self.rows(), self._node)

    def drain(self, reason: str) -> None:
        """Drain the node: no new job starts, running jobs continue."""
        self._update("State=DRAIN", f"Reason={reason}")

    def one_too_many(self, percent: float) -> bool:
        """See `gives_way`."""
        time.sleep(self.settle_seconds)
        return gives_way(self.rows(), self._node, percent)

    def explain(self, reason: str) -> None:
        """Change the reason of the drain."""
        self._update(f"Reason={reason}")

    def resume(self) -> None:
        """Resume the node."""
        self._update("State=RESUME")

    def reboot(self, reason: str) -> None:
        """Reboot through Slurm."""
        self._run(["scontrol", "reboot", f"reason={reason}", self._node])

    def _update(self, *words: str) -> None:
        self._run(["scontrol", "update", f"NodeName={self._node}", *words])

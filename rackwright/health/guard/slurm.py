"""Slurm as one node sees it: asked seldom, with a deadline, and told about this node alone."""

from __future__ import annotations

import re
import subprocess
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from rackwright.health.guard.policy import PREFIX, NodeInSlurm, Room

SECONDS = 15.0
TABLE = ["sinfo", "-N", "-h", "-o", "%R|%N|%T|%H|%E"]
"""Partition, node, state, when the reason was set, reason; a row per node and partition."""

Run = Callable[["list[str]"], str]


class NoAnswer(Exception):  # noqa: N818 - carried into the state as a reason
    """Slurm could not be asked or did not do it; the text says why."""


def run(arguments: list[str]) -> str:
    """What a command of Slurm prints; NoAnswer when it fails or takes too long."""
    name = " ".join(arguments[:3])
    try:
        done = subprocess.run(
            arguments, stdin=subprocess.DEVNULL, capture_output=True, timeout=SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        raise NoAnswer(f"`{name}` gave no answer within {SECONDS:.0f} s") from None
    except OSError as error:
        raise NoAnswer(f"`{name}`: {error.strerror}") from None
    if done.returncode != 0:
        said = (done.stderr or done.stdout).decode("utf-8", "replace").strip() or "nothing"
        raise NoAnswer(f"`{name}` exited {done.returncode} saying: {said.splitlines()[-1][:200]}")
    return done.stdout.decode("utf-8", "replace")


@dataclass(frozen=True)
class Row:
    """One node of one partition."""

    partition: str
    node: str
    state: str
    since: str
    reason: str

    @property
    def ours(self) -> bool:
        """Drained by a health check."""
        return "drain" in self.state and self.reason.startswith(PREFIX)


def parse_node(output: str) -> NodeInSlurm:
    """`scontrol show node NAME -o`; NoAnswer when it is not that."""
    state = re.search(r"(?:^|\s)State=(\S+)", output)
    if state is None:
        raise NoAnswer(f"`scontrol show node` printed something else: {output.strip()[:80]}")
    reason = re.search(r"\sReason=(.*?)\s*\[([^\[\]\s]+@[^\[\]\s]+)\]", output)
    states = frozenset(word.rstrip("*~#!%$@^-") for word in state.group(1).split("+"))
    return NodeInSlurm(states, reason.group(1) if reason else "", reason.group(2) if reason else "")


def parse_table(output: str) -> list[Row]:
    """What TABLE prints; NoAnswer when it is not that."""
    rows = []
    for line in output.splitlines():
        cells = line.split("|", 4)
        if len(cells) != 5:
            raise NoAnswer(f"`sinfo` printed something else: {line[:80]}")
        rows.append(Row(*(cell.strip() for cell in cells)))
    return rows


def rooms_of(rows: Iterable[Row], node: str) -> list[Room]:
    """The partitions of a node, and what health checks have drained in them besides it."""
    rows = list(rows)
    found = []
    for name in dict.fromkeys(row.partition for row in rows if row.node == node):
        there = [row for row in rows if row.partition == name]
        drained = sum(row.ours and row.node != node for row in there)
        found.append(Room(name, len(there), drained))
    return found


def gives_way(rows: Iterable[Row], node: str, percent: float) -> bool:
    """Whether a node that has just been drained was one too many, because others were at the same time.

    The first stay drained, by the time of their reason and then by name, as every node reckons alike.
    """
    rows = list(rows)
    for room in rooms_of(rows, node):
        ours = sorted((row.since, row.node) for row in rows if row.partition == room.partition and row.ours)
        place = [name for _, name in ours]
        if node in place and place.index(node) >= room.allowed(percent):
            return True
    return False


class Slurm:
    """Slurm, asked about and told of one node."""

    settle_seconds = 1.1
    """Slurm tells in whole seconds when a node was drained: whoever comes first by its name in the same second
    may still be on its way."""

    def __init__(self, node: str, run: Run = run) -> None:
        self._node = node
        self._run = run

    def node(self) -> NodeInSlurm:
        """This node; NoAnswer when slurmctld does not say."""
        return parse_node(self._run(["scontrol", "show", "node", self._node, "-o"]))

    def table(self) -> list[Row]:
        """Every node of every partition."""
        return parse_table(self._run(TABLE))

    def drain(self, reason: str) -> None:
        """No new job starts here; those that run go on."""
        self._update("State=DRAIN", f"Reason={reason}")

    def one_too_many(self, percent: float) -> bool:
        """Whether this node, which was just drained, has to give way to others; see `gives_way`."""
        time.sleep(self.settle_seconds)
        return gives_way(self.table(), self._node, percent)

    def explain(self, reason: str) -> None:
        """Another reason for the same drain."""
        self._update(f"Reason={reason}")

    def resume(self) -> None:
        """Back in service."""
        self._update("State=RESUME")

    def reboot(self, reason: str) -> None:
        """By Slurm's own way, so that the node is expected back; its drain outlives the reboot."""
        self._run(["scontrol", "reboot", f"reason={reason}", self._node])

    def _update(self, *words: str) -> None:
        self._run(["scontrol", "update", f"NodeName={self._node}", *words])

"""A made-up cluster for `rackwright top`: some of its nodes are down, drained, unknown.

python -m tests.unit.top.fake_source [NODES]    the screen itself, with made-up states
"""

from __future__ import annotations

import sys
import time

from rackwright.drift.states import State
from rackwright.errors import RackwrightError
from rackwright.live.facts import Absent, Unknown
from rackwright.live.findings import FiringAlert, LastDrift, LastHealth
from rackwright.live.node import Live, LiveNode
from rackwright.model.types import NodeRole
from rackwright.top.view import View
from rackwright.workload.protocol import Job
from rackwright.workload.states import DrainedBy, NodeState
from tests.factories import make_cluster, make_node

FORGED = "\x1b[2J\x1b]0;owned\x07[red]not markup[/red]"
EXPLANATION = "in the scheduler\n  drained by ada: bad DIMM\nnext: replace the DIMM"


def cluster_of(nodes: int):
    """A head and workers, 40 in a rack."""
    workers = [
        make_node(f"gpu{n:04}", f"10.9.{n // 200}.{20 + n % 200}", rack=f"r{1 + (n - 1) // 40}")
        for n in range(1, nodes)
    ]
    return make_cluster(make_node("head1", 10, NodeRole.HEAD, rack="m1"), *workers)


def state(text, *, reason="", by=None, busy=False):
    words = frozenset(text.split("+"))
    drained, down = "DRAIN" in words, "DOWN" in words
    return NodeState(
        text, words, drained, down, busy, not (drained or down or busy), reason=reason,
        by=f"{by}@2026-11-28T00:50:00" if by else "",
        drained_by=None if not (drained or down) else DrainedBy.PERSON if by == "ada" else DrainedBy.MANAGER,
    )  # fmt: skip


class FakeSource:
    """Answers from memory; `silent` is what it raises instead, `hang` keeps it from answering."""

    def __init__(self, cluster) -> None:
        self.cluster = cluster
        self.states = {node.name: state("IDLE") for node in cluster.nodes if not node.primary}
        self.jobs = {}
        self.alerts = {}
        self.drift = {}
        self.done = []
        self.silent = self.refuse = None
        self.hang = None
        self.looks = 0

    def look(self):
        self.looks += 1
        if self.hang is not None:
            self.hang.wait(60)
        if self.silent is not None:
            raise self.silent
        now = time.time()
        nodes = {
            node.name: LiveNode(
                node.name,
                Absent("it runs no jobs") if node.primary else self.states[node.name],
                Absent("no health check runs on it") if node.primary else LastHealth(now - 30, 30, 40),
                self.drift.get(node.name, LastDrift(State.IN_SYNC, now - 600, 600, scheduled=True)),
                tuple(self.alerts.get(node.name, ())),
            )
            for node in self.cluster.nodes
        }
        return View(Live(self.cluster.name, now, 0.1, nodes), dict(self.jobs), now)

    def why(self, node):
        return [sys.executable, "-c", f"print({EXPLANATION!r})"]

    def console(self, node):
        if node == "head1":
            raise RackwrightError("head1 has no BMC declared.")
        return [sys.executable, "-c", "import sys; input('console, Enter ends it: ')"]

    def drain(self, node, reason):
        self._act("drain", node, reason)
        self.states[node] = state("IDLE+DRAIN", reason=f"ada@laptop: {reason}", by="ada")

    def resume(self, node, reason):
        self._act("resume", node, reason)
        self.states[node] = state("IDLE")

    def _act(self, *what):
        if self.refuse is not None:
            raise self.refuse
        self.done.append(what)


def made_up(nodes: int) -> FakeSource:
    """Some of everything."""
    source = FakeSource(cluster_of(nodes))
    names = list(source.states)
    for number, name in enumerate(names):
        if number % 3 == 0:
            source.states[name] = state("ALLOCATED", busy=True)
            source.jobs[name] = (Job(str(4000 + number // 8), "ada", "train"),)
    source.states[names[1]] = state(
        "IDLE+DRAIN", reason="ada@laptop: ticket 4711, ECC errors on GPU 3", by="ada"
    )
    source.states[names[4]] = state("DOWN", reason="Not responding", by="slurm")
    source.states[names[5]] = Unknown("Slurm does not know it")
    source.drift[names[7]] = LastDrift(State.DRIFTED, time.time() - 7200, 7200, scheduled=True)
    source.alerts[names[8]] = (FiringAlert("GpuHot", "critical", {"gpu": "3"}),)
    return source


if __name__ == "__main__":
    from rackwright.cli.top_app import TopApp

    made = made_up(int(sys.argv[1]) if len(sys.argv) > 1 else 80)
    TopApp(made.cluster, made.cluster.nodes, made).run()

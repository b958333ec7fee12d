"""A head that answers like Slurm, and a small cluster of it."""

import ast
import re
import shlex

from ClusterShell.NodeSet import NodeSet

from rackwright.command import CommandResult
from rackwright.errors import ConnectionFailed
from rackwright.model.settings import Burnin
from rackwright.model.types import NodeRole
from rackwright.workload.slurm.output import SINFO
from tests.factories import RunsSlurm, make_cluster, make_node


def table(nodes, sizes, busbw, *, per_node=1, collective="all_reduce", wrong="0", in_place_wrong=None):
    """Synthetic, in the format of nccl-tests."""
    lines = [f"# Collective test starting: {collective}_perf", "# nThread 1 nGpus 1 validation: 1"]
    hosts = [node for node in nodes for _ in range(per_node)]
    lines += [
        f"#  Rank {rank:2} Group  0 Pid {rank:6} on {host:>10} device  0 [cpu] x"
        for rank, host in enumerate(hosts)
    ]
    side = f"  {10:7}  {busbw:6}  {busbw:6}  "
    lines += [
        f"{size:12}  {size // 4:12}     float     sum      -1{side}{wrong}{side}{in_place_wrong or wrong}"
        for size in sizes
    ]
    lines += ["# Out of bounds values : 0 OK", f"# Avg bus bandwidth    : {busbw}", "# srun exit status 0"]
    return "\n".join(lines) + "\n"


class Head:
    """Answers as the primary head of a cluster would; `pair_busbw` is what runs of two nodes reach."""

    def __init__(self, busbw=5.0, **states):
        self.busbw, self.states = busbw, states
        self.pair_busbw = {}
        self.node_busbw = {}
        self.together, self.searched = [], []
        self.good_busbw = 4.0
        self.commands, self.jobs = [], []
        self.output = None
        self.fault = None

    def run(self, node, command, *, stdin=None, timeout):
        self.commands.append(command)
        if command == "sinfo --version":
            return CommandResult(command, 0, "slurm 24.11.5\n", "")
        if command.startswith("sinfo"):
            assert command == shlex.join(SINFO)
            states = dict.fromkeys((f"w{n}" for n in range(1, 5)), "idle") | self.states
            rows = [
                f"main|{name}|{'idle' if state == 'dead' else state}|Unknown|Unknown|none\n"
                for name, state in states.items()
                if state != "gone"
            ]
            return CommandResult(command, 0, "".join(rows), "")
        if command == "true":
            if self.states.get(node) == "dead":
                raise ConnectionFailed(f"Cannot connect to {node}.")
            return CommandResult(command, 0, "", "")
        if command.startswith("uname"):
            return CommandResult(command, 0, "6.12.1\n", "")
        if command.startswith("scancel"):
            return CommandResult(command, 0, "", "")
        if self.fault:
            raise self.fault
        return CommandResult(command, 0, self._srun(command), "")

    def _srun(self, command):
        self.jobs.append(command)
        names = re.search(r"--nodelist='?([^' ]+)", command)[1]
        nodes = sorted(NodeSet(names))
        smallest, largest = (
            int(re.search(pattern, command)[1])
            for pattern in (
                r"LARGEST, ITERATIONS, SECONDS_PER_SIZE = (\d+)",
                r"SECONDS_PER_SIZE = \d+, (\d+)",
            )
        )
        sizes = []
        while smallest <= largest:
            sizes.append(smallest)
            smallest *= 2
        if self.output is not None and len(nodes) > 1:
            return self.output
        per_node = int(re.search(r"--ntasks-per-node=(\d+)", command)[1])
        if groups := ast.literal_eval(re.search(r"GROUPS = (\{[^}]*\})", command.replace("'\"'\"'", "'"))[1]):
            return table(nodes, sizes, self._slowest(groups), per_node=per_node)
        if len(nodes) == 1:
            return table(nodes, sizes, self.node_busbw.get(nodes[0], self.busbw), per_node=per_node)
        self.together.append(tuple(nodes))
        busbw = self.pair_busbw.get(tuple(nodes), self.busbw) if len(self.together) > 1 else self.busbw
        return table(nodes, sizes, busbw, per_node=per_node)

    def _slowest(self, groups):
        """Of pairs that run side by side."""
        pairs = {}
        for node, number in groups.items():
            pairs.setdefault(number, []).append(node)
        self.searched.append(tuple(tuple(sorted(pair)) for pair in pairs.values()))
        return min(self.pair_busbw.get(tuple(sorted(pair)), self.good_busbw) for pair in pairs.values())


def cluster_of(workers=2, **settings):
    nodes = [
        make_node("head1", 10, NodeRole.HEAD, options={"slurm": RunsSlurm()}),
        *(make_node(f"w{n}", 20 + n) for n in range(1, workers + 1)),
    ]
    return make_cluster(*nodes, burnin=Burnin(**{"floor_busbw_gbs": 1.0, "floor_source": "test"} | settings))

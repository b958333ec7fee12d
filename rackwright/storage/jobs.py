"""The jobs of the storage bench: one task on each node, which starts the node's ranks itself."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any

from rackwright.burnin.engines import cpus_per_task
from rackwright.model.cluster import Cluster, Node
from rackwright.model.storage import Filesystem
from rackwright.model.storage_bench import CheckpointBench, RunsStorageBench
from rackwright.node_programs import one_text
from rackwright.storage.plan import Sizes
from rackwright.workload.protocol import JobStep, Manager, Output, gpus_of

ALONE = "rackwright.storage.programs.alone"
TOGETHER = "rackwright.storage.programs.together"
CHECKPOINT = "rackwright.storage.programs.checkpoint"
END_SECONDS = 30
"""Between the deadline of a program and that of its job."""


class Jobs:
    """Runs the programs for one filesystem."""

    def __init__(self, cluster: Cluster, manager: Manager, one: Filesystem, sizes: Sizes) -> None:
        self._cluster, self._manager, self._one, self._sizes = cluster, manager, one, sizes

    def alone(self, node: Node, folder: str) -> Output:
        """fio on one node."""
        return self._run((node,), ALONE, {"folder": folder, **self._sizes.settings()})

    def together(self, nodes: Sequence[Node], token: str, folder: str) -> Output:
        """All nodes at once; `token` keeps strangers out of their barrier."""
        asked = {
            "nodes": _short(nodes),
            "folder": folder,
            "token": token.rsplit("-", 1)[-1],
            "address": self._address(nodes[0]),
            "port": _role(nodes[0]).port,
            **self._sizes.settings(),
        }
        return self._run(nodes, TOGETHER, asked)

    def train(self, mode: str, nodes: Sequence[Node], bench: CheckpointBench, folder: str) -> Output:
        """One run of the checkpoint stage."""
        if mode == "resume":
            nodes = nodes[::-1]  # each rank on another node: no page cache still holds what it saved
        role = _role(nodes[0])
        asked = {
            "mode": mode,
            "nodes": _short(nodes),
            "addresses": [self._address(node) for node in nodes],
            "port": role.port + 1,
            "ranks_per_node": bench.ranks_per_node,
            "size": bench.size_mib * 2**20,
            "backend": bench.backend,
            "victim": bench.nodes * bench.ranks_per_node - 1,
            "folder": folder,
        }
        return self._run(nodes, CHECKPOINT, asked, (role.python, "-I"), gpus=bench.backend == "nccl")

    def _run(
        self,
        nodes: Sequence[Node],
        program: str,
        asked: dict[str, Any],
        python: tuple[str, ...] = ("python3", "-IS"),
        *,
        gpus: bool = False,
    ) -> Output:
        bench = self._one.bench
        asked = {**asked, "user": bench.user, "seconds": bench.timeout_seconds}
        factor = max(self._cluster.ssh.time_factor, 1.0)
        step = JobStep(
            nodes=tuple(node.name for node in nodes),
            tasks_per_node=1,
            command=(*python, "-c", one_text(program), json.dumps(asked)),
            timeout_seconds=math.ceil(bench.timeout_seconds + END_SECONDS * factor),
            queue=self._cluster.burnin.partition,
            cpus_per_task=min(cpus_per_task(node.sku, 1) for node in nodes),
            gpus=gpus_of(nodes[0]) if gpus else (),
            purpose="storage",
        )
        return self._manager.run(step)

    def _address(self, node: Node) -> str:
        return str(self._cluster.management_address(node))


def _short(nodes: Sequence[Node]) -> list[str]:
    """Names as the nodes' own `hostname` begins with."""
    return [node.name.split(".")[0] for node in nodes]


def _role(node: Node) -> RunsStorageBench:
    found = node.offers(RunsStorageBench)
    if found is None:  # asked before anything is run
        raise ValueError(f"{node.name} has no role with the programs of the bench")
    return found

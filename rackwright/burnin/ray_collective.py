"""The engine for nodes whose jobs Ray runs: all-reduce through ray.util.collective, with NCCL between GPUs and gloo between CPUs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Literal

from rackwright.burnin.engines import EngineName, Groups
from rackwright.burnin.expectation import Expectation, doubling
from rackwright.burnin.finding import Finding
from rackwright.burnin.floors import FULL_SIZE
from rackwright.burnin.possible import BUSBW_MAX_GBS, busbw_max
from rackwright.burnin.rails import Rail
from rackwright.burnin.transport import judge_nccl
from rackwright.errors import BurninError
from rackwright.model.cluster import Node
from rackwright.model.settings import Burnin
from rackwright.render import render
from rackwright.status import Status
from rackwright.workload.protocol import JobStep, gpus_of

_GLOO_SECONDS_PER_SIZE = 0.05
"""As for MPI: few sizes of few nodes take long."""
_NCCL_SECONDS_PER_SIZE = 3600
"""No bound: the number of iterations is."""
START_SECONDS = 120
"""Until all ranks have started, and until they have joined their group."""


class RayCollective:
    """One actor per GPU, or as many as asked for on CPUs; all_reduce alone."""

    name: EngineName
    collectives: tuple[str, ...] = ("all_reduce",)
    largest_default: int
    uses_devices: bool

    def __init__(
        self,
        settings: Burnin,
        node: Node,
        ranks_per_node: int,
        rails: Sequence[Rail] = (),
        devices: Sequence[str] = (),
        time_factor: int = 1,
    ) -> None:
        with_gpus = settings.on_gpus(node.sku)
        self._backend: Literal["nccl", "gloo"] = "nccl" if with_gpus else "gloo"
        self.name = "ray-nccl" if with_gpus else "ray-gloo"
        self.uses_devices = with_gpus
        self.largest_default = FULL_SIZE if with_gpus else 64 * 2**20
        cores = node.sku.sockets * node.sku.cores_per_socket
        if not with_gpus and ranks_per_node > cores:
            raise BurninError(
                f"{ranks_per_node} ranks per node exceed the {cores} cores of SKU {node.sku.name}."
            )
        self._ranks = sum(one.count for one in gpus_of(node)) if with_gpus else ranks_per_node
        self._cores, self._settings, self._sku = cores, settings, node.sku
        self._rails, self._devices = rails, devices
        self._start_seconds = START_SECONDS * time_factor

    def ranks_per_node(self, nodes: int) -> int:
        """One rank per GPU; on CPUs as requested, at least two ranks in total if the cores allow it."""
        if self._backend == "gloo" and nodes == 1 and self._cores > 1:
            return max(self._ranks, 2)
        return self._ranks

    def step(self, collective: str, nodes: tuple[str, ...], smallest: int, largest: int) -> JobStep:
        """One group of all nodes."""
        return self._step((nodes,), smallest, largest)

    def side_by_side(
        self, collective: str, groups: Groups, smallest: int, largest: int
    ) -> tuple[JobStep, Expectation]:
        """One driver with a collective group for each group of nodes, the times of the slowest."""
        nodes = tuple(node for group in groups for node in group)
        ranks = len(nodes) * self.ranks_per_node(len(groups[0]))
        return self._step(groups, smallest, largest), self._expected(
            collective, ranks, nodes, smallest, largest
        )

    def expectation(
        self, collective: str, nodes: tuple[str, ...], smallest: int, largest: int
    ) -> Expectation:
        """All sizes asked for."""
        ranks = len(nodes) * self.ranks_per_node(len(nodes))
        return self._expected(collective, ranks, nodes, smallest, largest)

    def judge_transport(self, text: str, nodes: Sequence[str], together: int) -> list[Finding]:
        """NCCL's log proves it; gloo only knows TCP, so that declared RDMA devices stay unmeasured."""
        if self._backend == "nccl":
            return judge_nccl(self._settings, self._rails, self._devices, text, nodes, together)
        declared = self._settings.transport or (self._rails[0].kind if self._rails else None)
        if declared is None or together < 2:
            return []
        return [Finding(Status.UNKNOWN, f"gloo uses TCP and proves no transport; {declared} is declared")]

    def _expected(
        self, collective: str, ranks: int, nodes: tuple[str, ...], smallest: int, largest: int
    ) -> Expectation:
        most = busbw_max(self._sku) if self._backend == "nccl" else BUSBW_MAX_GBS
        return Expectation(collective, ranks, nodes, doubling(smallest, largest), True, most)

    def _step(self, groups: Groups, smallest: int, largest: int) -> JobStep:
        settings, nccl = self._settings, self._backend == "nccl"
        ranks = self.ranks_per_node(len(groups[0]))
        program = render(
            "burnin/ray_all_reduce.py.j2",
            groups=json.dumps(groups),
            ranks=ranks,
            backend=self._backend,
            smallest=smallest,
            largest=largest,
            iterations=settings.iterations if nccl else max(settings.iterations, 3),
            seconds_per_size=_NCCL_SECONDS_PER_SIZE if nccl else _GLOO_SECONDS_PER_SIZE,
            start_seconds=self._start_seconds + len(groups) * len(groups[0]) // 2,
        )
        return JobStep(
            nodes=tuple(node for group in groups for node in group),
            tasks_per_node=ranks,
            command=("-c", program),
            timeout_seconds=settings.timeout_seconds,
            environment=dict(settings.nccl_env) if nccl else {},
            start="driver",
        )

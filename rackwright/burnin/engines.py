"""The engines: how to run a collective, and what its output must show."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal, Protocol

from rackwright.burnin.expectation import Expectation, doubling, printed_size
from rackwright.burnin.finding import Finding
from rackwright.burnin.on_each import search_path
from rackwright.burnin.possible import busbw_max
from rackwright.burnin.rails import Rail
from rackwright.burnin.transport import judge_nccl
from rackwright.burnin.verbs import linger_seconds, over_verbs
from rackwright.errors import BurninError
from rackwright.model.cluster import Node
from rackwright.model.settings import Burnin
from rackwright.model.sku import Sku
from rackwright.render import render
from rackwright.status import Status
from rackwright.workload.protocol import JobStep, gpus_of

EngineName = Literal["nccl-tests", "mpi", "ray-nccl", "ray-gloo"]

_SPLIT_RANKS = 2**16
"""Larger than any run; the number of groups times this must stay below 2^31."""
_MPI_SECONDS_PER_SIZE = 0.05
"""Keeps 8 B to 64 MiB on two shared cores under ten seconds."""


NCCL_FILTER = r"""
/NCCL INFO/ {
  if ($0 !~ /\[(send|receive)\] via NET|NET\/IB ?: Using|NCCL version/) next
  host = $1; sub(/:.*/, "", host)
  way = $0
  if (way ~ /: Using/) sub(/.*: Using/, "", way); else sub(/.* \[/, "[", way)
  if (seen[host way]++) next
}
{ print; fflush() }
"""
"""NCCL_DEBUG=INFO of a thousand ranks is too much for a connection: keep the table, the warnings,
one line for each host and data path, and one for the devices it found."""


Groups = Sequence[tuple[str, ...]]
"""Disjoint sets of nodes, of equal size."""


class Engine(Protocol):
    """A program that measures collectives."""

    name: EngineName
    collectives: tuple[str, ...]
    """all_reduce comes first; floors are declared for it."""
    largest_default: int
    """Bytes."""
    uses_devices: bool
    """Whether data between nodes goes over the declared RDMA devices."""

    def ranks_per_node(self, nodes: int) -> int:
        """Ranks on each node."""
        ...

    def step(self, collective: str, nodes: tuple[str, ...], smallest: int, largest: int) -> JobStep:
        """The step that measures a collective from `smallest` to `largest` bytes."""
        ...

    def expectation(
        self, collective: str, nodes: tuple[str, ...], smallest: int, largest: int
    ) -> Expectation:
        """What the output of the step must show."""
        ...

    def side_by_side(
        self, collective: str, groups: Groups, smallest: int, largest: int
    ) -> tuple[JobStep, Expectation]:
        """One step in which each group of nodes measures separately; the figures are those of the slowest group."""
        ...

    def judge_transport(self, text: str, nodes: Sequence[str], together: int) -> list[Finding]:
        """Findings that contradict or fail to prove the declared transport; `together`: nodes that exchanged data.

        Empty if the output proves it, or if counters have to.
        """
        ...


class NcclTests:
    """NVIDIA's nccl-tests, built with MPI, one rank per GPU or MIG instance."""

    name: EngineName = "nccl-tests"
    collectives: tuple[str, ...] = (
        "all_reduce",
        "all_gather",
        "reduce_scatter",
        "alltoall",
        "broadcast",
        "sendrecv",
    )
    largest_default = 16 * 2**30
    uses_devices = True

    def __init__(
        self, settings: Burnin, node: Node, rails: Sequence[Rail] = (), devices: Sequence[str] = ()
    ) -> None:
        self._rails = rails
        self._devices = devices
        self._gpus = gpus_of(node)
        if not self._gpus:
            raise BurninError(
                f"The engine nccl-tests needs GPUs; SKU {node.sku.name} has none.",
                hint="set burnin.engine to mpi",
            )
        self._settings = settings
        self._sku = node.sku
        self._path = search_path(node)
        self._ranks = sum(request.count for request in self._gpus)

    def ranks_per_node(self, nodes: int) -> int:
        """One rank per GPU or MIG instance."""
        return self._ranks

    def step(self, collective: str, nodes: tuple[str, ...], smallest: int, largest: int) -> JobStep:
        """`<collective>_perf` with five runs to warm up, values checked once per size unless the site only wants timing."""
        return self._step(nodes, self._program(collective, len(nodes), smallest, largest))

    def side_by_side(
        self, collective: str, groups: Groups, smallest: int, largest: int
    ) -> tuple[JobStep, Expectation]:
        """NCCL_TESTS_SPLIT makes a communicator of each group, `-a 3` prints the time of the slowest.

        The split `OR n` gives a process the group (its number OR n), which is n where n ends in as many ones as numbers
        have bits: so each node names its own group, and the order of the nodes does not matter. Times are reduced over
        all processes (NVIDIA/nccl-tests, src/common.cu, read 2026-11-25).
        """
        nodes = tuple(node for group in groups for node in group)
        size = len(groups[0])
        cases = " ".join(
            f"{'|'.join(node.split('.')[0] for node in group)}) group={number};;"
            for number, group in enumerate(groups)
        )
        last = _SPLIT_RANKS - 1
        split = f'case "$(hostname -s)" in {cases} esac; export NCCL_TESTS_SPLIT="OR $((group * {_SPLIT_RANKS} + {last}))"'
        program = self._program(collective, size, smallest, largest)
        asked = self.expectation(collective, groups[0], smallest, largest)
        expected = replace(asked, ranks=len(nodes) * self._ranks, nodes=nodes)
        return self._step(nodes, f"{program} -a 3", f"{split}; "), expected

    def _program(self, collective: str, nodes: int, smallest: int, largest: int) -> str:
        smallest = self._smallest(collective, smallest, nodes)
        return (
            f"{collective}_perf -b {smallest} -e {largest} -f 2 -g 1 -n {self._settings.iterations} -w 5 "
            f"-c {int(self._settings.check_values)}"
        )

    def _step(self, nodes: tuple[str, ...], program: str, before: str = "") -> JobStep:
        return JobStep(
            nodes=nodes,
            tasks_per_node=self._ranks,
            command=("sh", "-c", f'PATH="{self._path}"; {before}exec {program}'),
            timeout_seconds=self._settings.timeout_seconds,
            queue=self._settings.partition,
            cpus_per_task=cpus_per_task(self._sku, self._ranks),
            gpus=self._gpus,
            environment={"NCCL_DEBUG": "INFO", **self._settings.nccl_env},
            output_filter=NCCL_FILTER,
        )

    def expectation(
        self, collective: str, nodes: tuple[str, ...], smallest: int, largest: int
    ) -> Expectation:
        """All sizes, as nccl-tests rounds them for this many ranks."""
        ranks = len(nodes) * self._ranks
        asked = doubling(self._smallest(collective, smallest, len(nodes)), largest)
        sizes = tuple(dict.fromkeys(printed_size(collective, size, ranks) for size in asked))
        most = busbw_max(self._sku)
        return Expectation(collective, ranks, nodes, sizes, self._settings.check_values, most)

    def _smallest(self, collective: str, smallest: int, nodes: int) -> int:
        """Collectives that split the buffer between the ranks round sizes below 16 B a rank to 0."""
        while printed_size(collective, smallest, nodes * self._ranks) == 0:
            smallest *= 2
        return smallest

    def judge_transport(self, text: str, nodes: Sequence[str], together: int) -> list[Finding]:
        """From NCCL's log."""
        return judge_nccl(self._settings, self._rails, self._devices, text, nodes, together)


class Mpi:
    """rackwright's own all-reduce over MPI, for nodes without GPUs."""

    name: EngineName = "mpi"
    collectives: tuple[str, ...] = ("all_reduce",)
    largest_default = 64 * 2**20
    uses_devices = True

    def __init__(self, settings: Burnin, sku: Sku, ranks_per_node: int, rails: Sequence[Rail] = ()) -> None:
        cores = sku.sockets * sku.cores_per_socket
        if ranks_per_node > cores:  # waiting ranks spin: two on a core alternate every few milliseconds
            raise BurninError(f"{ranks_per_node} ranks per node exceed the {cores} cores of SKU {sku.name}.")
        self._settings = settings
        self._sku = sku
        self._cores = cores
        self._ranks_per_node = ranks_per_node
        self._rails = rails

    def ranks_per_node(self, nodes: int) -> int:
        """As requested; at least two ranks in total if the cores allow it."""
        return max(self._ranks_per_node, 2) if nodes == 1 and self._cores > 1 else self._ranks_per_node

    def step(self, collective: str, nodes: tuple[str, ...], smallest: int, largest: int) -> JobStep:
        """Pass the program as an argument: nothing is copied to the nodes, and stdin stays free."""
        return self._step(nodes, smallest, largest, {}, self.ranks_per_node(len(nodes)))

    def side_by_side(
        self, collective: str, groups: Groups, smallest: int, largest: int
    ) -> tuple[JobStep, Expectation]:
        """One program, a communicator for each group, the times of the slowest."""
        numbers = {node.split(".")[0]: number for number, group in enumerate(groups) for node in group}
        nodes = tuple(node for group in groups for node in group)
        ranks = self.ranks_per_node(len(groups[0]))
        expected = Expectation(collective, len(nodes) * ranks, nodes, doubling(smallest, largest))
        return self._step(nodes, smallest, largest, numbers, ranks), expected

    def _step(
        self, nodes: tuple[str, ...], smallest: int, largest: int, groups: dict[str, int], ranks: int
    ) -> JobStep:
        program = render(
            "burnin/all_reduce.py.j2",
            smallest=smallest,
            largest=largest,
            iterations=max(self._settings.iterations, 3),
            seconds_per_size=_MPI_SECONDS_PER_SIZE,
            groups=groups,
            linger_seconds=linger_seconds(self._rails),
        )
        return JobStep(
            nodes=nodes,
            tasks_per_node=ranks,
            command=("python3", "-c", program),
            timeout_seconds=self._settings.timeout_seconds,
            queue=self._settings.partition,
            cpus_per_task=cpus_per_task(self._sku, ranks),
            environment={"OMPI_MCA_mpi_yield_when_idle": "1", **over_verbs(self._rails)},
            output_filter=NCCL_FILTER,
        )

    def expectation(
        self, collective: str, nodes: tuple[str, ...], smallest: int, largest: int
    ) -> Expectation:
        """All sizes asked for."""
        ranks = len(nodes) * self.ranks_per_node(len(nodes))
        return Expectation(collective, ranks, nodes, doubling(smallest, largest))

    def judge_transport(self, text: str, nodes: Sequence[str], together: int) -> list[Finding]:
        """Open MPI does not report its transport: only the counters of declared devices can prove it."""
        if self._settings.transport is None or together < 2 or self._rails:
            return []
        why = f"the mpi engine cannot prove the transport; {self._settings.transport} is declared"
        return [Finding(Status.UNKNOWN, why)]


def cpus_per_task(sku: Sku, tasks: int) -> int:
    """Hardware threads for each task, in whole cores; a tenth stays free for cores that jobs may not use.

    Otherwise each rank's helper threads would share a core with it.
    """
    threads = sku.threads_per_core
    return max(sku.cpus * 9 // 10 // tasks // threads * threads, 1)


def engine_for(
    settings: Burnin,
    node: Node,
    ranks_per_node: int = 1,
    rails: Sequence[Rail] = (),
    devices: Sequence[str] = (),
) -> Engine:
    """The declared engine for nodes like this one, else nccl-tests with GPUs and mpi without.

    `rails` are the RDMA devices of such a node, `devices` those that NCCL is to use, where that is declared.
    """
    name = settings.engine or ("nccl-tests" if node.sku.gpus is not None else "mpi")
    if name == "nccl-tests":
        return NcclTests(settings, node, rails, devices)
    return Mpi(settings, node.sku, ranks_per_node, rails)

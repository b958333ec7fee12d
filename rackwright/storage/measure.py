"""One filesystem measured: each node alone, all together, checkpoints; through the workload manager."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from rackwright.burnin.finding import Finding
from rackwright.burnin.readiness import not_ready
from rackwright.errors import BurninError, ConnectionFailed, WorkloadError
from rackwright.model.cluster import Cluster, Node
from rackwright.model.ranges import fold
from rackwright.model.storage import Filesystem
from rackwright.model.storage_bench import CheckpointBench, RunsStorageBench
from rackwright.ssh import RootShell
from rackwright.ssh.side_by_side import side_by_side
from rackwright.status import Status
from rackwright.storage import checkpoint as stages
from rackwright.storage.alone import judge_alone
from rackwright.storage.jobs import Jobs
from rackwright.storage.judge import Judged, alone_figures, judge_floors, judge_look, judge_space
from rackwright.storage.place import HUNG_SECONDS, Place
from rackwright.storage.plan import Sizes, checkpoint_of, spread
from rackwright.storage.report import CheckpointResult, FilesystemResult, NodeRates
from rackwright.storage.together import judge_together
from rackwright.workload.protocol import Manager

Progress = Callable[[str], None]
NOT_RUN = "not run: the filesystem already failed to answer in time"
TOGETHER_FOLDER, CHECKPOINT_FOLDER = "together", "checkpoint"
NODES_AT_ONCE = 32
JOBS_MOST = 16
"""Jobs after each other that a run may have beyond those of nodes alone; until then its folder is its own."""


@dataclass(frozen=True)
class With:
    """What a measurement works with."""

    cluster: Cluster
    manager: Manager
    shell: RootShell
    progress: Progress


class FilesystemRun:
    """One filesystem on some nodes."""

    def __init__(
        self,
        given: With,
        one: Filesystem,
        nodes: tuple[Node, ...],
        sizes: Sizes,
        *,
        only_checkpoint: bool = False,
    ) -> None:
        self._given, self._one, self._nodes, self._sizes = given, one, nodes, sizes
        self._only_checkpoint = only_checkpoint
        self._checkpoint = checkpoint_of(one) if one.kind.shared else None
        self._jobs = Jobs(given.cluster, given.manager, one, sizes)
        self._hung = False
        self._place = Place(given.cluster.name, one, given.shell, given.cluster.ssh.time_factor)

    def run(self) -> FilesystemResult:
        """Measure and judge; UNKNOWN if the workload manager or the head does not answer."""
        one = self._one
        result = FilesystemResult(
            one.name,
            one.kind.value,
            one.purpose.value,
            one.path,
            nodes=tuple(node.name for node in self._nodes),
            settings={**self._sizes.settings(), "only_checkpoint": self._only_checkpoint},
        )
        try:
            result = self._measured(result)
        except (ConnectionFailed, BurninError, WorkloadError) as error:
            result = _against(result, Finding(Status.UNKNOWN, error.message))
        return _against(result, *self._place.left)

    def _measured(self, result: FilesystemResult) -> FilesystemResult:
        without = [node.name for node in self._nodes if node.offers(RunsStorageBench) is None]
        if without:
            why = f"no role provides the programs of the bench on {fold(without)}: add `storage_bench: {{}}` under `roles`"
            return _against(result, Finding(Status.UNKNOWN, why))
        if busy := not_ready(self._given.manager, result.nodes):
            shown = "; ".join(f"{node}: {state}" for node, state in sorted(busy.items()))
            why = f"{len(busy)} of {len(result.nodes)} nodes are not ready, nothing ran: {shown}"
            return _against(result, Finding(Status.UNKNOWN, why))
        result = self._looked(result)
        if not self._nodes or any("nothing was written" in found.text for found in result.findings):
            return result
        first = self._nodes[0]
        makers = (first,) if self._one.kind.shared else self._nodes
        alone = spread(self._nodes, self._sizes.alone_nodes) if self._one.kind.shared else self._nodes
        inner = [*(_alone_folder(node) for node in alone), TOGETHER_FOLDER, CHECKPOINT_FOLDER]
        seconds = (2 * len(alone) + JOBS_MOST) * (self._one.bench.timeout_seconds + 600)
        with self._place.folders([node.name for node in makers], inner, seconds) as folders:
            if not folders:
                return result
            if not self._only_checkpoint:
                result = self._rates(result, alone, folders)
            if self._checkpoint is not None:
                result = self._checkpoints(result, self._checkpoint, folders[first.name])
        return result

    def _looked(self, result: FilesystemResult) -> FilesystemResult:
        """Without the nodes that cannot take part; nothing is run where there is too little space."""
        self._given.progress(f"{self._one.name}: looking at {self._one.path} on {fold(result.nodes)}")
        looks = self._place.look(result.nodes)
        troubles = {node: judge_look(self._one, node, look) for node, look in looks.items()}
        result = _against(result, *(found for found in troubles.values() if found is not None))
        self._nodes = tuple(node for node in self._nodes if troubles[node.name] is None)
        result = replace(result, nodes=tuple(node.name for node in self._nodes))
        if not self._nodes:
            return result
        source = looks[result.nodes[0]].mounted or ("", "")
        result = replace(result, mounted=f"{source[0]} ({source[1]})"[:300])
        save = self._checkpoint
        saved = save.size_mib * 2**20 * save.nodes * save.ranks_per_node if save is not None else 0
        judged = result.nodes[:1] if self._one.kind.shared else result.nodes
        spaces = (
            judge_space(self._one, self._sizes, len(self._nodes), saved, looks[node], node) for node in judged
        )
        return _against(result, *(found for found in spaces if found is not None))

    def _rates(
        self, result: FilesystemResult, alone: tuple[Node, ...], folders: dict[str, str]
    ) -> FilesystemResult:
        each = self._alone([node for node in alone if node.name in folders or self._one.kind.shared], folders)
        rates = tuple(one for judged in each for one in judged.rates)
        figures = alone_figures(self._one, rates)
        findings = [found for judged in each for found in judged.findings]
        fio = sorted({judged.version for judged in each if judged.version is not None})
        versions = {"fio": ", ".join(fio)} if fio else {}
        both = Judged()
        if self._one.kind.shared:
            both = self._together(folders[self._nodes[0].name])
        else:
            why = "each node has its own: all nodes together are not measured"
            findings.append(Finding(Status.OUT_OF_SCOPE, f"{self._one.name}: {why}"))
        whole = (*figures, *both.figures)
        return replace(
            _against(result, *findings, *both.findings, *judge_floors(self._one, whole, rates)),
            figures=whole,
            alone=rates,
            together=both.rates,
            versions={**result.versions, **versions},
        )

    def _alone(self, nodes: list[Node], folders: dict[str, str]) -> list[Judged]:
        """One after the other where a server is shared; a node under its floor has a second try, and the better counts."""
        at_once = 1 if self._one.kind.shared else NODES_AT_ONCE
        any_folder = next(iter(folders.values()))

        def measure(node: Node) -> Judged:
            folder = folders.get(node.name, any_folder)
            judged = self._alone_once(node, folder)
            under = any(figure.under for figure in alone_figures(self._one, judged.rates))
            return _better(judged, self._alone_once(node, folder)) if under and judged.sound else judged

        with side_by_side(at_once) as executor:
            try:
                return list(executor.map(measure, nodes))
            except BaseException:
                self._given.manager.cancel()
                raise

    def _alone_once(self, node: Node, folder: str) -> Judged:
        if self._hung:
            return Judged(findings=(Finding(Status.UNKNOWN, f"{node.name} alone: {NOT_RUN}"),))
        self._given.progress(f"{self._one.name}: fio on {node.name}")
        output = self._jobs.alone(node, f"{folder}/{_alone_folder(node)}")
        judged = judge_alone(node.name, output, self._sizes, self._one.bench.timeout_seconds)
        self._note_hang(judged.hung and self._one.kind.shared)
        return judged

    def _together(self, folder: str) -> Judged:
        if self._hung:
            return Judged(findings=(Finding(Status.UNKNOWN, f"together: {NOT_RUN}"),))
        names = [node.name for node in self._nodes]
        self._given.progress(f"{self._one.name}: {fold(names)} together")
        output = self._jobs.together(self._nodes, folder, f"{folder}/{TOGETHER_FOLDER}")
        judged = judge_together(self._one, names, output, self._sizes)
        self._note_hang(judged.hung)
        return judged

    def _note_hang(self, hung: bool) -> None:
        if hung:
            self._hung = True
            self._place.remove_seconds = HUNG_SECONDS

    def _checkpoints(self, result: FilesystemResult, bench: CheckpointBench, folder: str) -> FilesystemResult:
        nodes = spread(self._nodes, bench.nodes)
        if self._hung:
            return _against(result, Finding(Status.UNKNOWN, f"checkpoint: {NOT_RUN}"))
        if len(nodes) < bench.nodes:
            why = f"checkpoint: {len(nodes)} of {bench.nodes} nodes can take part: nothing ran"
            return _against(result, Finding(Status.UNKNOWN, why))
        ranks = bench.nodes * bench.ranks_per_node
        stage = CheckpointResult(
            nodes=tuple(node.name for node in nodes),
            ranks=ranks,
            rank_bytes=bench.size_mib * 2**20,
            backend=bench.backend,
            interval_seconds=bench.interval_seconds,
            killed_rank=ranks - 1,
        )
        runs: dict[str, stages.Run] = {}
        for mode in stages.MODES:
            self._given.progress(f"{self._one.name}: checkpoint, {mode}")
            runs[mode] = stages.run_of(self._jobs.train(mode, nodes, bench, f"{folder}/{CHECKPOINT_FOLDER}"))
            if runs[mode].missing is not None or (mode == "reference" and runs[mode].last is None):
                break
        stage, findings = stages.judge(stage, runs, bench.most_percent)
        versions = {"torch": stage.torch} if stage.torch else {}
        result = replace(result, checkpoint=stage, versions={**result.versions, **versions})
        return _against(result, *findings)


def _alone_folder(node: Node) -> str:
    return f"alone.{node.name}"


def _better(first: Judged, second: Judged) -> Judged:
    """The better of two tries, rate by rate; the second try's trouble stays."""
    if not second.sound or not first.rates or not second.rates:
        return replace(second, rates=first.rates)
    one, other = first.rates[0], second.rates[0]
    best = NodeRates(one.node, _more(one.read_gbs, other.read_gbs), _more(one.write_gbs, other.write_gbs))
    return replace(first, rates=(best,))


def _more(one: float | None, other: float | None) -> float | None:
    return max((value for value in (one, other) if value is not None), default=None)


def _against(result: FilesystemResult, *findings: Finding) -> FilesystemResult:
    return replace(result, findings=(*result.findings, *findings))

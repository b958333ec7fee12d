"""The burn-in of identical nodes: idle, alone, together, and in pairs if something is slow."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

from rackwright.boundary import printable
from rackwright.burnin.alone import measure_alone, run_gemm
from rackwright.burnin.chase import Chase
from rackwright.burnin.counters import NodeState, read_counters
from rackwright.burnin.finding import Finding
from rackwright.burnin.floors import Floor, floor_for, judge_floor
from rackwright.burnin.measurement import Measurement
from rackwright.burnin.measuring import Measurer
from rackwright.burnin.on_each import no_nvidia
from rackwright.burnin.pair_stage import measure_pairs, pair_floor
from rackwright.burnin.per_node import PerNode, measure_each, measure_loopback, out_of_scope
from rackwright.burnin.ports import no_ports
from rackwright.burnin.profiles import Plan
from rackwright.burnin.proof import judge_counters
from rackwright.burnin.rails import rails_of
from rackwright.burnin.readiness import not_ready
from rackwright.burnin.readings import Reading, reading_of
from rackwright.burnin.report import SkuGroup
from rackwright.burnin.scopes import measure_scopes
from rackwright.burnin.soak import Load, Soak, Soaking
from rackwright.burnin.store import previous
from rackwright.errors import BurninError, ConnectionFailed, WorkloadError
from rackwright.health.run import health
from rackwright.model.cluster import Cluster, Node
from rackwright.model.interfaces import RunsDcgm
from rackwright.model.ranges import fold
from rackwright.ssh import RootShell
from rackwright.ssh.side_by_side import side_by_side
from rackwright.status import Status

ANSWERS_AT_ONCE = 64

Keep = Callable[[SkuGroup], object]


class GroupRun:
    """One group, its plan, and its engine."""

    def __init__(
        self, cluster: Cluster, plan: Plan, measurer: Measurer, members: tuple[Node, ...], shell: RootShell
    ) -> None:
        self._cluster = cluster
        self._plan = plan
        self._measurer = measurer
        self._manager = measurer.manager
        self._shell = shell
        self._members = members
        self._all = members
        self._nodes = tuple(node.name for node in members)

    def run(self, *, force_pairs: bool, keep: Keep) -> SkuGroup:
        """Measure and judge; UNKNOWN if the workload manager or the head does not answer."""
        engine = self._measurer.engine
        group = SkuGroup(
            sku=self._members[0].sku.name,
            engine=engine.name,
            nodes=self._nodes,
            ranks=len(self._nodes) * engine.ranks_per_node(len(self._nodes)),
            floor=self._floor(),
            findings=(),
        )
        try:
            return self._measured(group, force_pairs=force_pairs, keep=keep)
        except (ConnectionFailed, BurninError, WorkloadError) as error:
            return replace(group, findings=(Finding(Status.UNKNOWN, error.message),))

    def _measured(self, group: SkuGroup, *, force_pairs: bool, keep: Keep) -> SkuGroup:
        versions = {self._manager.name.lower(): self._manager.version()}
        group = replace(group, versions=versions)
        if group.ranks < 2:
            return _against(
                group, Status.UNKNOWN, "one rank alone cannot reduce: burn-in needs two nodes or two cores"
            )
        if absent := self._absent() or not_ready(self._manager, group.nodes):
            shown = "; ".join(f"{node}: {state}" for node, state in sorted(absent.items()))
            why = f"{len(absent)} of {len(group.nodes)} nodes are not ready, nothing ran: {shown}"
            return _against(group, Status.UNKNOWN, why)
        group = self._alone(group)
        if not self._members or (len(self._members) == 1 and len(self._all) > 1):
            left = fold(self._nodes) or "none"
            why = f"the collectives did not run: only {left} of {len(self._all)} nodes are sound alone"
            return _against(group, Status.UNKNOWN, why)
        if self._plan.soak_hours is not None:
            group = self._soaked(group, self._plan.soak_hours, keep)
        else:
            group = self._together(group, force_pairs=force_pairs)
        for measured in group.measurements:
            versions |= measured.table.versions if measured.table is not None else {}
        versions.setdefault("kernel", self._kernel())
        return self._compared(replace(group, versions=versions))

    def _alone(self, group: SkuGroup) -> SkuGroup:
        """Test each node alone; nodes that fail are left out of the later stages."""
        done = measure_alone(self._manager, self._cluster, self._members, self._plan, self._measurer.progress)
        group = replace(
            group,
            findings=(*group.findings, *done.findings),
            gemm=done.gemm,
            copies=done.copies,
            ports=done.ports,
            latencies=done.latencies,
        )
        engine = self._measurer.engine
        if (why := out_of_scope(engine, self._members)) is not None:
            if len(self._members) < 2:
                return group
            return _against(group, Status.OUT_OF_SCOPE, f"nodes alone: {why}")
        floor = floor_for(self._cluster, self._members[0].sku, 1, whole=False)
        each = measure_each(self._measurer, self._nodes, self._plan.alone_sizes, floor)
        findings = list(each.findings)
        if each.left_out:
            findings.append(Finding(Status.UNKNOWN, f"the collectives ran without {fold(each.left_out)}"))
            self._members = tuple(node for node in self._members if node.name not in each.left_out)
            self._nodes = tuple(node.name for node in self._members)
        loop = PerNode()
        if self._plan.loopback and no_ports(self._cluster, self._all[0]) is None and self._nodes:
            loop = measure_loopback(self._measurer, self._nodes, self._plan.alone_sizes)
        return replace(
            group,
            findings=(*group.findings, *findings, *loop.findings),
            per_node=each.figures,
            loopback=loop.figures,
            left_out=each.left_out,
            ranks=len(self._nodes) * engine.ranks_per_node(len(self._nodes)),
            floor=self._floor() if self._members else None,
        )

    def _together(self, group: SkuGroup, *, force_pairs: bool) -> SkuGroup:
        plan = self._plan
        group = self._by_scope(group)
        measurements, against = self._proven()
        group = replace(group, measurements=measurements, findings=(*group.findings, *against))
        under = judge_floor(group.row, group.floor)
        group = replace(group, findings=(*group.findings, *((under,) if under is not None else ())))
        floor = pair_floor(self._cluster, self._members)
        if force_pairs:
            figures, found = measure_pairs(self._measurer, self._nodes, plan.smallest, plan.largest, floor)
            group = replace(group, pairs=figures, triage=found)
        missed = group.scopes_failed or (under is not None and under.status is Status.FAIL)
        if missed and len(self._nodes) > 1:
            chase = Chase(self._measurer, self._cluster, self._members, self._shell)
            chased = chase.run(plan.smallest, plan.largest, floor)
            group = replace(group, chased=chased, findings=(*group.findings, *chased.findings))
        return group

    def _proven(self) -> tuple[tuple[Measurement, ...], list[Finding]]:
        """Run the collectives over all nodes, and check that the first one used the declared RDMA devices."""
        plan, factor = self._plan, self._cluster.ssh.time_factor
        rails = {node.name: rails_of(self._cluster, node) for node in self._members}
        counted = len(self._nodes) > 1 and any(rails.values()) and self._measurer.engine.uses_devices
        before = read_counters(self._shell, self._nodes, factor) if counted else {}
        after: dict[str, NodeState] = {}
        measurements = []
        for collective in plan.collectives:
            measurements.append(self._measurer.measure(collective, self._nodes, plan.smallest, plan.largest))
            if counted and not after:
                after = read_counters(self._shell, self._nodes, factor)
        table = measurements[0].table
        if not counted or table is None or table.largest is None:
            return tuple(measurements), []
        return tuple(measurements), judge_counters(before, after, rails, table.largest.size)

    def _by_scope(self, group: SkuGroup) -> SkuGroup:
        """Measure each unit, and each rail of it, if there are several units."""
        if not self._plan.scopes:
            return group
        found = measure_scopes(self._measurer, self._cluster, self._members, self._plan)
        return replace(group, scopes=found.figures, findings=(*group.findings, *found.findings))

    def _soaked(self, group: SkuGroup, hours: float, keep: Keep) -> SkuGroup:
        settings, plan = self._cluster.burnin, self._plan
        first = self._members[0]
        products = (
            no_nvidia(first) is None
            and not first.mig
            and all(node.offers(RunsDcgm) is not None for node in self._members)
        )

        def kept(soak: Soak) -> None:
            keep(_against(replace(group, soak=soak), Status.UNKNOWN, "the soak is still running"))

        load = Load(
            all_reduce=lambda: self._measurer.measure("all_reduce", self._nodes, plan.largest, plan.largest),
            gemm=(
                lambda: run_gemm(
                    self._manager, settings, self._members, plan.gemm_seconds, self._measurer.progress
                )
            )
            if products
            else None,
            read=self._reading,
            floor=group.floor,
            keep=kept,
        )
        soaking = Soaking(load, hours, time)
        soak, findings = soaking.run()
        last = (soaking.last,) if soaking.last is not None else ()
        return replace(group, soak=soak, measurements=last, findings=(*group.findings, *findings))

    def _reading(self) -> Reading:
        return reading_of(health(self._cluster, limit=fold(self._nodes), fast=True, shell=self._shell))

    def _floor(self) -> Floor | None:
        return floor_for(self._cluster, self._members[0].sku, len(self._members))

    def _absent(self) -> dict[str, str]:
        """Nodes that do not answer; the workload manager takes minutes to notice a dead node."""
        with side_by_side(ANSWERS_AT_ONCE) as executor:
            problems = executor.map(self._silence, self._nodes)
            return {node: why for node, why in zip(self._nodes, problems, strict=True) if why is not None}

    def _silence(self, node: str) -> str | None:
        try:
            result = self._shell.run(node, "true", timeout=30)
        except ConnectionFailed as error:
            return error.message
        return None if result.exit_status == 0 else f"`true` exited {result.exit_status} there"

    def _kernel(self) -> str:
        result = self._shell.run(self._nodes[0], "uname -r", timeout=30)
        return printable(result.stdout.strip(), 80) if result.exit_status == 0 else "unknown"

    def _compared(self, group: SkuGroup) -> SkuGroup:
        row = group.row
        if row is None:
            return group
        found = previous(
            self._cluster.name, engine=group.engine, nodes=group.nodes, size=row.size, busbw_gbs=row.busbw_gbs
        )
        return replace(group, previous=found)


def _against(group: SkuGroup, status: Status, text: str) -> SkuGroup:
    return replace(group, findings=(*group.findings, Finding(status, text)))

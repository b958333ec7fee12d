"""Tests every node alone before the fabric: an all-reduce over its GPUs (or ranks), on all nodes in parallel.

There is one job per node, because nccl-tests over many communicators (NCCL_TESTS_SPLIT) prints one mean for all of
them. A node that fails here is left out of the later stages: one bad node would slow every collective.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from rackwright.burnin.engines import Engine
from rackwright.burnin.finding import Finding
from rackwright.burnin.floors import Floor, judge_floor
from rackwright.burnin.measuring import Measurer, trouble_of
from rackwright.burnin.readiness import not_ready
from rackwright.burnin.table import Row
from rackwright.model.cluster import Node
from rackwright.ssh.side_by_side import side_by_side
from rackwright.status import Status

NODES_AT_ONCE = 32
"""Jobs that the workload manager starts in parallel; a thousand nodes are about thirty turns of half a minute."""
FLEET_FRACTION = {"nccl-tests": 0.95, "ray-nccl": 0.95, "mpi": 0.5, "ray-gloo": 0.5}
"""Of the median of all nodes, where no floor is known. 5 % is the handbook's bound of node against fleet; ranks on
CPUs share cores with all that runs there, so that only half is far from the others."""
ENOUGH_TO_COMPARE = 3
"""Nodes; if two differ, either may be the bad one."""


@dataclass(frozen=True)
class NodeFigure:
    """The result of a node alone; None if its run gave no sound figure."""

    node: str
    busbw_gbs: float | None
    size: int | None = None
    problem: str | None = None


@dataclass(frozen=True)
class PerNode:
    """The stage as a whole."""

    figures: tuple[NodeFigure, ...] = ()
    findings: tuple[Finding, ...] = ()
    left_out: tuple[str, ...] = ()
    """Nodes that failed or gave no figure."""
    floor: Floor | None = None


def out_of_scope(engine: Engine, members: tuple[Node, ...]) -> str | None:
    """Why no node can be measured alone, or None."""
    first = members[0]
    if len(members) < 2:
        return "there is only one node, so the collectives measure it"
    if first.mig:
        return f"the GPUs are divided by MIG ({', '.join(first.mig)}): instances do not reach each other over NVLink"
    if engine.ranks_per_node(1) < 2:
        return "one rank alone cannot reduce"
    return None


def measure_each(
    measurer: Measurer,
    nodes: tuple[str, ...],
    sizes: tuple[int, int],
    floor: Floor | None,
    stage: str = "alone",
) -> PerNode:
    """All-reduce within each node from the smaller to the larger of `sizes`; a slow node gets a second try.

    The better result counts: a broken node is slow twice, a busy one is not. Wrong values get no second try.
    """
    fraction = FLEET_FRACTION[measurer.engine.name]
    with side_by_side(NODES_AT_ONCE) as executor:
        try:
            measured = list(executor.map(lambda node: _one(measurer, node, sizes), nodes))
            doubted = judge_nodes(measured, floor, fraction, stage).left_out
            for number, (figure, _, failed) in enumerate(measured):
                if figure.node in doubted and not failed:
                    again = _one(measurer, figure.node, sizes)
                    if again[2] or (again[0].busbw_gbs or 0.0) > (figure.busbw_gbs or 0.0):
                        measured[number] = again
        except BaseException:
            measurer.manager.cancel()
            raise
    return judge_nodes(measured, floor, fraction, stage)


LOOPBACK = {"NCCL_P2P_DISABLE": "1", "NCCL_SHM_DISABLE": "1"}
"""GPUs of a node reach each other neither by NVLink nor by shared memory, so that their data goes through the network ports
and back (NVIDIA's NCCL documentation, environment variables; azurehpc-health-checks runs it likewise; read 2026-11-25)."""


def measure_loopback(measurer: Measurer, nodes: tuple[str, ...], sizes: tuple[int, int]) -> PerNode:
    """All-reduce within each node through its ports; no floor is published for most SKUs, so nodes are compared."""
    return measure_each(measurer.with_environment(LOOPBACK), nodes, sizes, None, "alone through their ports")


def _one(measurer: Measurer, node: str, sizes: tuple[int, int]) -> tuple[NodeFigure, Row | None, bool]:
    """Its figure, the row it comes from, and whether values were wrong."""
    if busy := not_ready(measurer.manager, (node,)):
        return NodeFigure(node, None, None, f"is {busy[node]}"), None, False
    measured = measurer.measure("all_reduce", (node,), *sizes)
    failed = any(found.status is Status.FAIL for found in measured.findings)
    problem = trouble_of(measured)
    row = measured.table.largest if measured.table is not None else None
    if problem is not None or row is None:
        return NodeFigure(node, None, None, problem or "no figure"), None, failed
    return NodeFigure(node, row.busbw_gbs, row.size), row, False


def judge_nodes(
    measured: Sequence[tuple[NodeFigure, Row | None, bool]],
    floor: Floor | None,
    fraction: float,
    stage: str = "alone",
) -> PerNode:
    """Nodes below the floor, or, without a floor, far below the others, by name."""
    findings: list[Finding] = []
    left_out: list[str] = []
    known = [figure.busbw_gbs for figure, _, _ in measured if figure.busbw_gbs is not None]
    middle = median(known) if len(known) >= ENOUGH_TO_COMPARE else None
    for figure, row, failed in measured:
        if row is None or figure.busbw_gbs is None:
            status = Status.FAIL if failed else Status.UNKNOWN
            findings.append(Finding(status, f"{figure.node} {stage}: {figure.problem}"))
            left_out.append(figure.node)
        elif floor is not None:
            under = judge_floor(row, floor)
            if under is not None:
                findings.append(Finding(under.status, f"{figure.node} {stage}: {under.text}"))
                left_out += [figure.node] if under.status is Status.FAIL else []
        elif middle is not None and figure.busbw_gbs < fraction * middle:
            share = f"{100 * (1 - figure.busbw_gbs / middle):.0f} % below the median of {middle:g} GB/s"
            below = f"{figure.node} {stage}: {figure.busbw_gbs:g} GB/s at {row.size} B, {share}"
            findings.append(
                Finding(Status.FAIL, f"{below} (most {100 * (1 - fraction):.0f} %; no floor is declared)")
            )
            left_out.append(figure.node)
    if floor is None and middle is None and known:
        few = "no floor for one node is declared, and fewer than three nodes have figures to compare"
        findings.append(Finding(Status.OUT_OF_SCOPE, f"nodes {stage}: measured, not judged: {few}"))
    figures = tuple(figure for figure, _, _ in measured)
    return PerNode(figures, tuple(findings), tuple(left_out), floor)

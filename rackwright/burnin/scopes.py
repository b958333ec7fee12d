"""Collectives within each unit of nodes below the same leaves, and on each rail of it, before all nodes together.

A fault here does not involve the spines. Judged by the floor of that number of nodes; if none is known, a unit is compared
with others of its size. Single rails have no published floor and are compared in the same way.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import Literal

from rackwright.burnin.finding import Finding
from rackwright.burnin.floors import floor_for, judge_floor
from rackwright.burnin.measuring import Measurer, trouble_of
from rackwright.burnin.per_node import ENOUGH_TO_COMPARE, FLEET_FRACTION
from rackwright.burnin.profiles import Plan
from rackwright.burnin.rails import units_of
from rackwright.burnin.table import Row
from rackwright.model.cluster import Cluster, Node
from rackwright.model.ranges import fold
from rackwright.ssh.side_by_side import side_by_side
from rackwright.status import Status

UNITS_AT_ONCE = 16
BY_SCOPE = ("all_reduce", "alltoall")
Scope = Literal["unit", "leaf"]


@dataclass(frozen=True)
class ScopeFigure:
    """The result of a unit."""

    scope: Scope
    """`unit`: its nodes together; `leaf`: each rail of it by itself, the figure that of the slowest."""
    collective: str
    nodes: tuple[str, ...]
    busbw_gbs: float | None
    size: int | None = None
    problem: str | None = None
    failed: bool = False


@dataclass(frozen=True)
class Scopes:
    """The stage as a whole."""

    figures: tuple[ScopeFigure, ...] = ()
    findings: tuple[Finding, ...] = ()


def measure_scopes(measurer: Measurer, cluster: Cluster, members: tuple[Node, ...], plan: Plan) -> Scopes:
    """Measure every unit of at least two nodes in parallel; a single unit equals all nodes and is skipped."""
    units = [unit for unit in units_of(cluster, members) if len(unit) > 1]
    if len(units) < 2:
        return Scopes()
    figures: list[ScopeFigure] = []
    findings: list[Finding] = []
    collectives = [name for name in BY_SCOPE if name in measurer.engine.collectives]
    scopes: list[tuple[Scope, Measurer]] = [("unit", measurer)]
    per_node = measurer.engine.ranks_per_node(2)
    if measurer.engine.name == "nccl-tests" and per_node > 1:
        # the ranks with one number on every node: a communicator of each rail
        scopes.append(("leaf", measurer.with_environment({"NCCL_TESTS_SPLIT": f"MOD {per_node}"})))
    for scope, chosen in scopes:
        for collective in collectives:
            measured = _side_by_side(chosen, collective, units, plan)
            judged, against = _judged(
                measured, cluster, members[0], scope, FLEET_FRACTION[measurer.engine.name]
            )
            figures += judged
            findings += against
    return Scopes(tuple(figures), tuple(findings))


Measured = tuple[tuple[str, ...], str, Row | None, str | None, bool]


def _side_by_side(
    measurer: Measurer, collective: str, units: Sequence[tuple[str, ...]], plan: Plan
) -> list[Measured]:
    def one(unit: tuple[str, ...]) -> Measured:
        measured = measurer.measure(collective, unit, *plan.alone_sizes)
        row = measured.table.largest if measured.table is not None else None
        failed = any(found.status is Status.FAIL for found in measured.findings)
        return unit, collective, row, trouble_of(measured), failed

    with side_by_side(UNITS_AT_ONCE) as executor:
        try:
            return list(executor.map(one, units))
        except BaseException:
            measurer.manager.cancel()
            raise


def _judged(
    measured: Sequence[Measured], cluster: Cluster, first: Node, scope: Scope, fraction: float
) -> tuple[list[ScopeFigure], list[Finding]]:
    figures: list[ScopeFigure] = []
    findings: list[Finding] = []
    for unit, collective, row, problem, failed in measured:
        what = f"{collective} {'within' if scope == 'unit' else 'on the rails of'} {fold(unit)}"
        if row is None or problem is not None:
            status = Status.FAIL if failed else Status.UNKNOWN
            findings.append(Finding(status, f"{what}: {problem or 'no figure'}"))
            figures.append(ScopeFigure(scope, collective, unit, None, problem=problem, failed=failed))
            continue
        figure = ScopeFigure(scope, collective, unit, row.busbw_gbs, row.size)
        floor = None
        if scope == "unit" and collective == "all_reduce":
            floor = floor_for(cluster, first.sku, len(unit), whole=False)
        peers = [
            one.busbw_gbs
            for nodes, _, one, trouble, _ in measured
            if one and not trouble and len(nodes) == len(unit)
        ]
        against = judge_floor(row, floor) if floor is not None else None
        if floor is None and len(peers) >= ENOUGH_TO_COMPARE and row.busbw_gbs < fraction * median(peers):
            said = f"{row.busbw_gbs:g} GB/s at {row.size} B, the median of {len(peers)} units is {median(peers):g}"
            against = Finding(Status.FAIL, said)
        if against is not None:
            findings.append(Finding(against.status, f"{what}: {against.text}"))
            figure = replace(figure, failed=against.status is Status.FAIL)
        figures.append(figure)
    return figures, findings

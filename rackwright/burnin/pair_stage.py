"""Runs the pairs: rounds of disjoint pairs in parallel, judged by the floor for their message size."""

from __future__ import annotations

from rackwright.burnin.floors import Floor, floor_for
from rackwright.burnin.measuring import Measurer, trouble_of
from rackwright.burnin.pairs import Pair, PairFigure, Triage, pair_rounds, triage
from rackwright.burnin.readiness import not_ready
from rackwright.model.cluster import Cluster, Node
from rackwright.model.sku import NvSwitch
from rackwright.ssh.side_by_side import side_by_side

PAIRS_AT_ONCE = 16
PAIR_LARGEST = 2**30
"""Bytes; nine tenths of the full bandwidth (floors.SHARE_AT_LEAST_SIZE), and small enough for many pairs in minutes."""


def measure_pairs(
    measurer: Measurer, nodes: tuple[str, ...], smallest: int, largest: int, floor: Floor | None
) -> tuple[tuple[PairFigure, ...], Triage]:
    """All-reduce between pairs of nodes; every node meets two others."""
    most = min(largest, PAIR_LARGEST)
    sizes = max(min(smallest, most), most // 8), most
    figures: list[PairFigure] = []
    with side_by_side(PAIRS_AT_ONCE) as executor:
        try:
            for pairs in pair_rounds(nodes):
                figures += executor.map(lambda pair: _pair(measurer, pair, sizes), pairs)
        except BaseException:
            measurer.manager.cancel()
            raise
    return tuple(figures), triage(figures, floor.at(most) if floor is not None else None)


def pair_floor(cluster: Cluster, members: tuple[Node, ...]) -> Floor | None:
    """The floor of two nodes; None where the nodes of a pair may be in different NVLink domains."""
    gpus = members[0].sku.gpus
    racks = {node.rack for node in members}
    if gpus is not None and gpus.nvswitch is NvSwitch.RACK and (len(racks) > 1 or None in racks):
        return None
    return floor_for(cluster, members[0].sku, 2, whole=False)


def _pair(measurer: Measurer, pair: Pair, sizes: tuple[int, int]) -> PairFigure:
    if busy := not_ready(measurer.manager, pair):
        return PairFigure(pair, None, ", ".join(f"{node} is {state}" for node, state in busy.items()))
    measured = measurer.measure("all_reduce", pair, *sizes)
    problem = trouble_of(measured)
    row = measured.table.largest if measured.table is not None else None
    if problem is not None or row is None:
        return PairFigure(pair, None, problem or "no figure")
    return PairFigure(pair, row.busbw_gbs)

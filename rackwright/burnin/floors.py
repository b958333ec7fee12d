"""The lowest bus bandwidth that passes, for a number of nodes and a message size. Pure.

Published floors are points over the number of nodes. Between two of them the floor runs straight in log2 of the
nodes; beyond the last it falls over two doublings to 85 % of what a ring over the ports can do, and follows that.
One node and two are different fabrics: nothing is interpolated between them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from rackwright.burnin.finding import Finding
from rackwright.burnin.table import Row
from rackwright.model.cluster import Cluster
from rackwright.model.sku import NvSwitch, Sku
from rackwright.model.types import NetworkPurpose
from rackwright.status import Status

GIB = 2**30
FULL_SIZE = 8 * GIB
"""Bytes. Published floors are of 16 GiB; from 8 GiB on the bandwidth no longer rises (AWS p5, Nebius H100: 1 %)."""
LEAST_SIZE = GIB
SHARE_AT_LEAST_SIZE = 0.9
"""Of the full bandwidth, at 1 GiB between two nodes: 0.91 (AWS p5, 437 of 479 GB/s), 0.92 (GCP A4, 623 of 680), 0.95
(Nebius H100, 446 of 467), 0.97 (GCP A3 Mega, 182 of 189); public runs, read 2026-11-23. More nodes lose more (GB200,
CoreWeave: 0.83 of 72 GPUs, 0.54 of 1440), so that it holds for two at most."""
CEILING_SHARE = 0.85
RAMP = 4
"""Beyond the last published number of nodes the floor reaches the arithmetic at this many times it."""


@dataclass(frozen=True)
class Floor:
    """The lowest bus bandwidth that passes."""

    busbw_gbs: float
    source: str
    """Its source; for an interpolated floor, the two points."""
    size: int = 0
    """Bytes from which it applies; a smaller message may reach less."""
    nodes: int = 0
    """The number of nodes it is for."""

    def at(self, size: int) -> float | None:
        """The floor at a smaller message size, GB/s; None if unknown."""
        if size >= self.size:
            return self.busbw_gbs
        if self.nodes > 2 or size < LEAST_SIZE or self.size != FULL_SIZE:
            return None
        lost = (1 - SHARE_AT_LEAST_SIZE) * math.log2(FULL_SIZE / size) / math.log2(FULL_SIZE / LEAST_SIZE)
        return round(self.busbw_gbs * (1 - lost), 1)


def floor_for(cluster: Cluster, sku: Sku, nodes: int, *, whole: bool = True) -> Floor | None:
    """The site's floor for this many nodes, else the SKU's, else None.

    `floor_busbw_gbs` is the site's floor of all nodes together (`whole`); it does not apply to a subset.
    """
    settings = cluster.burnin
    source = settings.floor_source or f"{cluster.path.name}, without a source"
    unset = FULL_SIZE if settings.on_gpus(sku) else 0
    size = min(settings.max_bytes or unset, FULL_SIZE)
    if whole and settings.floor_busbw_gbs is not None:
        return Floor(settings.floor_busbw_gbs, source, size, nodes)
    measured = _of_site(settings.floors_by_nodes, nodes)
    if measured is not None:
        return Floor(measured, f"{source}, `floors_by_nodes`", size, nodes)
    return sku_floor(sku, nodes)


def sku_floor(sku: Sku, nodes: int) -> Floor | None:
    """The floor of a node model: published, interpolated or arithmetic; its source has the kind."""
    found = _of_sku(sku, nodes)
    return Floor(round(found[0], 1), found[1], FULL_SIZE, nodes) if found is not None else None


def ceiling(sku: Sku, nodes: int) -> float | None:
    """Bandwidth of a ring over the fabric ports of this many nodes, GB/s; None if the ports are not the limit."""
    ports = sum(nic.speed_gbps for nic in sku.nics if nic.purpose is NetworkPurpose.FABRIC) / 8
    if sku.gpus is None or sku.gpus.nvswitch is NvSwitch.RACK or not ports or nodes < 2:
        return None
    gpus = nodes * sku.gpus.count
    return ports * nodes / (nodes - 1) * (gpus - 1) / gpus


def judge_floor(row: Row | None, floor: Floor | None) -> Finding | None:
    """The finding for a row below the floor for its size; None if it reaches the floor."""
    if row is None:
        return None  # the missing table is a separate finding
    reached = f"{row.busbw_gbs:g} GB/s at {row.size} B"
    if floor is None:
        return Finding(Status.UNKNOWN, f"{reached}, but no floor is declared for this many nodes")
    if row.busbw_gbs >= floor.busbw_gbs:
        return None
    least = floor.at(row.size)
    if least is None:
        return Finding(
            Status.UNKNOWN, f"{reached}; the floor of {floor.busbw_gbs:g} GB/s applies from {floor.size} B"
        )
    if row.busbw_gbs >= least:
        return None
    of_size = (
        f" for this size, {floor.busbw_gbs:g} from {floor.size} B on" if least != floor.busbw_gbs else ""
    )
    return Finding(Status.FAIL, f"{reached} is below the floor of {least:g} GB/s{of_size} ({floor.source})")


def _of_site(points: Mapping[int, float], nodes: int) -> float | None:
    if nodes in points:
        return points[nodes]
    several = sorted(number for number in points if number > 1)
    if nodes == 1 or not several or nodes > several[-1]:
        return None
    if nodes < several[0]:
        return points[several[0]]
    below = max(number for number in several if number < nodes)
    above = min(number for number in several if number > nodes)
    return round(_between(nodes, (below, points[below]), (above, points[above])), 1)


def _of_sku(sku: Sku, nodes: int) -> tuple[float, str] | None:
    rows = sorted(sku.busbw_floors, key=lambda row: row.nodes_min)
    for row in rows:
        if row.nodes_min <= nodes and (row.nodes_max is None or nodes <= row.nodes_max):
            return row.busbw_gbs, f"{row.source.text}, read {row.source.read.isoformat()}"
    several = [row for row in rows if (row.nodes_max or row.nodes_min) > 1]
    if nodes == 1 or not several:
        return None
    above = next((row for row in several if row.nodes_min > nodes), None)
    below = next(
        (row for row in reversed(several) if row.nodes_max is not None and row.nodes_max < nodes), None
    )
    if below is None or below.nodes_max is None:
        # fewer nodes are never slower than the fewest that are published
        return (
            (above.busbw_gbs, f"as of {above.nodes_min} nodes: {above.source.text}")
            if above is not None
            else None
        )
    last, lowest = below.nodes_max, below.busbw_gbs
    if above is not None:
        value = _between(nodes, (last, lowest), (above.nodes_min, above.busbw_gbs))
        return value, f"between {lowest:g} at {last} and {above.busbw_gbs:g} at {above.nodes_min} nodes"
    return _beyond(sku, nodes, last, lowest)


def _beyond(sku: Sku, nodes: int, last: int, lowest: float) -> tuple[float, str] | None:
    end, here = ceiling(sku, RAMP * last), ceiling(sku, nodes)
    if end is None or here is None:
        return None
    share = f"{CEILING_SHARE:.0%} of what the ports can do"
    if nodes >= RAMP * last:
        return min(lowest, CEILING_SHARE * here), f"arithmetic: {share} at {nodes} nodes, {here:.0f} GB/s"
    target = min(lowest, CEILING_SHARE * end)
    value = _between(nodes, (last, lowest), (RAMP * last, target))
    return (
        value,
        f"between {lowest:g} at {last} nodes (published) and {target:.0f} at {RAMP * last} ({share})",
    )


def _between(nodes: int, low: tuple[int, float], high: tuple[int, float]) -> float:
    share = math.log2(nodes / low[0]) / math.log2(high[0] / low[0])
    return low[1] + share * (high[1] - low[1])

"""The stages of a burn-in by profile."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from rackwright.burnin.engines import Engine
from rackwright.model.settings import Burnin
from rackwright.model.sku import Metric, Sku

Profile = Literal["quick", "acceptance", "soak"]
GEMM_SECONDS = 60
"""Default of the cluster file: clocks and temperatures settle after about half a minute."""
SIZES = 8
"""From the largest message down to this part of it: four sizes, where the bandwidth is level."""
QUICK_LARGEST = 8 * 2**30
"""Bytes; published floors hold from here on (floors.FULL_SIZE)."""


@dataclass(frozen=True)
class Plan:
    """The stages of a run."""

    profile: Profile | None
    collectives: tuple[str, ...]
    smallest: int
    """Bytes."""
    largest: int
    alone_sizes: tuple[int, int]
    """Bytes, smallest and largest, for a node alone."""
    diag_level: int
    """0: no diagnostic."""
    gemm_seconds: int
    """0: no matrix product."""
    copies: bool = False
    """Between the host and each GPU."""
    ports: bool = False
    """ib_write_bw and ib_read_lat between leaf peers and across the spines."""
    scopes: bool = False
    """Collectives within each unit and on each rail of it, before those over all nodes."""
    loopback: bool = False
    """All-reduce within each node through its network ports."""
    soak_hours: float | None = None


def plan_of(settings: Burnin, engine: Engine, sku: Sku, profile: Profile | None, hours: float | None) -> Plan:
    """The requested profile, else the cluster file's."""
    profile = profile or settings.profile
    largest = settings.max_bytes or engine.largest_default
    smallest = min(settings.min_bytes, largest)
    large = min(largest, max(QUICK_LARGEST, smallest))
    large_from = max(smallest, large // SIZES)
    level = sku.floor(Metric.DCGM_LEVEL)
    if profile == "quick":
        return Plan(profile, engine.collectives[:1], large_from, large, (large_from, large), 0, 0)
    diag, gemm = settings.diag_level, settings.gemm_seconds
    if profile == "acceptance":
        diag = diag or int(level.floor if level is not None else 0)
    if profile is not None:
        gemm = gemm or GEMM_SECONDS
    return Plan(
        profile,
        engine.collectives[:1] if profile == "soak" else engine.collectives,
        large_from if profile == "soak" else smallest,
        large if profile == "soak" else largest,
        (large_from, large),
        diag if profile != "soak" else settings.diag_level,
        gemm,
        copies=profile == "acceptance",
        ports=profile == "acceptance",
        scopes=profile == "acceptance",
        loopback=profile == "acceptance" and engine.name == "nccl-tests",
        soak_hours=(hours or settings.soak_hours) if profile == "soak" else None,
    )

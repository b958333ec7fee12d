"""A generous upper bound of the hardware: a figure above it was not measured.

A broken or compromised node may print any bandwidth. A figure far above its links is UNKNOWN and never a pass. A figure
below that looks like a measurement, so figures are only as trustworthy as the node.
"""

from __future__ import annotations

from rackwright.model.sku import Metric, Sku
from rackwright.model.types import NetworkPurpose

GENEROUS = 3.0
"""Times the line rate: reductions in the switches (NVLS, SHARP) show up to twice the wire as bus bandwidth (NVIDIA
nccl-tests, doc/PERFORMANCE.md, read 2026-11-23), and figures of links are rounded and sold in both directions."""
BUSBW_MAX_GBS = 10_000.0
"""Of a node whose links are not known: five times the NVLink of a B200 (1,800 GB/s)."""
COPY_MAX_GBS = 2_000.0
"""Of a GPU whose PCIe is not known; NVLink-C2C of a GB200 has 900 GB/s in both directions."""
GEMM_MAX_TFLOPS = 50_000.0
"""Of one GPU without a floor; a B300 is sold with 15,000 at four bits."""
_PCIE_LANE_GBS = {3: 1.0, 4: 2.0, 5: 4.0, 6: 8.0, 7: 16.0}
"""One direction, by generation."""


def busbw_max(sku: Sku) -> float:
    """GB/s of bus bandwidth, for any number of nodes."""
    ports = sum(nic.speed_gbps for nic in sku.nics if nic.purpose is NetworkPurpose.FABRIC) / 8
    if sku.gpus is None or sku.gpus.nvlink_gbs is None:
        return BUSBW_MAX_GBS
    floors = max((row.busbw_gbs for row in sku.busbw_floors), default=0.0)
    if not sku.gpus.nvlink_gbs and not _pcie(sku) and not floors:
        return BUSBW_MAX_GBS  # what is between GPUs of one node is not known, and the ports may be far slower
    links = max(
        2 * ports, sku.gpus.nvlink_gbs, _pcie(sku), floors
    )  # two nodes share a ring: twice the ports of one
    return GENEROUS * links if links else BUSBW_MAX_GBS


def copy_max(sku: Sku) -> float:
    """GB/s between the host and one GPU, one direction."""
    floors = (sku.floor(metric) for metric in (Metric.H2D_GBS, Metric.D2H_GBS))
    known = max(_pcie(sku), *(floor.floor if floor is not None else 0.0 for floor in floors))
    return GENEROUS * known if known else COPY_MAX_GBS


def gemm_max(sku_floor: float | None) -> float:
    """TFLOPS of one GPU; the generator's format may be narrower than the floor's."""
    return 4 * GENEROUS * sku_floor if sku_floor is not None else GEMM_MAX_TFLOPS


def impossible(what: str, value: float, most: float, unit: str) -> str:
    """The message about an impossible figure."""
    return f"{what} reads {value:g} {unit}, more than the {most:g} that this hardware can reach: the figure is not used"


def _pcie(sku: Sku) -> float:
    gpus = sku.gpus
    if gpus is None or gpus.pcie_generation is None or gpus.pcie_width is None:
        return 0.0
    return _PCIE_LANE_GBS[gpus.pcie_generation] * gpus.pcie_width

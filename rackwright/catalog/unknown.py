"""Lists the fields that a catalogue entry leaves unknown."""

from __future__ import annotations

from collections.abc import Iterator

from rackwright.model.sku import Gpus, Metric, Sku
from rackwright.model.types import NetworkPurpose

_GPU_FIELDS = (
    "architecture",
    "compute_capability",
    "pci_ids",
    "pcie_generation",
    "nvlinks",
    "nvswitch",
    "power_watts",
    "minimum_driver",
)
_LINK_FIELDS = ("nvlink_generation", "nvlink_gbs", "nvlink_domain")


def unknown_fields(sku: Sku) -> tuple[str, ...]:
    """Paths of what is not known about a node model, in the order of the file."""
    return tuple(_host(sku)) + (tuple(_gpus(sku, sku.gpus)) if sku.gpus is not None else ())


def _host(sku: Sku) -> Iterator[str]:
    for field in ("cpu_model", "numa_nodes", "power_watts"):
        if getattr(sku, field) is None:
            yield field
    if sku.gpus is not None and sku.sockets > 1 and not sku.gpu_sockets:
        yield "gpu_sockets"
    if not sku.nics:
        yield "nics"
    if not sku.nvme:
        yield "nvme"
    fabric = [nic for nic in sku.nics if nic.purpose is NetworkPurpose.FABRIC]
    if sku.gpus is not None and fabric and not any(nic.near_gpus for nic in fabric):
        yield "nics.near_gpus"


def _gpus(sku: Sku, gpus: Gpus) -> Iterator[str]:
    fields = _GPU_FIELDS if gpus.nvlinks == 0 else (*_GPU_FIELDS, *_LINK_FIELDS)
    for field in fields:
        if getattr(gpus, field) in (None, ()):
            yield f"gpus.{field}"
    if not sku.busbw_floors:
        yield "busbw_floors"
    for metric in Metric:
        if sku.floor(metric) is None:
            yield f"floors.{metric}"

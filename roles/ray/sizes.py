"""CPUs, memory, GPUs and custom resources of a node, as Ray is started with them. Pure functions."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from rackwright.model.types import Platform

if TYPE_CHECKING:
    from rackwright.model.cluster import LabSize, Node
    from rackwright.roles.ray.options import RayOptions

_MIB = 1024**2
_LEAST_MIB = 80
"""ray_constants.OBJECT_STORE_MINIMUM_MEMORY_BYTES of Ray 2.60 is 75 MiB."""


def _lab(node: Node) -> LabSize | None:
    return None if node.platform is Platform.BARE_METAL else node.lab


def reserved_mib(node: Node, options: RayOptions) -> int:
    """For the system and Ray's own processes."""
    return min(options.reserved_memory_mib, node.memory_mib // 4)


def object_store_mib(node: Node, options: RayOptions) -> int:
    """Shared memory for objects; its pages count as the node's memory only once they are used."""
    if options.object_store_mib is not None:
        return options.object_store_mib
    return max(_LEAST_MIB, int(node.memory_mib * options.object_store_fraction))


def memory_mib(node: Node, options: RayOptions) -> int:
    """What tasks may ask for."""
    return node.memory_mib - object_store_mib(node, options) - reserved_mib(node, options)


def cpus(node: Node, options: RayOptions) -> int:
    """Of tasks; one for each hardware thread."""
    if options.is_head(node):
        return options.head_cpus
    lab = _lab(node)
    installed = node.sku.cpus if lab is None else lab.cpus
    return installed - options.core_spec_count * node.sku.threads_per_core


def gpus(node: Node) -> int:
    """Whole GPUs."""
    return 0 if node.sku.gpus is None else node.sku.gpus.count


def custom(node: Node, options: RayOptions) -> dict[str, float]:
    """`sku:NAME`, `rack:NAME` and the site's own, which only workers have."""
    if options.is_head(node):
        return {}
    rack = {} if node.rack is None else {f"rack:{node.rack}": 1.0}
    return {f"sku:{node.sku.name}": 1.0, **rack, **options.resources}


def labels(node: Node) -> dict[str, str]:
    """For label selectors."""
    return {"sku": node.sku.name, **({} if node.rack is None else {"rack": node.rack})}


def expected(node: Node, options: RayOptions) -> dict[str, float]:
    """What `ray.nodes()` reports of the node, without `node:` names; memory in bytes."""
    everything = {
        "CPU": float(cpus(node, options)),
        "GPU": float(gpus(node)),
        "memory": float(memory_mib(node, options) * _MIB),
        "object_store_memory": float(object_store_mib(node, options) * _MIB),
        **custom(node, options),
    }
    return {name: value for name, value in everything.items() if value}


def problems(node: Node, options: RayOptions) -> Iterable[tuple[str, str, str | None]]:
    """Nothing left for tasks."""
    if memory_mib(node, options) < 1:
        yield (
            "object_store_fraction" if options.object_store_mib is None else "object_store_mib",
            f"{node.name} has {node.memory_mib} MiB, so no memory is left for tasks.",
            "make the object store smaller",
        )
    if not options.is_head(node) and cpus(node, options) < 1:
        yield "core_spec_count", f"{node.name} has {node.sku.cpus} CPUs, so none is left for tasks.", None

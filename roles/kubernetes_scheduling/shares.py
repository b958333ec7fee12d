"""What each account's queue is guaranteed of each kind of node, for Kueue. Pure functions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from rackwright.kubernetes.gpu_names import GPU
from rackwright.roles.kubernetes_scheduling.tenants import gpus_of, workers

if TYPE_CHECKING:
    from rackwright.model.cluster import Cluster

Amounts = dict[str, int]
"""By resource: cpu in CPUs, memory in MiB, others counted."""


def capacity(cluster: Cluster) -> dict[str, Amounts]:
    """All nodes of each SKU that take pods of users, as the SKU has them: the kubelet's reserve is part of it."""
    found: dict[str, Amounts] = {}
    for node in workers(cluster):
        here = {"cpu": node.sku.cpus, "memory": node.sku.memory_mib, **gpus_of(node)}
        total = found.setdefault(node.sku.name, {})
        for resource, amount in here.items():
            total[resource] = total.get(resource, 0) + amount
    return found


def gpu_types(cluster: Cluster) -> dict[str, str]:
    """Type of the GPUs by SKU, as `gres/gpu:h100` names it."""
    return {node.sku.name: node.sku.gpus.gres_type for node in workers(cluster) if node.sku.gpus is not None}


def guaranteed(limits: Mapping[str, int], cluster: Cluster) -> dict[str, Amounts]:
    """An account's limits by SKU. CPUs and memory that are not limited go with the GPUs, in the node's proportion.

    A number of GPUs without a type belongs to the only SKU with GPUs, else to each by its part of all GPUs, rounded down.
    """
    there = capacity(cluster)
    types = gpu_types(cluster)
    found: dict[str, Amounts] = {}
    for sku, total in there.items():
        gpus = _gpus(limits, sku, there, types)
        part = gpus / total[GPU] if total.get(GPU) else 0.0
        found[sku] = {
            "cpu": _share(limits.get("cpu"), "cpu", sku, there, part),
            "memory": _share(limits.get("mem"), "memory", sku, there, part),
            **{
                resource: gpus if resource == GPU else 0
                for resource in total
                if resource not in ("cpu", "memory")
            },
        }
    return found


def _gpus(limits: Mapping[str, int], sku: str, there: Mapping[str, Amounts], types: Mapping[str, str]) -> int:
    if sku not in types:
        return 0
    alike = [other for other, kind in types.items() if kind == types[sku]]
    typed = limits.get(f"gres/gpu:{types[sku]}")
    if typed is not None:
        return _split(typed, GPU, sku, {other: there[other] for other in alike})
    return _split(limits.get("gres/gpu", 0), GPU, sku, {other: there[other] for other in types})


def _share(limit: int | None, resource: str, sku: str, there: Mapping[str, Amounts], part: float) -> int:
    if limit is None:
        return int(there[sku][resource] * part)
    return _split(limit, resource, sku, there)


def _split(amount: int, resource: str, sku: str, there: Mapping[str, Amounts]) -> int:
    """The SKU's part of an amount, by its part of what there is."""
    everything = sum(total.get(resource, 0) for total in there.values())
    return amount * there[sku].get(resource, 0) // everything if everything else 0


def minus(total: Mapping[str, Amounts], parts: list[dict[str, Amounts]]) -> dict[str, Amounts]:
    """What is left of a total; never less than nothing."""
    return {
        sku: {
            resource: max(0, amount - sum(part.get(sku, {}).get(resource, 0) for part in parts))
            for resource, amount in amounts.items()
        }
        for sku, amounts in total.items()
    }

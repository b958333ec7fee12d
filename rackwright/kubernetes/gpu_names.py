"""NVIDIA's names for GPUs in Kubernetes: resources of the device plugin, labels of GPU Feature Discovery (GFD).

Sources: NVIDIA k8s-device-plugin v0.20.0, docs/gpu-feature-discovery/README.md, internal/lm/resource.go and
internal/lm/mig-strategy.go; resource names: internal/rm (read 2026-11-28).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal

from rackwright.model.sku import Architecture, Gpus

GPU = "nvidia.com/gpu"
PRESENT = "nvidia.com/gpu.present"
"""GPU Operator's own name for nodes with GPUs; its DaemonSets select them by it."""
MigStrategy = Literal["none", "single", "mixed"]
_FAMILIES = {Architecture.ADA: "ada-lovelace"}
OWNED = re.compile(
    r"nvidia\.com/(gpu\.(present|product|count|memory|family|compute\.major|compute\.minor|replicas|sharing-strategy)"
    r"|mig\.(strategy|capable)|mig-[A-Za-z0-9.]+\.(product|count|replicas|sharing-strategy))"
)
"""Labels that follow from the declaration; others of GFD (driver, CUDA, slices, engines) do not."""


def product(model: str) -> str:
    """A product name as a label value, as GFD writes it: `NVIDIA H100 80GB HBM3` becomes NVIDIA-H100-80GB-HBM3."""
    return "-".join(re.sub(r"[^A-Za-z0-9\-_. ]", "", model).split())


def mig_resource(profile: str) -> str:
    """The resource of a MIG profile with the strategy `mixed`: `1g.10gb+me` is nvidia.com/mig-1g.10gb.me."""
    return f"nvidia.com/mig-{profile.replace('+', '.')}"


def resources(gpus: Gpus, mig: Mapping[str, int], strategy: MigStrategy, slices: int = 1) -> dict[str, int]:
    """What a node offers to pods. `mig`: instances of each profile on every GPU; `slices`: pods that share a GPU."""
    if not mig:
        return {GPU: gpus.count * slices}
    if strategy == "single":
        return {GPU: gpus.count * sum(mig.values())}
    return {mig_resource(profile): gpus.count * count for profile, count in sorted(mig.items())}


def labels(
    gpus: Gpus, mig: Mapping[str, int], strategy: MigStrategy, name: str, slices: int = 1
) -> dict[str, str]:
    """GFD's labels, as far as they follow from the declaration. `name`: value of gpu.product for whole GPUs."""
    found = {
        PRESENT: "true",
        f"{GPU}.product": f"{name}-SHARED" if slices > 1 and not mig else name,
        f"{GPU}.count": str(gpus.count),
        f"{GPU}.memory": str(gpus.memory_mib),
        f"{GPU}.replicas": "0" if mig else str(slices),
        f"{GPU}.sharing-strategy": "time-slicing" if slices > 1 and not mig else "none",
        "nvidia.com/mig.capable": str(gpus.mig is not None).lower(),
    }
    if gpus.architecture is not None:
        found[f"{GPU}.family"] = _FAMILIES.get(gpus.architecture, gpus.architecture.value)
    if gpus.compute_capability is not None:
        major, _, minor = gpus.compute_capability.partition(".")
        found |= {f"{GPU}.compute.major": major, f"{GPU}.compute.minor": minor}
    if strategy != "none":
        found["nvidia.com/mig.strategy"] = strategy
    return found | _mig_labels(gpus, mig, strategy, name, found)


def _mig_labels(
    gpus: Gpus, mig: Mapping[str, int], strategy: MigStrategy, name: str, whole: dict[str, str]
) -> dict[str, str]:
    if not mig or strategy == "none":
        return {}
    if strategy == "single":
        del whole[f"{GPU}.memory"]  # of an instance then, which the tables do not have in MiB
        (profile, count), *_ = mig.items()
        return _instances(GPU, name, profile, gpus.count * count)
    found: dict[str, str] = {}
    for profile, count in sorted(mig.items()):
        found |= _instances(mig_resource(profile), name, profile, gpus.count * count)
    return found


def _instances(resource: str, name: str, profile: str, count: int) -> dict[str, str]:
    return {
        f"{resource}.product": f"{name}-MIG-{product(profile)}",
        f"{resource}.count": str(count),
        f"{resource}.replicas": "1",
        f"{resource}.sharing-strategy": "none",
    }

"""Kinds of nodes with a slurmd pod: equal hardware, one set of pods, and how pods find them."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from rackwright.model.types import Workload
from rackwright.roles.slurm_on_kubernetes.places import places, slurm_of, slurmd_nodes

if TYPE_CHECKING:
    from rackwright.model.cluster import Cluster, Node
    from rackwright.roles.slurm_on_kubernetes.options import SlurmOnKubernetesOptions
    from rackwright.workload.slurm.pods import PodNode

HOSTNAME = "kubernetes.io/hostname"
WORKLOAD, SKU = "rackwright.dev/workload", "rackwright.dev/sku"
"""Labels that the kubernetes role gives to nodes."""


@dataclass(frozen=True)
class Kind:
    """Nodes of one SKU."""

    name: str
    """Lower case, as names of objects are."""
    nodes: tuple[Node, ...]
    offers: PodNode
    placement: dict[str, Any]
    """Fields of a pod's spec that select these nodes."""
    resources: dict[str, Any]
    """Of slurmd's container."""

    def within(self, names: Collection[str]) -> bool:
        """Whether all its nodes are among these."""
        return all(node.name in names for node in self.nodes)


def split(options: SlurmOnKubernetesOptions, cluster: Cluster) -> Iterator[tuple[str, Kind]]:
    """Partitions that have some nodes of a kind and not others."""
    for name, part in slurm_of(cluster).pod_partitions(cluster, places(options, cluster)).items():
        for kind in kinds(options, cluster):
            inside = [node.name in part.nodes for node in kind.nodes]
            if any(inside) and not all(inside):
                yield name, kind


def kinds(options: SlurmOnKubernetesOptions, cluster: Cluster) -> tuple[Kind, ...]:
    """In file order."""
    known = slurm_of(cluster).pod_nodes(cluster, places(options, cluster))
    found: dict[tuple[str, Workload | None, PodNode], list[Node]] = {}
    for node in slurmd_nodes(cluster):
        hardware = replace(known[node.name], partition=None)  # a partition moves no pod
        found.setdefault((node.sku.name, node.workload, hardware), []).append(node)
    made: list[Kind] = []
    for (sku, workload, offers), nodes in found.items():
        base = re.sub(r"[^a-z0-9]+", "-", sku.lower()).strip("-")
        same = sum(one.name == base or one.name.startswith(f"{base}-x") for one in made)
        made.append(
            Kind(
                name=f"{base}-x{same + 1}" if same else base,
                nodes=tuple(nodes),
                offers=offers,
                placement=_placement(nodes, by_label=workload is not None and _alone(found, sku, workload)),
                resources=resources(options, offers),
            )
        )
    return tuple(made)


def _alone(
    found: dict[tuple[str, Workload | None, PodNode], list[Node]], sku: str, workload: Workload
) -> bool:
    """Whether no other nodes with slurmd have the same SKU and workload."""
    return sum(key[:2] == (sku, workload) for key in found) == 1


def _placement(nodes: list[Node], *, by_label: bool) -> dict[str, Any]:
    if by_label:
        workload = str(Workload.SLURM_ON_KUBERNETES)
        return {"nodeSelector": {WORKLOAD: workload, SKU: nodes[0].sku.name}}
    named = {"key": HOSTNAME, "operator": "In", "values": [node.name for node in nodes]}
    terms = {"nodeSelectorTerms": [{"matchExpressions": [named]}]}
    needed = {"requiredDuringSchedulingIgnoredDuringExecution": terms}
    return {"affinity": {"nodeAffinity": needed}}


def resources(options: SlurmOnKubernetesOptions, offers: PodNode) -> dict[str, Any]:
    """All GPUs, and the memory that Slurm gives to jobs; CPUs are left to Slurm, whose pods are the only large ones."""
    requests = {"cpu": "100m"}
    if options.reserve:
        requests["memory"] = f"{offers.memory_mib + options.memory_headroom_mib}Mi"
    if options.gpu_resource is None or not offers.gpus:
        return {"requests": requests}
    whole = {options.gpu_resource: str(offers.gpus)}
    return {"requests": {**requests, **whole}, "limits": whole}

"""Mistakes of the gpu_stack_k8s role that only show against the resolved cluster."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from rackwright.documents.nearest import suggest
from rackwright.kubernetes.versions import minor_of
from rackwright.lock.stack_options import StackOptions
from rackwright.model.interfaces import RunsKubernetes
from rackwright.model.kubernetes_offers import AppliesAddons, NamesRuntimes
from rackwright.model.platforms import Capability, why_node_lacks
from rackwright.roles.gpu_stack_k8s.objects import RUNTIME

if TYPE_CHECKING:
    from rackwright.model.cluster import Cluster, Node
    from rackwright.roles.gpu_stack_k8s.options import GpuStackK8sOptions

Problem = tuple[str, str, str | None]
_DRA_FROM = 34
"""resource.k8s.io/v1 is stable since Kubernetes 1.34 (its changelog)."""
CHARTS = {"gpu-operator": "gpu_operator", "dra": "dra_driver_nvidia_gpu"}
"""The chart that a mode needs, by its name in the catalogue of add-ons."""


def problems_of(options: GpuStackK8sOptions, cluster: Cluster) -> Iterator[Problem]:
    """Every mistake."""
    runs = cluster.primary.offers(RunsKubernetes)
    nodes = options.gpu_nodes(cluster)
    if runs is None:
        yield "", "The role gpu_stack_k8s needs Kubernetes on the primary head.", "add the role kubernetes"
        return
    if not nodes:
        yield "", "No node of the role gpu_stack_k8s has NVIDIA GPUs.", "remove the section"
    if options.mode == "dra" and minor_of(runs.version) < _DRA_FROM:
        yield (
            "mode",
            f"Kubernetes {runs.version} does not have the DRA driver's API.",
            "use `mode: device-plugin`, or Kubernetes 1.34 or later",
        )
    yield from _charts(options, cluster)
    yield from _mig(options, nodes)
    yield from _names(options, cluster)
    for node in nodes:
        if why_node_lacks(node, Capability.GPU) is None and not node.simulates_gpus:
            found = list(_host(node))
            yield from found
            if found:
                return


def _charts(options: GpuStackK8sOptions, cluster: Cluster) -> Iterator[Problem]:
    addons = cluster.primary.offers(AppliesAddons)
    applied = set(addons.applied) if addons is not None else set()
    needed = [("mode", CHARTS[options.mode])] if options.mode in CHARTS else []
    if options.network_operator is not None:
        needed.append(("network_operator", "network_operator"))
    for path, chart in needed:
        if chart not in applied:
            yield (
                path,
                f"Nothing applies the add-on {chart}, which this needs.",
                f"add it to the role kubernetes_addons: `addons: {{{chart}: {{}}}}`",
            )


def _mig(options: GpuStackK8sOptions, nodes: tuple[Node, ...]) -> Iterator[Problem]:
    for node in nodes:
        if not node.mig:
            continue
        if options.mig_strategy == "none":
            yield (
                "mig_strategy",
                f"{node.name} has MIG instances, which the strategy `none` gives to no pod.",
                "use `mixed`",
            )
            return
        if options.mig_strategy == "single" and len(node.mig) > 1:
            yield (
                "mig_strategy",
                f"{node.name} has {len(node.mig)} MIG profiles; the strategy `single` takes one.",
                "use `mixed`",
            )
            return


def _names(options: GpuStackK8sOptions, cluster: Cluster) -> Iterator[Problem]:
    known = {node.sku.name for node in options.gpu_nodes(cluster)}
    for sku in options.products:
        if sku not in known:
            yield (
                f"products.{sku}",
                f"No GPU node of Kubernetes has the SKU {sku}.",
                suggest(sku, known, what="their SKUs"),
            )


def _host(node: Node) -> Iterator[Problem]:
    """The host's own stack, which no operator brings."""
    parts = {
        part for given in node.options.values() if isinstance(given, StackOptions) for part in given.parts
    }
    for part, role in (("driver", "nvidia_driver"), ("container_toolkit", "nvidia_container_toolkit")):
        if part not in parts:
            yield (
                "",
                f"{node.name} has GPUs in Kubernetes, and no role installs its {part.replace('_', ' ')}.",
                f"add the role {role}; Kubernetes installs none here",
            )
            return
    named = {
        name for given in node.options.values() if isinstance(given, NamesRuntimes) for name in given.runtimes
    }
    if RUNTIME not in named:
        yield (
            "",
            f"containerd on {node.name} has no runtime {RUNTIME}, with which the device plugin reaches the driver.",
            "set `nvidia_runtime: /usr/bin/nvidia-container-runtime` in the role containerd",
        )

"""Checks of the gpu_stack_k8s role."""

from __future__ import annotations

from typing import Any

from rackwright.claims.check import Check, CheckContext, Undetermined, fail
from rackwright.claims.kubernetes import listed, objects_as_declared, some
from rackwright.kubernetes.gpu_names import GPU
from rackwright.model.cluster import Node
from rackwright.roles.gpu_stack_k8s import node_labels
from rackwright.roles.gpu_stack_k8s.objects import PLUGIN, objects
from rackwright.roles.gpu_stack_k8s.options import GpuStackK8sOptions

_CONTEXT = CheckContext[GpuStackK8sOptions]
_SECOND_STACK = ("nvidia-driver-daemonset", "nvidia-container-toolkit-daemonset", "mofed-")
"""Names of the DaemonSets with which NVIDIA's operators install a driver, the toolkit and DOCA-OFED: assets/ of
NVIDIA/gpu-operator, manifests/state-ofed-driver of Mellanox/network-operator (read 2026-11-28)."""
_GFD_DIFFERS = frozenset({f"{GPU}.product", "nvidia.com/gpu.present"})
"""Of GFD: NVML's name, which a SKU may have differently; the other is the operator's."""


def _objects(context: _CONTEXT) -> str:
    wanted = objects(context.options, context.cluster)
    if not wanted:
        return "this mode has no objects here"
    return objects_as_declared(context, "gpu_stack_k8s", wanted)


def _nodes(context: _CONTEXT) -> tuple[list[tuple[Node, dict[str, Any]]], list[str]]:
    """Each GPU node with its object, and the names of those without one."""
    there = {item.get("metadata", {}).get("name"): item for item in listed(context, "nodes")}
    declared = context.options.gpu_nodes(context.cluster)
    if not declared:
        raise Undetermined("no node is declared to have GPUs")
    found = [(node, there[node.name]) for node in declared if node.name in there]
    return found, [f"{node.name} is not in the cluster" for node in declared if node.name not in there]


def _labels(context: _CONTEXT) -> str:
    """As declared; with GPU Operator GFD found the values on the node."""
    found, wrong = _nodes(context)
    by_operator = context.options.mode == "gpu-operator"
    for node, item in found:
        there = item["metadata"].get("labels") or {}
        wanted = node_labels.declared(context.options, context.cluster, node)
        for key, value in wanted.items():
            if by_operator and key in _GFD_DIFFERS and node.sku.name not in context.options.products:
                continue
            if there.get(key) != value:
                wrong.append(f"{node.name}: {key} is {there.get(key, 'missing')}, not {value}")
    if wrong:
        fail(some(wrong))
    return f"{len(found)} nodes"


def _allocatable(context: _CONTEXT) -> str:
    """What the kubelet counts, which is what the plugin found on the node."""
    found, wrong = _nodes(context)
    for node, item in found:
        there = item.get("status", {}).get("allocatable")
        if not isinstance(there, dict):
            raise Undetermined(f"the object of {node.name} has no allocatable resources")
        wanted = context.options.gpu_resources(node)
        counted = {
            key: value for key, value in there.items() if key == GPU or key.startswith("nvidia.com/mig-")
        }
        for key in sorted({*wanted, *counted}):
            number, expected = str(counted.get(key, "0")), str(wanted.get(key, 0))
            if number != expected:
                wrong.append(f"{node.name} offers {number} {key}, not {expected}")
    if wrong:
        fail(some(wrong))
    return ", ".join(_sums(context))


def _sums(context: _CONTEXT) -> list[str]:
    sums: dict[str, int] = {}
    for node in context.options.gpu_nodes(context.cluster):
        for key, count in context.options.gpu_resources(node).items():
            sums[key] = sums.get(key, 0) + count
    return [f"{count} {key}" for key, count in sorted(sums.items())]


def _plugin(context: _CONTEXT) -> str:
    sets = [item for item in listed(context, "daemonsets --all-namespaces") if _name(item) == PLUGIN]
    if not sets:
        fail(f"the DaemonSet {PLUGIN} does not exist")
    status = sets[0].get("status", {})
    ready, wanted = status.get("numberReady"), status.get("desiredNumberScheduled")
    declared = len(context.options.gpu_nodes(context.cluster))
    if ready is None or wanted is None:
        raise Undetermined(f"the DaemonSet {PLUGIN} has no status")
    if wanted != declared:
        fail(f"the device plugin is scheduled on {wanted} nodes; {declared} have GPUs")
    if ready != wanted:
        fail(f"the device plugin is ready on {ready} of {wanted} nodes")
    return f"ready on {ready} nodes"


def _one_stack(context: _CONTEXT) -> str:
    found = [_name(item) for item in listed(context, "daemonsets --all-namespaces")]
    second = sorted(name for name in found if name.startswith(_SECOND_STACK))
    if second:
        fail(
            f"{', '.join(second)} installs what the host has already; its chart's values are not those of this role"
        )
    return f"none of {len(found)} DaemonSets installs a driver"


def _name(item: dict[str, Any]) -> str:
    return str(item.get("metadata", {}).get("name", ""))


def _counts(node: Node, options: GpuStackK8sOptions) -> bool:
    return options.mode != "dra"  # claims are made against ResourceSlices, which no node object has


def _has_plugin(node: Node, options: GpuStackK8sOptions) -> bool:
    return options.mode == "device-plugin"


CHECKS = (
    Check("the objects for GPUs are as declared", _objects, scope="cluster"),
    Check("GPU labels of nodes are those of their SKUs", _labels, scope="cluster", settle_seconds=30),
    Check(
        "nodes offer the GPUs of their SKUs",
        _allocatable,
        scope="cluster",
        settle_seconds=90,
        applies=_counts,
    ),
    Check(
        "the device plugin runs on every GPU node",
        _plugin,
        scope="cluster",
        settle_seconds=90,
        applies=_has_plugin,
    ),
    Check("Kubernetes installs no second driver", _one_stack, scope="cluster"),
)

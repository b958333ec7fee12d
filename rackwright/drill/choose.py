"""Chooses the node that a drill breaks."""

from __future__ import annotations

from rackwright.model.cluster import Cluster, Node
from rackwright.model.types import NodeRole


def head(cluster: Cluster) -> Node:
    """The primary head."""
    return cluster.primary


def worker(cluster: Cluster) -> Node | None:
    """The first worker."""
    return _nth(_workers(cluster), 0)


def other_worker(cluster: Cluster) -> Node | None:
    """The second worker."""
    return _nth(_workers(cluster), 1)


def gpu_worker(cluster: Cluster) -> Node | None:
    """The first worker with simulated GPUs."""
    return _nth([node for node in _workers(cluster) if node.simulates_gpus], 0)


def other_gpu_worker(cluster: Cluster) -> Node | None:
    """The second worker with simulated GPUs."""
    return _nth([node for node in _workers(cluster) if node.simulates_gpus], 1)


def _workers(cluster: Cluster) -> list[Node]:
    return [node for node in cluster.holding(NodeRole.WORKER) if not node.primary]


def _nth(nodes: list[Node], index: int) -> Node | None:
    return nodes[index] if len(nodes) > index else None

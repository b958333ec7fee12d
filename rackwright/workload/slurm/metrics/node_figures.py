"""Metrics of nodes and partitions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from prometheus_client.metrics_core import Metric

from rackwright.workload.slurm.metrics.families import gauge
from rackwright.workload.slurm.metrics.nodes import STATES, Node


def node_figures(nodes: Sequence[Node]) -> Iterator[Metric]:
    """What is known of each node, and how many there are in each state."""
    yield gauge(
        "slurm_nodes",
        "Nodes in each state; one that is down and drained counts in both.",
        ("state",),
        _by_state(nodes),
    )
    yield gauge(
        "slurm_partition_nodes",
        "Nodes of a partition in each state.",
        ("partition", "state"),
        (
            ((partition, *state), count)
            for partition in partitions(nodes)
            for state, count in _by_state([node for node in nodes if partition in node.partitions])
        ),
    )
    yield gauge(
        "slurm_node_state",
        "1 for each state that a node is in.",
        ("node", "state"),
        (((node.name, state), 1) for node in nodes for state in sorted(node.states)),
    )
    yield gauge(
        "slurm_node_drain_since_timestamp_seconds",
        "When a node was taken out of service, why and by whom.",
        ("node", "reason", "user"),
        (
            ((node.name, node.reason, node.user), node.since)
            for node in nodes
            if node.out and node.since is not None
        ),
    )
    for name, about, field in _EACH:
        yield gauge(name, about, ("node",), (((node.name,), getattr(node, field)) for node in nodes))


_EACH = (
    ("slurm_node_cpus", "CPUs of a node.", "cpus"),
    ("slurm_node_cpus_allocated", "CPUs of a node that jobs have.", "cpus_allocated"),
    ("slurm_node_gpus", "GPUs of a node, or MIG instances.", "gpus"),
    ("slurm_node_gpus_allocated", "GPUs of a node, or MIG instances, that jobs have.", "gpus_allocated"),
)


def partitions(nodes: Sequence[Node]) -> list[str]:
    """Partitions that have a node."""
    return sorted({partition for node in nodes for partition in node.partitions})


def _by_state(nodes: Sequence[Node]) -> list[tuple[tuple[str], int]]:
    count = Counter(state for node in nodes for state in node.states)
    return [((state,), count[state]) for state in sorted({*STATES, *count})]

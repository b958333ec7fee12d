"""A look at nodes that were in sync when they were last evaluated, from this very process.

A worker process costs as much to start as 150 such nodes cost to look at, and a check that runs all
day finds most of them as they were. So the few are looked at here, by threads; whoever has changed
gets a worker, which connects again.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator, Sequence

from rackwright.factcache.cache import FactCache
from rackwright.factcache.fetch import open_node
from rackwright.model.cluster import Cluster, Node
from rackwright.plan.node_plan import NodePlan

QUICK_CHECK_MAX = 1000
"""Beyond this, workers that use all cores are quicker."""
PARALLEL = 64
"""Nodes talked to at a time, unless told otherwise."""


def quick_check(
    cluster: Cluster, nodes: Sequence[Node], cache: FactCache, parallel: int | None
) -> Iterator[NodePlan | None]:
    """The plan of each node that is as it was or out of reach, None for one to be evaluated; as they come.

    Nothing is waited for when the caller stops listening (Ctrl-C): the threads are daemons.
    """
    waiting: queue.SimpleQueue[Node] = queue.SimpleQueue()
    found: queue.SimpleQueue[NodePlan | None] = queue.SimpleQueue()
    for node in nodes:
        waiting.put(node)

    def look() -> None:
        while True:
            try:
                node = waiting.get_nowait()
            except queue.Empty:
                return
            found.put(_look_at(cluster, node, cache))

    for _ in range(min(parallel or PARALLEL, len(nodes))):
        threading.Thread(target=look, daemon=True).start()
    for _ in nodes:
        yield found.get()


def _look_at(cluster: Cluster, node: Node, cache: FactCache) -> NodePlan | None:
    try:
        opened = open_node(cluster, node, cache)
    except Exception:  # noqa: BLE001 - whatever it is, the worker that takes over will tell
        return None
    if isinstance(opened, NodePlan):
        return opened
    if opened.client is not None:
        opened.client.close()
    return None

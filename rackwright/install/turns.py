"""Limits how many machines are installed at the same time, in all and per rack."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Condition, Event

from rackwright.install.limits import Interrupted
from rackwright.model.cluster import Cluster, Node


class Turns:
    """Lets nodes start, up to a limit in all and one per rack; none once the run must stop.

    A node on hold gives its turn to others, since an operator may take long, and gets the next free one.
    """

    def __init__(self, cluster: Cluster, at_once: int, rack_percent: int) -> None:
        sizes = Counter(node.rack for node in cluster.nodes)
        self._room = {
            rack: max(1, size * rack_percent // 100) for rack, size in sizes.items() if rack is not None
        }
        self._at_once = at_once
        self._having: set[str] = set()
        self._waiting_again: dict[str, Node] = {}
        """Nodes that were on hold and may continue; they come first."""
        self._condition = Condition()
        self.stopped = Event()

    def stop(self) -> None:
        """Start no further node, and stop following those in progress."""
        self.stopped.set()
        with self._condition:
            self._condition.notify_all()

    @contextmanager
    def turn(self, node: Node) -> Iterator[None]:
        """Wait until the node may start, and keep its slot until it has finished; Interrupted if it may not."""
        with self._condition:
            self._condition.wait_for(lambda: self.stopped.is_set() or self._may_begin(node))
            if self.stopped.is_set():
                raise Interrupted(f"{node.name} was not started.")
            self._take(node)
        try:
            yield
        finally:
            self.give(node)

    def give(self, node: Node) -> None:
        """Give the node's turn to others, if it has one."""
        with self._condition:
            self._waiting_again.pop(node.name, None)
            if node.name in self._having:
                self._having.remove(node.name)
                if node.rack is not None:
                    self._room[node.rack] += 1
            self._condition.notify_all()

    def take_again(self, node: Node) -> bool:
        """Whether a node that gave up its turn has one again; does not wait."""
        with self._condition:
            if node.name in self._having:
                return True
            self._waiting_again.pop(node.name, None)
            if self._is_free(node):
                self._take(node)
                return True
            self._waiting_again[node.name] = node
            return False

    def _take(self, node: Node) -> None:
        self._having.add(node.name)
        if node.rack is not None:
            self._room[node.rack] -= 1

    def _is_free(self, node: Node) -> bool:
        return len(self._having) < self._at_once and (node.rack is None or self._room[node.rack] > 0)

    def _may_begin(self, node: Node) -> bool:
        return self._is_free(node) and not any(map(self._is_free, self._waiting_again.values()))

"""Which alerts a wave of a run silences: those of its nodes, and of racks and leaves that it takes down completely."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from rackwright.alerts.fabric import LEAF
from rackwright.alerts.nodes import RACK, REBOOTED
from rackwright.alerts.slurm_nodes import MANAGER, UNAVAILABLE
from rackwright.model.cluster import Cluster, Node
from rackwright.model.interfaces import RunsWorkloadManager
from rackwright.model.types import NodeRole, WorkloadManager

Matchers = tuple[str, ...]
"""Of one silence, as amtool takes them."""
NODES_AT_ONCE = 1000
"""Of one silence: an argument has 128 KiB at most (execve(2))."""
_SHARE = 10
"""From a tenth of the workers on, the wave explains why so large a share is unavailable."""
_NOT_PLAIN = re.compile(r"[^A-Za-z0-9_-]")


def of_nodes(names: Sequence[str], *further: str) -> Iterator[Matchers]:
    """Every alert that names one of these nodes."""
    for start in range(0, len(names), NODES_AT_ONCE):
        yield (_one_of("node", names[start : start + NODES_AT_ONCE]), *further)


def of_boots(names: Sequence[str]) -> Iterator[Matchers]:
    """That these nodes have booted."""
    return of_nodes(names, f'alertname="{REBOOTED}"')


def of_wave(cluster: Cluster, names: Sequence[str]) -> Iterator[Matchers]:
    """All that follows from these nodes being down.

    A rack of which one node stays up keeps its alert: a silenced alert still suppresses others, among them that node's.
    """
    yield from of_nodes(names)
    taken = set(names)
    places = {
        ("rack", RACK): [(node.rack, node.name) for node in cluster.nodes],
        ("leaf", LEAF): [(node.switch, node.name) for node in cluster.nodes],
    }
    for (label, alert), placed in places.items():
        if whole := _whole(placed, taken):
            yield (f'alertname="{alert}"', _one_of(label, whole))
    counted = [node for node in cluster.holding(NodeRole.WORKER) if _manager(node) is MANAGER]
    workers = {node.name for node in counted}
    if len(workers & taken) * _SHARE >= len(workers) > 0:
        yield (f'alertname="{UNAVAILABLE}"',)


def _manager(node: Node) -> WorkloadManager | None:
    role = node.offers(RunsWorkloadManager)
    return role.workload_manager if role is not None else None


def _whole(placed: Iterable[tuple[str | None, str]], taken: set[str]) -> list[str]:
    """Places of which every node is taken."""
    members: defaultdict[str, set[str]] = defaultdict(set)
    for place, name in placed:
        if place is not None:
            members[place].add(name)
    return sorted(place for place, names in members.items() if names <= taken)


def _one_of(label: str, values: Iterable[str]) -> str:
    """In brackets what means something else in a pattern: Alertmanager's two parsers read backslashes differently."""
    patterns = (_NOT_PLAIN.sub(lambda found: f"[{found[0]}]", value) for value in values)
    return f'{label}=~"{"|".join(patterns)}"'

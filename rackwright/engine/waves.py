"""Which nodes are applied together, in which order, and when to stop. Pure functions of the declaration."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rackwright.model.cluster import Node
from rackwright.model.interfaces import GoesFirst
from rackwright.model.settings import Waves
from rackwright.model.types import NodeRole


def plan_waves(nodes: Sequence[Node], policy: Waves, *, heads_alone: bool = False) -> list[tuple[str, ...]]:
    """Waves of node names: canaries first, then by the policy's order and size; nodes that others wait for come earlier.

    `heads_alone`, if nodes may reboot: each head is a separate wave, first unless the policy has an order.

    >>> # 10 workers, canary 1, size "50%": waves of 1, 5 and 4
    """
    nodes = sorted(nodes, key=lambda node: not _goes_first(node))
    if policy.order == "together" and not heads_alone:
        stages = [list(nodes)]
    else:
        heads = [node for node in nodes if node.holds(NodeRole.HEAD)]
        others = [node for node in nodes if not node.holds(NodeRole.HEAD)]
        one_by_one = [[head] for head in heads] if heads_alone else [heads]
        stages = [others, *one_by_one] if policy.order == "workers-first" else [*one_by_one, others]
    canaries = [node for node in nodes if not node.holds(NodeRole.HEAD)][: policy.canary]
    waves = [canaries] if canaries else []
    for stage in stages:
        waves += _split([node for node in stage if node not in canaries], policy.size, len(nodes))
    return [tuple(node.name for node in wave) for wave in waves if wave]


def _goes_first(node: Node) -> bool:
    """Whether services of other nodes wait for one of this node's roles."""
    return any(isinstance(given, GoesFirst) and given.goes_first(node) for given in node.options.values())


def _split(nodes: list[Node], size: int | str | None, total: int) -> list[list[Node]]:
    if size is None:
        return [nodes]
    if size in ("rack", "switch"):
        places: dict[str, list[Node]] = {}
        for node in nodes:
            places.setdefault((node.rack if size == "rack" else node.switch) or "", []).append(node)
        return list(places.values())
    step = max(1, amount(size, total))
    return [nodes[start : start + step] for start in range(0, len(nodes), step)]


def amount(size: int | str, total: int) -> int:
    """`10%` of a total, rounded down, or the number itself."""
    if isinstance(size, int):
        return size
    return total * int(size.removesuffix("%")) // 100


def must_stop(policy: Waves, outcomes: Iterable[bool]) -> str | None:
    """Why no further wave may start after these outcomes (True: the node is as declared), or None."""
    if policy.stop_after is None:
        return None
    results = list(outcomes)
    failed = results.count(False)
    if isinstance(policy.stop_after, int):
        over = failed >= policy.stop_after
    else:
        over = failed * 100 > len(results) * int(policy.stop_after.removesuffix("%"))
    if not failed or not over:
        return None
    return f"{failed} of {len(results)} nodes failed (waves.stop_after is {policy.stop_after})"

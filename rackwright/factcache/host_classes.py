"""Classes of nodes that are asked the same questions: those of one node predict those of another."""

from __future__ import annotations

from collections.abc import Iterable

from rackwright.model.cluster import Node


def host_class(node: Node) -> str:
    """What nodes have in common that are asked the same: roles, kinds of options, OS, platform and SKU."""
    parts = (*sorted(node.roles), "", *sorted(node.options), "", node.os.id, node.platform, node.sku.name)
    return "/".join(parts)


def shards(nodes: Iterable[Node]) -> list[tuple[str, tuple[Node, ...]]]:
    """The nodes by host class."""
    classes: dict[str, list[Node]] = {}
    for node in nodes:
        classes.setdefault(host_class(node), []).append(node)
    return [(name, tuple(members)) for name, members in classes.items()]

"""Sets of drives that the SKU has: `sku_disks: {data: scratch}` stands for data0, data1, ... in the SKU's slots."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from rackwright.model.cluster import Node

Problem = tuple[str, str, str | None]


def slots_of(node: Node, use: str) -> tuple[str, ...]:
    """Slots of all drives of the node's SKU that are for this use; empty where not all of them are known."""
    groups = [group for group in node.sku.nvme if group.use == use]
    return tuple(slot for group in groups for slot in group.slots) if all(g.slots for g in groups) else ()


def named(sets: Mapping[str, str], node: Node) -> dict[str, dict[str, str]]:
    """Slot of each drive by its name, by the name of its set: `data` -> {data0: 0000:05:00.0, ...}."""
    return {
        name: {f"{name}{number}": slot for number, slot in enumerate(slots_of(node, use))}
        for name, use in sets.items()
    }


def spread(parts: Sequence[str], drives: Mapping[str, Mapping[str, str]]) -> tuple[str, ...]:
    """Names of disks, arrays and sets, each set replaced by its drives."""
    return tuple(name for part in parts for name in drives.get(part, (part,)))


def missing(sets: Mapping[str, str], nodes: Iterable[Node]) -> Iterable[Problem]:
    """Sets that the SKU of a node cannot fill, once for each SKU."""
    for name, use in sets.items():
        seen: set[str] = set()
        for node in nodes:
            sku = node.sku
            if sku.name in seen or slots_of(node, use):
                continue
            seen.add(sku.name)
            count = sum(group.count for group in sku.nvme if group.use == use)
            if not count:
                uses = ", ".join(sorted({group.use for group in sku.nvme}))
                others = f"it has some for {uses}" if uses else "`on: [worker]` keeps the role to workers"
                yield (
                    f"sku_disks.{name}",
                    f"The SKU {sku.name} of {node.name} has no drives of use {use}.",
                    others,
                )
            else:
                yield (
                    f"sku_disks.{name}",
                    f"The SKU {sku.name} of {node.name} does not have the slots of its {count} drives of use {use}.",
                    "add `slots` to its `nvme`, or declare each drive under `disks` by its `serials`",
                )

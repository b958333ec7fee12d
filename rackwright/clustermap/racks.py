"""The declared nodes in their racks."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from rackwright.drawing.model import Box, Look, Rack, Room
from rackwright.model.cluster import Cluster, Node
from rackwright.model.types import NodeRole

COLUMN = 16
"""Nodes without a rack are drawn in columns of this many."""
_TAGGED = (NodeRole.HEAD, NodeRole.LOGIN, NodeRole.STORAGE)


@dataclass(frozen=True)
class Face:
    """What is shown of a node: its look, the word for it, lines for hovering, and where the page has more."""

    look: Look
    state: str = ""
    lines: tuple[str, ...] = ()
    anchor: str = ""


DECLARED = Face(Look.NEUTRAL)


@dataclass(frozen=True)
class Power:
    """The sum of what the SKUs of some nodes draw at most."""

    watts: int
    known: int
    """Nodes whose SKU has a figure."""
    nodes: int

    @property
    def text(self) -> str:
        """E.g. `maximum power 40.8 kW (2 nodes without a figure)`; empty where no SKU has one."""
        if not self.known:
            return ""
        silent = self.nodes - self.known
        rest = f" ({silent} node{'' if silent == 1 else 's'} without a figure)" if silent else ""
        return f"maximum power {watts_text(self.watts)}{rest}"


def power_of(nodes: Iterable[Node]) -> Power:
    """Of the SKUs, as the catalogue or the cluster file has it."""
    listed = [node.sku.power_watts for node in nodes]
    known = [watts for watts in listed if watts is not None]
    return Power(sum(known), len(known), len(listed))


def watts_text(watts: int) -> str:
    """E.g. `10.2 kW`, `350 W`."""
    if watts < 1000:
        return f"{watts} W"
    return f"{watts / 1000:.4g} kW" if watts < 1_000_000 else f"{watts / 1_000_000:.3g} MW"


def racks_of(cluster: Cluster) -> dict[str | None, tuple[Node, ...]]:
    """Nodes by rack, racks in the order of their names as people count; nodes without a rack last, under None."""
    names = sorted({node.rack for node in cluster.nodes if node.rack is not None}, key=_natural)
    found: dict[str | None, list[Node]] = {name: [] for name in (*names, None)}
    for node in cluster.nodes:
        found[node.rack].append(node)
    return {name: tuple(nodes) for name, nodes in found.items() if nodes}


def rooms_of(cluster: Cluster, faces: Mapping[str, Face]) -> tuple[Room, ...]:
    """Every node once; a node without a face is neutral."""
    by_rack = racks_of(cluster)
    homeless = by_rack.pop(None, ())
    racks = tuple(_rack(str(name), nodes, faces) for name, nodes in by_rack.items())
    rooms = [Room("", racks)] if racks else []
    if homeless:
        columns = [homeless[start : start + COLUMN] for start in range(0, len(homeless), COLUMN)]
        power = power_of(homeless).text
        title = f"No rack declared: {len(homeless)} node{'' if len(homeless) == 1 else 's'}"
        rooms.append(
            Room(
                f"{title}, {power}" if power else title, tuple(_rack("", column, faces) for column in columns)
            )
        )
    return tuple(rooms)


def _rack(name: str, nodes: Sequence[Node], faces: Mapping[str, Face]) -> Rack:
    boxes = tuple(_box(node, faces.get(node.name, DECLARED)) for node in nodes)
    if not name:  # one below the other, as they are listed
        return Rack("", tuple(reversed(boxes)))
    power = power_of(nodes)
    watts = f"{watts_text(power.watts)}{'+' if power.known < power.nodes else ''}" if power.known else ""
    count = f"{len(nodes)} node{'' if len(nodes) == 1 else 's'}"
    return Rack(name, boxes, f"{count}, {watts}" if watts else count, watts or count)


def _box(node: Node, face: Face) -> Box:
    watts = node.sku.power_watts
    power = f", {watts_text(watts)}" if watts is not None else ""
    unit = "" if node.position is None else f" U{node.position}"
    place = f"rack {node.rack}{unit}" if node.rack is not None else "no rack declared"
    switch = f", switch {node.switch}" if node.switch else ""
    roles = ", ".join(sorted(role.value for role in node.roles))
    about = f"{roles}{', primary' if node.primary else ''}; {node.sku.name}{power}; {place}{switch}"
    return Box(
        name=node.name,
        look=face.look,
        state=face.state,
        detail=f"{node.sku.name}{power}",
        tag=next((role.value for role in _TAGGED if role in node.roles), ""),
        unit=node.position,
        height=node.sku.rack_units or 1,
        lines=(*face.lines, about),
        anchor=face.anchor,
    )


def _natural(name: str) -> list[tuple[int, int | str]]:
    """rack2 before rack10."""
    return [(0, int(part)) if part.isdigit() else (1, part) for part in re.split(r"([0-9]+)", name)]

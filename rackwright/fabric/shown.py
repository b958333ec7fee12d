"""The declared fabric for display and as JSON."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from rackwright.fabric.identify import Found
from rackwright.model.fabric import Cable, Fabric, NodePort, SwitchPort
from rackwright.model.ranges import fold

SHOW_KIND = "rackwright.fabric"
SHOW_VERSION = 1


@dataclass(frozen=True, slots=True)
class SwitchLine:
    """One switch with what is cabled to it."""

    name: str
    level: str
    """`leaf` or `spine`."""
    rails: tuple[int, ...]
    nodes: tuple[str, ...]
    node_ports: tuple[int, ...]
    others: dict[str, tuple[int, ...]]
    """Its ports that are cabled to each other switch."""
    up: int | None = None
    """Cables that are where they are declared; None: the fabric was not asked."""

    @property
    def cables(self) -> int:
        """All its cables."""
        return len(self.node_ports) + sum(map(len, self.others.values()))


def switch_lines(fabric: Fabric, found: Found | None = None) -> tuple[SwitchLine, ...]:
    """Leaves, unit by unit, then spines."""
    of_switch: dict[str, list[Cable]] = {name: [] for name in (*fabric.leaves, *fabric.spines)}
    for cable in fabric.cables:
        for end in cable.ends:
            if isinstance(end, SwitchPort):
                of_switch[end.switch].append(cable)
    return tuple(_line(fabric, name, cables, found) for name, cables in of_switch.items())


def _line(fabric: Fabric, name: str, cables: Iterable[Cable], found: Found | None) -> SwitchLine:
    nodes: dict[str, None] = {}
    ports: list[int] = []
    others: dict[str, list[int]] = {}
    up = 0
    for cable in cables:
        near, far = cable.near, cable.far
        up += found is not None and found.partner.get(near) == far
        if isinstance(near, NodePort):
            nodes[near.node] = None
            ports.append(far.port)
        else:
            own, other = (near, far) if near.switch == name else (far, near)
            others.setdefault(other.switch, []).append(own.port)
    level = "leaf" if name in fabric.leaves else "spine"
    rails, cabled = fabric.rails_of(name), {other: tuple(own) for other, own in others.items()}
    return SwitchLine(name, level, rails, tuple(nodes), tuple(ports), cabled, None if found is None else up)


def ranges(numbers: Iterable[int]) -> str:
    """`1-31,33`; `-` for none."""
    return fold(str(number) for number in sorted(set(numbers))).replace("[", "").replace("]", "") or "-"


def show_json(cluster: str, fabrics: Iterable[tuple[Fabric, Found | None]]) -> dict[str, Any]:
    """The versioned document that `rackwright fabric show --json` prints."""
    return {
        "kind": SHOW_KIND,
        "version": SHOW_VERSION,
        "cluster": cluster,
        "fabrics": [_fabric_json(fabric, found) for fabric, found in fabrics],
    }


def _fabric_json(fabric: Fabric, found: Found | None) -> dict[str, Any]:
    return {
        "network": fabric.network,
        "kind": fabric.kind.value,
        "rails": fabric.rails,
        "leaves": list(fabric.leaves),
        "spines": list(fabric.spines),
        "switches": [_switch_json(fabric, line) for line in switch_lines(fabric, found)],
        "cables": [_cable_json(cable, found) for cable in fabric.cables],
    }


def _switch_json(fabric: Fabric, line: SwitchLine) -> dict[str, Any]:
    own = fabric.switches[line.name]
    return {
        "name": line.name,
        "level": line.level,
        "guid": own.guid,
        "description": own.description,
        "firmware": own.firmware,
        "ports": own.ports,
        "rails": list(line.rails),
        "nodes": list(line.nodes),
        "node_ports": list(line.node_ports),
        "ports_to": {other: list(ports) for other, ports in line.others.items()},
        "in_place": line.up,
    }


def _cable_json(cable: Cable, found: Found | None) -> dict[str, Any]:
    near = (
        {"node": cable.near.node, "rail": cable.near.rail}
        if isinstance(cable.near, NodePort)
        else {"switch": cable.near.switch, "port": cable.near.port}
    )
    return {
        "near": near,
        "far": {"switch": cable.far.switch, "port": cable.far.port},
        "speed_gbps": cable.speed_gbps,
        "lanes": cable.lanes,
        "label": cable.label,
        "declared": cable.origin,
        "in_place": None if found is None else found.partner.get(cable.near) == cable.far,
    }

"""Declared fabrics, and what stands in the room instead: a fault of each kind, chosen by dice.

Shared by the tests that compare in memory and those that ask a simulated fabric.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from rackwright.fabric.finding import Kind
from rackwright.model.fabric import Cable, End, Fabric, NodePort, SwitchId, SwitchPort
from rackwright.model.types import LinkKind

SPARE_PORT = 65
"""No cable is declared for it, on any switch."""


def unit(nodes: int, rails: int, spines: int, each: int, gbps: float = 400.0) -> Fabric:
    """A rail-optimised unit: a leaf for each rail, `each` cables from each leaf to each spine."""
    leaves = tuple(f"leaf{rail + 1}" for rail in range(rails))
    tops = tuple(f"spine{number + 1}" for number in range(spines))
    cables = [
        Cable(NodePort(f"gpu{node:03}", rail), SwitchPort(leaves[rail], node), gbps, 4)
        for node in range(1, nodes + 1)
        for rail in range(rails)
    ]
    cables += [
        Cable(
            SwitchPort(leaf, nodes + 1 + each * place + cable),
            SwitchPort(spine, 1 + each * index + cable),
            gbps,
            4,
        )
        for index, leaf in enumerate(leaves)
        for place, spine in enumerate(tops)
        for cable in range(each)
    ]
    switches = {name: SwitchId(name) for name in (*leaves, *tops)}
    return Fabric("fabric", LinkKind.INFINIBAND, rails, leaves, tops, tuple(cables), switches)


def hosts_of(fabric: Fabric) -> tuple[str, ...]:
    """All nodes, in file order."""
    return tuple(dict.fromkeys(one.near.node for one in fabric.cables if isinstance(one.near, NodePort)))


class Wire(NamedTuple):
    """A cable that is there, and the link on it."""

    near: End
    far: End
    gbps: float
    lanes: int


@dataclass(frozen=True)
class Built:
    """What stands in the room."""

    wires: tuple[Wire, ...]
    off: frozenset[SwitchPort] = frozenset()
    """Ports that are switched off; their cables are in."""
    absent: frozenset[str] = frozenset()
    """Nodes."""
    firmware: Mapping[str, str] = field(default_factory=dict)
    """Of switches that have another release than the others."""
    symbols: Mapping[SwitchPort, int] = field(default_factory=dict)
    """Symbol errors."""


def as_declared(fabric: Fabric) -> Built:
    return Built(tuple(Wire(one.near, one.far, one.speed_gbps or 0, one.lanes or 0) for one in fabric.cables))


class Seeded(NamedTuple):
    """What was built, and the one finding that there must be."""

    built: Built
    kind: Kind
    ends: frozenset[str]
    """The finding names these at least."""


Fault = Callable[[random.Random, Fabric], Seeded]


def node_cable(dice: random.Random, fabric: Fabric, without: str = "") -> Cable:
    cables = [one for one in fabric.cables if isinstance(one.near, NodePort)]
    return dice.choice([one for one in cables if isinstance(one.near, NodePort) and one.near.node != without])


def rewired(fabric: Fabric, changes: Mapping[End, End | None], *extra: Wire) -> Built:
    """The fabric with the far ends of some cables elsewhere; None: the cable is gone."""
    wires = [
        wire._replace(far=there)
        for wire in as_declared(fabric).wires
        if (there := changes.get(wire.near, wire.far)) is not None
    ]
    return Built((*wires, *extra))


def _ends(*ends: End) -> frozenset[str]:
    return frozenset(str(end) for end in ends)


def missing(dice: random.Random, fabric: Fabric) -> Seeded:
    cable = node_cable(dice, fabric)
    return Seeded(rewired(fabric, {cable.near: None}), Kind.MISSING, _ends(*cable.ends))


def down(dice: random.Random, fabric: Fabric) -> Seeded:
    cable = node_cable(dice, fabric)
    return Seeded(replace(as_declared(fabric), off=frozenset({cable.far})), Kind.DOWN, _ends(*cable.ends))


def extra(dice: random.Random, fabric: Fabric) -> Seeded:
    one, other = (SwitchPort(leaf, SPARE_PORT) for leaf in dice.sample(fabric.leaves, 2))
    wire = as_declared(fabric).wires[0]
    return Seeded(rewired(fabric, {}, wire._replace(near=one, far=other)), Kind.EXTRA, _ends(one, other))


def _swapped(fabric: Fabric, one: NodePort, other: NodePort, kind: Kind = Kind.SWAPPED) -> Seeded:
    first, second = fabric.by_end[one].far, fabric.by_end[other].far
    return Seeded(rewired(fabric, {one: second, other: first}), kind, _ends(one, other))


def _two_nodes(dice: random.Random, fabric: Fabric) -> tuple[NodePort, str]:
    one = node_cable(dice, fabric).near
    assert isinstance(one, NodePort)
    other = node_cable(dice, fabric, one.node).near
    assert isinstance(other, NodePort)
    return one, other.node


def swapped_on_one_leaf(dice: random.Random, fabric: Fabric) -> Seeded:
    one, node = _two_nodes(dice, fabric)
    return _swapped(fabric, one, NodePort(node, one.rail))


def swapped_between_leaves(dice: random.Random, fabric: Fabric) -> Seeded:
    one, node = _two_nodes(dice, fabric)
    rail = (one.rail + dice.randrange(1, fabric.rails)) % fabric.rails
    return _swapped(fabric, one, NodePort(node, rail))


def wrong_rail(dice: random.Random, fabric: Fabric) -> Seeded:
    one, _ = _two_nodes(dice, fabric)
    rail = (one.rail + dice.randrange(1, fabric.rails)) % fabric.rails
    return _swapped(fabric, one, NodePort(one.node, rail), Kind.WRONG_RAIL)


def wrong_spine(dice: random.Random, fabric: Fabric) -> Seeded:
    cable = dice.choice([one for one in fabric.cables if one.uplink])
    spine = dice.choice([name for name in fabric.spines if name != cable.far.switch])
    there = SwitchPort(spine, SPARE_PORT)
    return Seeded(rewired(fabric, {cable.near: there}), Kind.WRONG_SPINE, _ends(cable.near, there))


def _on_one_cable(dice: random.Random, fabric: Fabric, kind: Kind, lanes: int, slower: int) -> Seeded:
    number = dice.randrange(len(fabric.cables))
    wires = list(as_declared(fabric).wires)
    wires[number] = wires[number]._replace(gbps=wires[number].gbps / slower, lanes=lanes)
    return Seeded(Built(tuple(wires)), kind, _ends(*fabric.cables[number].ends))


def slow(dice: random.Random, fabric: Fabric) -> Seeded:
    return _on_one_cable(dice, fabric, Kind.SPEED, lanes=4, slower=2)


def narrow(dice: random.Random, fabric: Fabric) -> Seeded:
    return _on_one_cable(dice, fabric, Kind.WIDTH, lanes=1, slower=4)


def absent(dice: random.Random, fabric: Fabric) -> Seeded:
    host = dice.choice(hosts_of(fabric))
    wires = tuple(
        wire
        for wire in as_declared(fabric).wires
        if not (isinstance(wire.near, NodePort) and wire.near.node == host)
    )
    return Seeded(Built(wires, absent=frozenset({host})), Kind.ABSENT_NODE, frozenset({host}))


def mixed(dice: random.Random, fabric: Fabric) -> Seeded:
    name = dice.choice(fabric.leaves)
    built = replace(as_declared(fabric), firmware={name: "31.2012"})
    return Seeded(built, Kind.FIRMWARE, frozenset({name}))


def errors(dice: random.Random, fabric: Fabric) -> Seeded:
    cable = dice.choice(fabric.cables)
    built = replace(as_declared(fabric), symbols={cable.far: 65535})
    return Seeded(built, Kind.ERRORS, _ends(*cable.ends))


CABLING: tuple[Fault, ...] = (
    missing,
    extra,
    swapped_on_one_leaf,
    swapped_between_leaves,
    wrong_rail,
    wrong_spine,
    slow,
    narrow,
    down,
    absent,
)
FAULTS: tuple[Fault, ...] = (*CABLING, mixed, errors)

"""The declared fabric against what was found: each kind of mistake is found, and none is invented."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace

import pytest

from rackwright.fabric.compare import Scope, compare
from rackwright.fabric.discovered import Device, Discovery, Health, Link, Port
from rackwright.fabric.finding import Finding, Kind
from rackwright.fabric.identify import Names, identify
from rackwright.model.fabric import Cable, End, Fabric, NodePort, SwitchId, SwitchPort
from rackwright.model.types import LinkKind
from rackwright.status import Status

NODES, RAILS, SPINES = 32, 8, 4


def unit() -> Fabric:
    """A rail-optimised unit: 32 nodes, 8 leaves, 4 spines, 8 cables from each leaf to each spine."""
    leaves = tuple(f"leaf{rail + 1}" for rail in range(RAILS))
    spines = tuple(f"spine{number + 1}" for number in range(SPINES))
    cables = [
        Cable(NodePort(f"gpu{node:03}", rail), SwitchPort(leaves[rail], node), 400.0, 4)
        for node in range(1, NODES + 1)
        for rail in range(RAILS)
    ]
    cables += [
        Cable(SwitchPort(leaf, 33 + 8 * place + cable), SwitchPort(spine, 1 + 8 * index + cable), 400.0, 4)
        for index, leaf in enumerate(leaves)
        for place, spine in enumerate(spines)
        for cable in range(8)
    ]
    switches = {name: SwitchId(name) for name in (*leaves, *spines)}
    return Fabric("fabric", LinkKind.INFINIBAND, RAILS, leaves, spines, tuple(cables), switches)


FABRIC = unit()
HOSTS = tuple(f"gpu{node:03}" for node in range(1, NODES + 1))
NAMES = Names({(host, f"mlx5_rail{rail}"): rail for host in HOSTS for rail in range(RAILS)})


def port_of(end: End) -> Port:
    """The port that discovery has for a declared end."""
    if isinstance(end, NodePort):
        return Port(f"{HOSTS.index(end.node) + 1:08x}{end.rail:08x}", "1")
    return Port(f"{'ab' if end.switch.startswith('leaf') else 'cd'}{end.switch[-1]:>014}", str(end.port))


def intact() -> Discovery:
    """What is discovered of the fabric as declared."""
    devices: dict[str, Device] = {}
    for cable in FABRIC.cables:
        for end in cable.ends:
            key, switch = port_of(end).device, isinstance(end, SwitchPort)
            shown = (
                f"MF0;{end.switch}:MQM9700/U1"
                if isinstance(end, SwitchPort)
                else f"{end.node} mlx5_rail{end.rail}"
            )
            model, firmware = ("MQM9700", "31.2014") if switch else ("MT4129", "28.43.2026")
            devices[key] = Device(key, switch, shown, model, firmware)
    links = tuple(Link(port_of(cable.near), port_of(cable.far), 400.0, 4) for cable in FABRIC.cables)
    return Discovery(
        devices, links, {port_of(cable.far): Health("active", 0, 0, 0) for cable in FABRIC.cables}
    )


INTACT = intact()


def found_by(discovery: Discovery, scope: Scope | None = None) -> tuple[Finding, ...]:
    return compare(FABRIC, identify(FABRIC, discovery, NAMES, HOSTS), scope=scope)


def test_an_intact_fabric_has_no_finding() -> None:
    assert found_by(INTACT) == ()


Seed = Callable[[random.Random], tuple[Discovery, Kind, set[str]]]


def node_cable(dice: random.Random, without: str = "") -> Cable:
    return dice.choice(
        [one for one in FABRIC.cables if isinstance(one.near, NodePort) and one.near.node != without]
    )


def rewired(changes: dict[End, End | None], extra: tuple[Link, ...] = ()) -> Discovery:
    """The fabric with the far ends of some cables elsewhere; None: the cable is gone."""
    links = [
        Link(port_of(cable.near), port_of(there), 400.0, 4)
        for cable in FABRIC.cables
        if (there := changes.get(cable.near, cable.far)) is not None
    ]
    return replace(INTACT, links=(*links, *extra))


def missing(dice: random.Random) -> tuple[Discovery, Kind, set[str]]:
    cable = node_cable(dice)
    return rewired({cable.near: None}), Kind.MISSING, {str(cable.near), str(cable.far)}


def down(dice: random.Random) -> tuple[Discovery, Kind, set[str]]:
    cable = node_cable(dice)
    gone = rewired({cable.near: None})
    health = {**gone.health, port_of(cable.far): Health("polling")}
    return replace(gone, health=health), Kind.DOWN, {str(cable.near), str(cable.far)}


def extra(dice: random.Random) -> tuple[Discovery, Kind, set[str]]:
    one, other = dice.sample(FABRIC.leaves, 2)
    ends = SwitchPort(one, 65), SwitchPort(other, 65)
    added = Link(port_of(ends[0]), port_of(ends[1]), 400.0, 4)
    return rewired({}, (added,)), Kind.EXTRA, {str(end) for end in ends}


def swapped_on_one_leaf(dice: random.Random) -> tuple[Discovery, Kind, set[str]]:
    one = node_cable(dice)
    assert isinstance(one.near, NodePort)
    other = FABRIC.by_end[NodePort(node_cable(dice, one.near.node).near.node, one.near.rail)]  # type: ignore[union-attr]
    return rewired({one.near: other.far, other.near: one.far}), Kind.SWAPPED, {str(one.near), str(other.near)}


def swapped_between_leaves(dice: random.Random) -> tuple[Discovery, Kind, set[str]]:
    one = node_cable(dice)
    assert isinstance(one.near, NodePort)
    node = node_cable(dice, one.near.node).near.node  # type: ignore[union-attr]
    other = FABRIC.by_end[NodePort(node, (one.near.rail + dice.randrange(1, RAILS)) % RAILS)]
    return rewired({one.near: other.far, other.near: one.far}), Kind.SWAPPED, {str(one.near), str(other.near)}


def wrong_rail(dice: random.Random) -> tuple[Discovery, Kind, set[str]]:
    one = node_cable(dice)
    assert isinstance(one.near, NodePort)
    other = FABRIC.by_end[NodePort(one.near.node, (one.near.rail + dice.randrange(1, RAILS)) % RAILS)]
    return (
        rewired({one.near: other.far, other.near: one.far}),
        Kind.WRONG_RAIL,
        {str(one.near), str(other.near)},
    )


def wrong_spine(dice: random.Random) -> tuple[Discovery, Kind, set[str]]:
    cable = dice.choice([one for one in FABRIC.cables if one.uplink])
    there = SwitchPort(dice.choice([name for name in FABRIC.spines if name != cable.far.switch]), 65)
    return rewired({cable.near: there}), Kind.WRONG_SPINE, {str(cable.near), str(there)}


def slow(dice: random.Random) -> tuple[Discovery, Kind, set[str]]:
    number = dice.randrange(len(FABRIC.cables))
    links = [
        replace(link, gbps=200.0) if place == number else link for place, link in enumerate(INTACT.links)
    ]
    return replace(INTACT, links=tuple(links)), Kind.SPEED, {str(end) for end in FABRIC.cables[number].ends}


def narrow(dice: random.Random) -> tuple[Discovery, Kind, set[str]]:
    number = dice.randrange(len(FABRIC.cables))
    links = [
        replace(one, gbps=100.0, lanes=1) if place == number else one
        for place, one in enumerate(INTACT.links)
    ]
    return replace(INTACT, links=tuple(links)), Kind.WIDTH, {str(end) for end in FABRIC.cables[number].ends}


def absent(dice: random.Random) -> tuple[Discovery, Kind, set[str]]:
    host = dice.choice(HOSTS)
    keys = {port_of(NodePort(host, rail)).device for rail in range(RAILS)}
    links = tuple(link for link in INTACT.links if link.one.device not in keys)
    devices = {key: device for key, device in INTACT.devices.items() if key not in keys}
    return replace(INTACT, devices=devices, links=links), Kind.ABSENT_NODE, {host}


def mixed(dice: random.Random) -> tuple[Discovery, Kind, set[str]]:
    name = dice.choice(FABRIC.leaves)
    key = port_of(SwitchPort(name, 1)).device
    devices = {**INTACT.devices, key: replace(INTACT.devices[key], firmware="31.2012")}
    return replace(INTACT, devices=devices), Kind.FIRMWARE, {name}


def errors(dice: random.Random) -> tuple[Discovery, Kind, set[str]]:
    cable = dice.choice(FABRIC.cables)
    health = {**INTACT.health, port_of(cable.far): Health("active", symbol_errors=65535, link_downed=0)}
    return replace(INTACT, health=health), Kind.ERRORS, {str(end) for end in cable.ends}


SEEDS: tuple[Seed, ...] = (
    missing,
    down,
    extra,
    swapped_on_one_leaf,
    swapped_between_leaves,
    wrong_rail,
    wrong_spine,
    slow,
    narrow,
    absent,
    mixed,
    errors,
)


@pytest.mark.parametrize("seeded", SEEDS, ids=lambda one: one.__name__)
def test_each_fault_is_found_and_none_is_invented(seeded: Seed) -> None:
    for number in range(50):
        discovery, kind, ends = seeded(random.Random(number))
        findings = found_by(discovery)
        assert [one.kind for one in findings] == [kind], findings
        assert ends <= set(findings[0].ends), findings[0]
        assert findings[0].status is Status.FAIL


def test_a_swap_names_both_nodes_and_both_ports() -> None:
    one, other = FABRIC.by_end[NodePort("gpu017", 3)], FABRIC.by_end[NodePort("gpu018", 4)]
    [finding] = found_by(rewired({one.near: other.far, other.near: one.far}))
    assert finding.text == (
        "gpu017 rail 3 is in leaf5 port 18; leaf4 port 17 was declared; gpu018 rail 4 has it and was declared in "
        "leaf5 port 18: swapped."
    )


def test_a_device_of_which_nothing_decides_the_rail_is_unknown() -> None:
    key = port_of(NodePort("gpu003", 2)).device
    devices = {**INTACT.devices, key: replace(INTACT.devices[key], description="gpu003 mlx5_7")}
    [finding] = found_by(replace(INTACT, devices=devices))
    assert finding.status is Status.UNKNOWN
    assert finding.text.startswith("which rail of gpu003 is gpu003 mlx5_7? Declare its devices")


def test_a_guid_that_the_node_reported_decides_the_rail() -> None:
    port = NodePort("gpu003", 2)
    key = port_of(port).device
    devices = {**INTACT.devices, key: replace(INTACT.devices[key], description="gpu003 mlx5_7")}
    names = replace(NAMES, guids={key: port})
    assert compare(FABRIC, identify(FABRIC, replace(INTACT, devices=devices), names, HOSTS)) == ()


def test_a_switch_without_a_name_is_unknown_once() -> None:
    key = port_of(SwitchPort("leaf2", 1)).device
    devices = {
        **INTACT.devices,
        key: replace(INTACT.devices[key], description="Quantum Mellanox Technologies"),
    }
    findings = found_by(replace(INTACT, devices=devices))
    assert [(one.status, one.ends) for one in findings] == [(Status.UNKNOWN, ("leaf2",))]
    assert findings[0].text.startswith(
        "leaf2 was not identified: cables declared for it of gpu[001-032] end in Quantum"
    )


def test_what_could_not_be_read_is_unknown_and_never_a_pass() -> None:
    [finding] = found_by(replace(INTACT, unread=("head1: iblinkinfo is missing",)))
    assert (finding.status, finding.text) == (Status.UNKNOWN, "head1: iblinkinfo is missing.")
    links = tuple(replace(link, gbps=None, lanes=None) for link in INTACT.links)
    assert {one.status for one in found_by(replace(INTACT, links=links))} == {Status.UNKNOWN}


def test_an_empty_discovery_passes_nothing() -> None:
    findings = found_by(Discovery())
    assert {one.status for one in findings} == {Status.FAIL}
    assert {one.ends[0] for one in findings if one.kind is Kind.ABSENT_NODE} == set(HOSTS)


def test_a_limit_leaves_out_other_nodes_and_uplinks() -> None:
    scope = Scope(nodes=frozenset({"gpu001"}), uplinks=False)
    cable = FABRIC.by_end[NodePort("gpu002", 0)]
    assert found_by(rewired({cable.near: None}), scope) == ()
    cable = FABRIC.by_end[NodePort("gpu001", 0)]
    assert [one.kind for one in found_by(rewired({cable.near: None}), scope)] == [Kind.MISSING]

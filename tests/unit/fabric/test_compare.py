"""The declared fabric against what was found: each kind of mistake is found, and none is invented."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import replace

import pytest

from rackwright.fabric.compare import Scope, compare
from rackwright.fabric.discovered import Device, Discovery, Health, Link, Port
from rackwright.fabric.finding import Finding, Kind
from rackwright.fabric.identify import Names, identify
from rackwright.model.fabric import End, NodePort, SwitchId, SwitchPort
from rackwright.model.types import LinkKind
from rackwright.status import Status
from tests.unit.fabric import units
from tests.unit.fabric.units import FAULTS, Built, Fault, hosts_of

FABRIC = units.unit(nodes=32, rails=8, spines=4, each=8)
HOSTS = hosts_of(FABRIC)
NAMES = Names({(host, f"mlx5_rail{rail}"): rail for host in HOSTS for rail in range(FABRIC.rails)})


def port_of(end: End) -> Port:
    """The port that discovery has for a declared end."""
    if isinstance(end, NodePort):
        return Port(f"{HOSTS.index(end.node) + 1:08x}{end.rail:08x}", "1")
    return Port(f"{'ab' if end.switch.startswith('leaf') else 'cd'}{end.switch[-1]:>014}", str(end.port))


def device_of(end: End, built: Built) -> Device:
    key = port_of(end).device
    if isinstance(end, SwitchPort):
        firmware = built.firmware.get(end.switch, "31.2014")
        return Device(key, True, f"MF0;{end.switch}:MQM9700/U1", "MQM9700", firmware)
    return Device(key, False, f"{end.node} mlx5_rail{end.rail}", "MT4129", "28.43.2026")


def discovered(built: Built) -> Discovery:
    """What discovery shows of it."""
    ends = [
        end
        for cable in FABRIC.cables
        for end in cable.ends
        if not (isinstance(end, NodePort) and end.node in built.absent)
    ]
    devices = {port_of(end).device: device_of(end, built) for end in ends}
    linked = [wire for wire in built.wires if wire.far not in built.off]
    links = tuple(Link(port_of(wire.near), port_of(wire.far), wire.gbps, wire.lanes) for wire in linked)
    states = {cable.far: "polling" for cable in FABRIC.cables}
    states |= dict.fromkeys((wire.far for wire in linked if isinstance(wire.far, SwitchPort)), "active")
    states |= dict.fromkeys(built.off, "disabled")
    health = {port_of(end): Health(state, built.symbols.get(end, 0), 0, 0) for end, state in states.items()}
    return Discovery(devices, links, health)


def rewired(changes: Mapping[End, End | None]) -> Discovery:
    """The fabric with the far ends of some cables elsewhere; None: the cable is gone."""
    return discovered(units.rewired(FABRIC, changes))


INTACT = discovered(units.as_declared(FABRIC))


def found_by(discovery: Discovery, scope: Scope | None = None) -> tuple[Finding, ...]:
    return compare(FABRIC, identify(FABRIC, discovery, NAMES, HOSTS), scope=scope)


def test_an_intact_fabric_has_no_finding() -> None:
    assert found_by(INTACT) == ()


@pytest.mark.parametrize("fault", FAULTS, ids=lambda one: one.__name__)
def test_each_fault_is_found_and_none_is_invented(fault: Fault) -> None:
    for number in range(50):
        seeded = fault(random.Random(number), FABRIC)
        findings = found_by(discovered(seeded.built))
        assert [one.kind for one in findings] == [seeded.kind], findings
        assert seeded.ends <= set(findings[0].ends), findings[0]
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


def test_counters_that_a_healthy_fabric_can_have_are_warned_of() -> None:
    cable = FABRIC.cables[0]
    health = {**INTACT.health, port_of(cable.far): Health("active", symbol_errors=3, link_downed=1)}
    findings = found_by(replace(INTACT, health=health))
    assert [(one.status, one.kind) for one in findings] == [
        (Status.WARN, Kind.FLAPPING),
        (Status.WARN, Kind.ERRORS),
    ]
    assert [one.text for one in findings] == [
        (
            f"The link of {cable.far}, cabled to {cable.near}, went down once since its counters were cleared; "
            "reboots count too."
        ),
        f"{cable.far}, cabled to {cable.near}, has 3 symbol errors.",
    ]


def test_what_is_declared_and_was_not_read_is_unknown() -> None:
    switches = {**FABRIC.switches, "leaf1": SwitchId("leaf1", firmware="31.2014")}
    devices = {key: replace(device, firmware=None) for key, device in INTACT.devices.items()}
    declared = replace(FABRIC, switches=switches)
    findings = compare(declared, identify(declared, replace(INTACT, devices=devices), NAMES, HOSTS))
    assert [(one.status, one.text) for one in findings] == [
        (Status.UNKNOWN, "The firmware of leaf1 was not read; 31.2014 was declared."),
    ]


def test_a_switch_that_sends_no_lldp_is_unknown_and_no_missing_cable() -> None:
    ethernet = replace(FABRIC, kind=LinkKind.ROCE, port_name="swp{port}", cables=FABRIC.cables[:1])
    near = NodePort("gpu001", 0)
    devices = {"gpu001": Device("gpu001", False, "gpu001")}
    names = Names({("gpu001", "rail0"): 0})
    for state, status, words in (
        ("up", Status.UNKNOWN, "leaf1 was not seen: no LLDP on the ports of gpu001 that are cabled to it."),
        ("lowerlayerdown", Status.FAIL, "gpu001 rail 0 is lowerlayerdown"),
        (None, Status.UNKNOWN, "no interface of the node is declared for it or has its address"),
    ):
        health = {} if state is None else {Port("gpu001", "rail0"): Health(state)}
        [finding] = compare(
            ethernet,
            identify(ethernet, Discovery(devices, health=health), names, HOSTS),
            scope=Scope(uplinks=False),
        )
        assert finding.status is status
        assert finding.ends[0] == ("leaf1" if state == "up" else str(near))
        assert words in finding.text

"""What the tools of a fabric print, as recorded, and damaged."""

from __future__ import annotations

from ipaddress import IPv4Address
from pathlib import Path

import pytest

from rackwright.boundary import Refused
from rackwright.fabric.discovered import Health, Link, Port
from rackwright.fabric.infiniband import parse_iblinkinfo, parse_ibnetdiscover, parse_ibqueryerrors
from rackwright.fabric.infiniband_nodes import OwnDevice, read_devices, read_fabric
from rackwright.fabric.lldp import addresses_of, certain, parse_neighbours, states_of
from rackwright.fabric.sections import Section, script, sections
from rackwright.model.fabric import NodePort

RECORDED = Path(__file__).parent / "recorded"
LLDP = Path(__file__).parents[1] / "fabric_recorded"
LEAF, SPINE, GPU1, GPU2 = "0000000000200000", "0000000000200001", "0000000000100000", "0000000000100002"


def test_ibnetdiscover_as_recorded() -> None:
    found = parse_ibnetdiscover((RECORDED / "ibnetdiscover.txt").read_text())
    assert found.unread == ()
    assert {key: (one.switch, one.description) for key, one in found.devices.items()} == {
        LEAF: (True, "leaf1"),
        SPINE: (True, "spine1"),
        GPU1: (False, "gpu001 mlx5_rail0"),
        GPU2: (False, "gpu002 mlx5_rail0"),
    }
    assert set(found.links) == {
        Link(Port(LEAF, "3"), Port(SPINE, "1"), 10.0, 4),
        Link(Port(GPU1, "1"), Port(LEAF, "1"), 10.0, 4),
        Link(Port(GPU2, "1"), Port(LEAF, "2"), 10.0, 4),
    }


@pytest.mark.parametrize(("text", "why"), [("", "found nothing"), ("ibwarn: no port\n", "found nothing")])
def test_a_discovery_of_nothing_is_unread(text: str, why: str) -> None:
    assert why in parse_ibnetdiscover(text).unread[0]


def test_an_incomplete_discovery_is_unread() -> None:
    whole = (RECORDED / "ibnetdiscover.txt").read_text()
    [why] = parse_ibnetdiscover(whole[: whole.index("vendid", whole.index("Ca\t"))]).unread
    assert why == f"ibnetdiscover has no section for {GPU1}: its output is incomplete"


def test_iblinkinfo_as_recorded() -> None:
    found = parse_iblinkinfo((RECORDED / "iblinkinfo.txt").read_text())
    assert found.unread == ()
    assert found.health[Port(LEAF, "1")] == Health("active")
    assert found.health[Port(LEAF, "4")] == Health("polling")
    assert set(found.health) == {Port(key, str(port)) for key in (LEAF, SPINE) for port in range(1, 5)}
    assert parse_iblinkinfo("").unread == ("iblinkinfo shows no port of a switch",)


def test_ibqueryerrors() -> None:
    text = (
        'Errors for 0x200000 "leaf1"\n'
        "   GUID 0x200000 port ALL: [SymbolErrorCounter == 7]\n"
        "   GUID 0x200000 port 2: [SymbolErrorCounter == 7] [LinkDownedCounter == 3] [PortRcvErrors == 101]\n"
    )
    assert parse_ibqueryerrors(text) == {
        Port(LEAF, "2"): Health(symbol_errors=7, link_downed=3, receive_errors=101)
    }


def test_a_missing_tool_is_named() -> None:
    text = (RECORDED / "ibnetdiscover.txt").read_text()
    parts = {"ibnetdiscover": Section(text, 0), "iblinkinfo": Section("", 127)}
    found = read_fabric("head1", parts)
    assert len(found.devices) == 4
    assert found.unread == (
        "head1: iblinkinfo is missing (package infiniband-diags)",
        "head1: ibqueryerrors printed nothing that can be used",
    )


def test_declared_devices_by_their_guid() -> None:
    text = (
        "mlx5_rail0 e8eb:d303:00a1:b2c3 28.43.2026 MT_0000000838\n"
        "mlx5_rail1 e8eb:d303:00a1:b2c5 28.43.2026 -\nmlx5_9 e8eb:d303:00a1:b2c4 1.0 -\nrubbish\n"
    )
    assert read_devices("gpu001", {"mlx5_rail0": 0, "mlx5_rail1": 1}, text) == {
        "e8ebd30300a1b2c3": OwnDevice(NodePort("gpu001", 0), "28.43.2026", "MT_0000000838"),
        "e8ebd30300a1b2c5": OwnDevice(NodePort("gpu001", 1), "28.43.2026", None),
    }


def test_sections_of_one_execution() -> None:
    assert "timeout -k 5 7 sh -c 'ip addr'" in script({"a": "ip addr"}, 7)
    text = "@@rackwright begin a\none\n\n@@rackwright end a 0\n@@rackwright begin b\n@@rackwright end a 0\n"
    assert sections(text) == {"a": Section("one\n\n", 0)}
    assert Section("x\nno such file\n", 2).problem("ip", "iproute2") == "ip exited 2: no such file"


@pytest.mark.parametrize(
    ("name", "expected"),
    [("lldp_none.json", []), ("lldp_one_neighbour.json", [("swp1", "gpu1", "rail0")])],
)
def test_lldp_as_recorded(name: str, expected: list[tuple[str, str, str]]) -> None:
    found = parse_neighbours((LLDP / name).read_text())
    assert [(one.interface, one.system, one.port) for one in found] == expected


@pytest.mark.parametrize(
    "text", ["", "[]", '{"lldp": 3}', '{"lldp": {"interface": [{"eth1": {"via": "LLDP"}}]}}']
)
def test_what_is_not_lldp_s_json_is_refused(text: str) -> None:
    with pytest.raises(Refused):
        parse_neighbours(text)


def test_of_two_neighbours_the_switch_counts() -> None:
    def entry(name: str, bridge: bool) -> str:
        capability = f'{{"type": "Bridge", "enabled": {str(bridge).lower()}}}'
        chassis = f'{{"{name}": {{"id": {{"type": "mac", "value": "m"}}, "capability": [{capability}]}}}}'
        port = '{"id": {"type": "mac", "value": "02:00"}, "descr": "swp1"}'
        return f'{{"eth1": {{"via": "LLDP", "chassis": {chassis}, "port": {port}}}}}'

    text = f'{{"lldp": {{"interface": [{entry("gpu9", False)}, {entry("leaf1", True)}]}}}}'
    [found] = certain(parse_neighbours(text))
    assert (found.system, found.port) == ("leaf1", "swp1")


def test_addresses_and_states() -> None:
    text = (
        '[{"ifname": "eth1", "addr_info": [{"local": "10.0.0.1"}]},'
        ' {"ifname": "rail0.7", "link": "rail0", "addr_info": [{"local": "10.0.1.1"}, {}]}, 3]'
    )
    assert addresses_of(text) == {IPv4Address("10.0.0.1"): "eth1", IPv4Address("10.0.1.1"): "rail0"}
    assert states_of("eth1 up 10000\neth2 down -\neth3 up -1\nrubbish\n") == (
        {"eth1": "up", "eth2": "down", "eth3": "up"},
        {"eth1": 10.0},
    )

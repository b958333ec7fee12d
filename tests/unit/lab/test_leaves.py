"""The leaf switches of a rack, as steps of iproute2."""

from pathlib import Path

import pytest

from rackwright.errors import LabError
from rackwright.lab import leaves, names, network
from rackwright.lab.spec import LeafPort, NodeSpec, RackSpec
from tests.unit.lab.specs import node, rack


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """What `ip` is asked to do: the namespace and the step."""
    done: list[tuple[str, str]] = []
    monkeypatch.setattr(leaves, "make_namespace", lambda name: done.append((name, "")))
    monkeypatch.setattr(leaves, "has_link", lambda *_: False)
    monkeypatch.setattr(leaves, "remove_link", lambda *_: None)
    for module in (leaves, network):
        monkeypatch.setattr(module, "batch", lambda name, *lines: done.extend((name, line) for line in lines))
    return done


def cabled(number: int, port: LeafPort | None) -> NodeSpec:
    return node(number, extra_addresses=(f"10.9.0.{number}/24",), extra_mtus=(9000,), leaf_ports=(port,))


def spec(folder: Path) -> RackSpec:
    return rack(folder, nodes=(cabled(1, LeafPort("leaf1", "swp1")), cabled(2, None)))


def test_a_leaf_is_a_namespace_whose_bridge_is_joined_to_the_network_s(
    steps: list[tuple[str, str]], tmp_path: Path
):
    leaves.make(spec(tmp_path), 9000)
    assert steps[0] == ("rw-unit.leaf1", "")
    bridge, uplink = names.bridge("10.9.0.0/24"), names.interface("u", "leaf1.10.9.0.0/24")
    assert ("rw-unit", f"link set {uplink} addrgenmode none master {bridge} up") in steps
    assert len([step for _, step in steps if step.startswith(f"link add {bridge} ")]) == 1


def test_a_cable_to_a_leaf_forwards_lldp(steps: list[tuple[str, str]], tmp_path: Path):
    made = spec(tmp_path)
    assert leaves.plug(made, made.nodes[0], 1) == "c1-node1"
    assert ("rw-unit", "link add c1-node1 type bridge mcast_snooping 0 group_fwd_mask 16384") in steps
    inner = f"link set swp1 addrgenmode none master {names.bridge('10.9.0.0/24')} up"
    assert ("rw-unit.leaf1", inner) in steps


def test_other_cables_end_at_the_network_s_bridge(steps: list[tuple[str, str]], tmp_path: Path):
    made = spec(tmp_path)
    assert [leaves.plug(made, one, number) for one in made.nodes for number in (0, 1)][2:] == [None, None]
    assert leaves.plug(made, made.nodes[0], 0) is None


def test_a_port_name_that_no_interface_can_have_is_refused(steps: list[tuple[str, str]], tmp_path: Path):
    made = rack(tmp_path, nodes=(cabled(1, LeafPort("leaf1", "Ethernet1/1")),))
    with pytest.raises(LabError, match="'Ethernet1/1' cannot be the name of an interface"):
        leaves.plug(made, made.nodes[0], 1)
    assert steps == []


def test_a_rack_without_leaves_needs_no_lldpd(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setattr(leaves, "require", lambda *_: pytest.fail("asked for a program"))
    leaves.start(rack(tmp_path))

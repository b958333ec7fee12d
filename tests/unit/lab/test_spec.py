"""A rack which cannot work is refused before anything is made."""

import json
from pathlib import Path
from typing import Any

import pytest

from rackwright.errors import LabError
from rackwright.lab.spec import LeafPort, RackSpec, VmSpec
from tests.unit.lab.specs import node, rack

HERE = Path("/site")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"name": "Node"}, "node name 'Node' is not a host name label"),
        ({"name": "../etc"}, "node name '../etc' is not a host name label"),
        ({"image": "debian-11"}, "node node1: unknown image 'debian-11'"),
        ({"cpus": 0}, "node node1: needs at least 1 cpu and 64 MiB of memory"),
        ({"mtu": 100}, "node node1: mtu 100 is not between 1280 and 65535"),
        ({"address": "10.0.0.300"}, "node node1: '10.0.0.300/24' is not an IPv4 address"),
        ({"extra_addresses": ("10.9.0.1/99",)}, "node node1: '10.9.0.1/99' is not an IPv4 address"),
    ],
)
def test_bad_nodes(changes: dict[str, Any], message: str):
    with pytest.raises(LabError) as caught:
        node(1, **changes)
    assert caught.value.message.startswith(message)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"name": "a.b"}, "rack name 'a.b' is not a host name label"),
        ({"nodes": ()}, "rack unit: 0 nodes, a rack has 1 to 100"),
        ({"nodes": (node(1), node(1, address="10.0.0.99"))}, "rack unit: node1 is used twice"),
        ({"nodes": (node(1), node(2, address="10.0.0.11"))}, "rack unit: 10.0.0.11 is used twice"),
        ({"bridge_address": "10.0.0.11/24", "apt_proxy": None}, "rack unit: 10.0.0.11 is used twice"),
        ({"admin_user": "root"}, "rack unit: 'root' cannot be the admin user"),
        ({"ssh_port": 0}, "rack unit: ssh port 0 is not a port"),
        ({"apt_proxy": "http://10.0.0.2:3142"}, "rack unit: the apt proxy http://10.0.0.2:3142 is not on"),
        ({"apt_proxy": "10.0.0.1:3142"}, "rack unit: apt proxy '10.0.0.1:3142' is not http://ADDRESS:PORT"),
    ],
)
def test_bad_racks(changes: dict[str, Any], message: str):
    with pytest.raises(LabError) as caught:
        rack(HERE, **changes)
    assert caught.value.message.startswith(message)


def test_a_spec_survives_json():
    spec = rack(HERE, nodes=(node(1, extra_addresses=("10.9.0.1/16",)), node(2)))
    assert RackSpec.from_json(json.loads(json.dumps(spec.to_json()))) == spec


def test_leaf_ports_survive_json_and_no_leaf_is_called_as_a_node():
    ports = (LeafPort("leaf1", "swp1"), None)
    one = node(1, extra_addresses=("10.9.0.1/24", "10.9.1.1/24"), extra_mtus=(9000, 1500), leaf_ports=ports)
    spec = rack(HERE, nodes=(one, node(2)))
    assert RackSpec.from_json(json.loads(json.dumps(spec.to_json()))) == spec
    assert spec.leaves == ("leaf1",)
    assert [one.leaf_port(number) for number in range(3)] == [None, *ports]
    with pytest.raises(LabError, match="leaf1 is used twice"):
        rack(HERE, nodes=(one, node(2, name="leaf1")))


def test_a_node_with_kubelet_survives_json():
    spec = rack(HERE, nodes=(node(1, kubelet=True), node(2)), kubernetes=True)
    assert RackSpec.from_json(json.loads(json.dumps(spec.to_json()))) == spec


def test_a_virtual_machine_survives_json():
    shape = VmSpec(sockets=2, cores=3, threads=2, numa_nodes=2, data_disks_gb=(4, 1920))
    spec = rack(HERE, nodes=(node(1, cpus=12, vm=shape), node(2)))
    read = RackSpec.from_json(json.loads(json.dumps(spec.to_json())))
    assert read == spec
    assert read.nodes[0].vm == shape
    assert hash(read.nodes[0]) == hash(spec.nodes[0])  # a list where a tuple was has no hash


def test_a_virtual_machine_has_the_memory_that_a_kernel_boots_in():
    shape = VmSpec(sockets=1, cores=2, threads=1, numa_nodes=1)
    assert node(1, memory_mib=512, vm=shape).memory_mib == 512
    with pytest.raises(LabError) as caught:
        node(1, memory_mib=511, vm=shape)
    assert caught.value.message == "node node1: a virtual machine needs at least 512 MiB of memory"
    assert node(1, memory_mib=511).memory_mib == 511  # a container has the host's kernel


def test_an_unknown_node_is_answered_with_the_known_ones():
    with pytest.raises(LabError) as caught:
        rack(HERE).node("node9")
    assert caught.value.hint == "nodes: node1"

"""Nodes in which a kubelet can run: their control groups, their kernel settings, and that the machine keeps its own."""

from pathlib import Path

import pytest

from rackwright.lab import cgroup, kubelet_node
from rackwright.lab.rack import Rack
from rackwright.lab.spec import NodeSpec
from tests.racks.lab.conftest import MakeSpec
from tests.racks.lab.traces import traces

pytestmark = [pytest.mark.lab, pytest.mark.proof]


def machine_settings() -> dict[str, str]:
    return {name: Path("/proc/sys", name).read_text() for name in kubelet_node.SYSCTLS}


@pytest.mark.skipif(
    "cgroup.missing_controllers()", reason="this host has not the controllers that kubelet needs"
)
def test_a_node_may_divide_its_groups_and_the_machine_keeps_its_settings(make_spec: MakeSpec):
    before = machine_settings()
    nodes = tuple(
        NodeSpec(f"node{i}", f"10.77.0.{10 + i}", 24, image, 2, 1024, 1500, kubelet=True)
        for i, image in enumerate(("debian-13", "debian-12"), start=1)
    )
    spec = make_spec("kubelet", nodes=nodes)
    rack = Rack(spec)
    rack.up()
    for one in nodes:
        _check(rack, one.name)
    assert machine_settings() == before

    rack.reboot("node1")
    _check(rack, "node1")
    rack.fault("node2", "kill")
    rack.heal("node2")
    _check(rack, "node2")
    assert machine_settings() == before
    rack.down()
    assert traces(spec.name) == []


def _check(rack: Rack, node: str) -> None:
    for name, value in kubelet_node.SYSCTLS.items():
        assert rack.run(node, ["cat", f"/proc/sys/{name}"]) == f"{value}\n"
    groups = (
        [f"/sys/fs/cgroup/{name}" for name in cgroup.CONTROLLERS] if cgroup.has_v1() else ["/sys/fs/cgroup"]
    )
    for group in groups:
        rack.run(node, ["sh", "-c", f"mkdir {group}/probe && rmdir {group}/probe"])
    for folder in kubelet_node.FOLDERS.values():
        assert rack.run(node, ["stat", "-f", "-c", "%T", folder]) == "ext2/ext3\n"
    assert "shared" in rack.run(node, ["findmnt", "-no", "PROPAGATION", "/"])
    routes = rack.run(node, ["ip", "route"])
    assert "default via 10.77.0.1" in routes
    assert "unreachable 169.254.0.0/16" in routes
    assert rack.run(node, ["systemctl", "list-units", "--failed", "--no-legend", "--plain"]) == ""

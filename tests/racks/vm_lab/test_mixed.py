"""A container and a virtual machine on one bridge, provisioned from one cluster file."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from rackwright.errors import LabError
from tests.racks.site import Site, operations
from tests.racks.vm_lab.conftest import ADDRESS, NODE, declared

pytestmark = [pytest.mark.lab, pytest.mark.proof]
BOX = "box1"
BOX_ADDRESS = "10.76.0.11"


@pytest.fixture(scope="module")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    content = declared()
    content["ssh"] |= {"connect_timeout_seconds": 60, "command_timeout_seconds": 1800, "time_factor": 10}
    content["nodes"].append(
        {
            "nodes": BOX,
            "roles": ["worker"],
            "platform": "container",
            "sku": "lab-node",
            "addresses": {"management": BOX_ADDRESS, "fabric": "10.75.0.11"},
        }
    )
    site = Site(tmp_path_factory.mktemp("mixed"), "mixed", content)
    with site.booted():
        yield site


def test_they_reach_each_other_and_only_the_machine_has_its_own_kernel(mixed: Site) -> None:
    assert {one.name: one.state for one in mixed.rack.status().nodes} == {NODE: "ready", BOX: "ready"}
    mixed.on(NODE, f"ping -c 3 -W 10 {BOX_ADDRESS}", 120)
    mixed.on(BOX, f"ping -c 3 -W 10 {ADDRESS}", 120)
    kinds = {node: mixed.on(node, "systemd-detect-virt --container || :").strip() for node in (NODE, BOX)}
    assert kinds[NODE] == "none"
    assert kinds[BOX] != "none"
    assert mixed.on(NODE, "uname -r") != mixed.on(BOX, "uname -r")


def test_one_apply_brings_both_to_what_is_declared(mixed: Site) -> None:
    assert "2 of 2 nodes are as declared" in mixed.apply().out
    assert operations(mixed.plan(0, full=True)) == set()


@pytest.mark.parametrize(("broken", "whole", "address"), [(BOX, NODE, BOX_ADDRESS), (NODE, BOX, ADDRESS)])
def test_a_cut_cable_of_one_leaves_the_other_whole(
    mixed: Site, broken: str, whole: str, address: str
) -> None:
    reach_it = f"ping -c 3 -W 10 {address}"
    mixed.fault(broken, "cut")
    faults = {one.name: set(one.faults) for one in mixed.rack.status().nodes}
    assert faults == {broken: {"cut"}, whole: set()}
    mixed.on(whole, f"ping -c 3 -W 10 {mixed.cluster.management.gateway}", 120)
    with pytest.raises(LabError, match="100% packet loss"):
        mixed.on(whole, reach_it, 120)
    mixed.heal(broken)
    assert not any(one.faults for one in mixed.rack.status().nodes)
    mixed.on(whole, reach_it, 120)

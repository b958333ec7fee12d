"""Cables of a rack whose leaf switches have an lldpd each: as declared, and moved by hand."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import yaml

from rackwright.lab import names
from rackwright.lab.process import run, wait_until
from tests.racks.site import Site

pytestmark = [pytest.mark.lab, pytest.mark.proof]

_DECLARED = """\
version: 1
cluster: {name: "", domain: cabling.test}
defaults: {os: debian-13, platform: container, sku: lab-node, lab: {cpus: 1, memory_mib: 512}}
networks:
  management: {purpose: management, cidr: 10.95.0.0/24, gateway: 10.95.0.1}
  fabric: {purpose: fabric, kind: ethernet, cidr: 10.96.0.0/24, rails: 2, mtu: 9000}
fabrics:
  fabric: {port_name: "swp{port}"}
ssh: {user: rack, key: .lab/id_ed25519, known_hosts: .lab/known_hosts}
mirrors: {apt_proxy: "http://10.95.0.1:3142"}
nodes:
  - {nodes: head1, roles: [head], addresses: {management: 10.95.0.10}}
  - nodes: worker[1-4]
    roles: [worker]
    addresses: {management: 10.95.0.11, fabric: 10.96.0.11}
    rack: r[1-2]
    position: 1
    switch: ["leaf[1,3]", "leaf[2,4]"] # a unit of two nodes: leaf1 and leaf2, another: leaf3 and leaf4
roles:
  base: {}
  lldp: {}
"""
_HEARD_SECONDS = 60
"""The lab's leaves announce themselves every 2 s, and are forgotten after 8."""
Cable = tuple[str, int]
"""A node and its port: 1 is rail 0."""


@pytest.fixture(scope="module")
def booted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """The rack, applied once."""
    site = Site(tmp_path_factory.mktemp("cabling"), "cabling", yaml.safe_load(_DECLARED))
    with site.booted():
        site.apply()
        yield site


@pytest.fixture
def rack(booted: Site) -> Site:
    """The rack, once every leaf has been heard on every port again."""
    wait_until(
        lambda: check(booted, expect=None)["status"] == "PASS", "all leaves to be heard", _HEARD_SECONDS
    )
    return booted


def check(rack: Site, *options: str, expect: int | None = 0) -> dict[str, Any]:
    ran = rack.cli("fabric", "check", str(rack.file), "--json", *options, expect=expect)
    [found] = json.loads(ran.out)["fabrics"]
    return dict(found)


def found_in_time(rack: Site, kind: str) -> list[dict[str, Any]]:
    """The findings, once LLDP has heard the change: the one that is waited for, and all others."""
    findings: list[dict[str, Any]] = []

    def heard() -> bool:
        findings[:] = check(rack, expect=None)["findings"]
        return [one["kind"] for one in findings] == [kind]

    wait_until(heard, f"one finding `{kind}`", _HEARD_SECONDS)
    return findings


def plug(rack: Site, cable: Cable, into: Cable) -> None:
    """Put the leaf's end of a cable where that of another one is declared."""
    node, port = cable
    end, wire = names.interface(f"p{port}", node), names.interface(f"c{into[1]}", into[0])
    run(["ip", "-n", names.namespace(rack.name), "link", "set", end, "master", wire], timeout=30)


@contextmanager
def swapped(rack: Site, one: Cable, other: Cable) -> Iterator[None]:
    plug(rack, one, other)
    plug(rack, other, one)
    try:
        yield
    finally:
        plug(rack, one, one)
        plug(rack, other, other)


def test_the_cabling_is_as_declared_and_nodes_reach_each_other_over_the_leaves(rack: Site) -> None:
    found = check(rack)
    assert (found["cables"], found["intact"], found["findings"]) == (8, 8, [])
    for rail in range(2):
        rack.on("worker1", f"ping -c 1 -W 5 -M do -s 8900 10.96.0.{14 + 128 * rail}")
    assert operations(rack) == 0


def operations(rack: Site) -> int:
    return len([one for node in rack.plan(0)["nodes"] for one in node["operations"]])


@pytest.mark.parametrize(
    ("one", "other", "kind"),
    [
        pytest.param(("worker1", 1), ("worker2", 1), "cables swapped", id="on one leaf"),
        pytest.param(("worker1", 1), ("worker3", 1), "cables swapped", id="between leaves"),
        pytest.param(("worker1", 1), ("worker1", 2), "wrong rail", id="rails of a node"),
    ],
)
def test_two_cables_swapped_are_one_finding_that_names_both(
    rack: Site, one: Cable, other: Cable, kind: str
) -> None:
    with swapped(rack, one, other):
        [finding] = found_in_time(rack, kind)
        assert finding["status"] == "FAIL"
        for node, port in (one, other):
            assert f"{node} rail {port - 1} (rack r" in finding["text"]


def test_a_cable_that_is_cut_is_a_port_that_is_down(rack: Site) -> None:
    link = names.interface("e1", "worker2")
    cable = ["ip", "-n", names.namespace(rack.name), "link", "set", link]
    run([*cable, "down"], timeout=30)
    try:
        [finding] = found_in_time(rack, "port down")
        assert finding["text"].startswith(
            "worker2 rail 0 (rack r1 position 2) has no link; leaf1 port 2 was declared"
        )
        assert check(rack, "--limit", "worker1")["findings"] == []
    finally:
        run([*cable, "up"], timeout=30)


def test_a_node_that_cannot_be_asked_is_unknown(rack: Site) -> None:
    rack.on(
        "worker3", "systemctl stop lldpd.service lldpd.socket 2>/dev/null || systemctl stop lldpd.service"
    )
    try:
        found = check(rack, expect=4)
        assert [(one["status"], one["ends"]) for one in found["findings"]] == [("UNKNOWN", ["worker3"])]
        ran = rack.cli("verify", str(rack.file), "--role", "lldp", expect=3)
        assert "lldpd.service is inactive" in ran.out
    finally:
        rack.on("worker3", "systemctl start lldpd.service")


def test_a_leaf_that_falls_silent_is_unknown_and_no_missing_cable(rack: Site) -> None:
    end = names.interface("c2", "worker4")
    wire = ["ip", "-n", names.namespace(rack.name), "link", "set", end, "type", "bridge", "group_fwd_mask"]
    run([*wire, "0"], timeout=30)
    try:
        [finding] = found_in_time(rack, "not read")
        assert finding["status"] == "UNKNOWN"
        assert (
            finding["text"]
            == "worker4 rail 1 (rack r2 position 2) has a link but receives no LLDP: check that the switch sends it"
        )
    finally:
        run([*wire, str(0x4000)], timeout=30)

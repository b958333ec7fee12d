"""A node's network on a machine with its own kernel: names, VLANs, bonds, and changes that would cut it off.

The head is a container, which answers on the management network; the worker is a virtual machine with three ports.
"""

from __future__ import annotations

import json
import re
import socket
import struct
import time
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from rackwright.lab import names
from rackwright.lab.process import run, wait_until
from rackwright.roles.firewall.rules import TABLE
from tests.racks.site import Site, operations

pytestmark = [pytest.mark.lab, pytest.mark.proof]

NODE = "worker1"
APPLY_SECONDS = 1800
CONFIRM_SECONDS = 40
FACTOR = 3
_LIMIT = CONFIRM_SECONDS * FACTOR
_SLACK = 150
"""Seconds that an emulated machine on a busy host may take longer than armed to put its network back."""
_RESTORED = re.compile(r"the node restored itself after (\d+) s")
_DECLARED = f"""\
version: 1
cluster: {{name: "", domain: net.test}}
defaults: {{os: debian-13}}
networks:
  management: {{purpose: management, cidr: 10.88.0.0/24, gateway: 10.88.0.1}}
  fabric: {{purpose: fabric, cidr: 10.89.0.0/24, rails: 2}}
ssh:
  user: rack
  key: .lab/id_ed25519
  known_hosts: .lab/known_hosts
  connect_timeout_seconds: 60
  command_timeout_seconds: 1800
  time_factor: {FACTOR}
mirrors: {{apt_proxy: "http://10.88.0.1:3142"}}
skus:
  three-ports:
    vendor: rackwright
    description: A virtual machine with a management port and two fabric ports
    sockets: 1
    cores_per_socket: 1
    threads_per_core: 1
    memory_mib: 1024
    nics:
      - {{purpose: management, kind: ethernet, speed_gbps: 10}}
      - {{purpose: fabric, kind: ethernet, speed_gbps: 10, rail: 0}}
      - {{purpose: fabric, kind: ethernet, speed_gbps: 10, rail: 1}}
    sources:
      - {{text: "By definition: the smallest machine whose ports can be bonded", read: 2026-11-24}}
nodes:
  - nodes: head1
    roles: [head]
    platform: container
    sku: lab-node
    lab: {{cpus: 1, memory_mib: 512}}
    addresses: {{management: 10.88.0.10}}
  - nodes: worker1
    roles: [worker]
    platform: vm
    sku: three-ports
    lab: {{cpus: 1, memory_mib: 1024}}
    addresses: {{management: 10.88.0.11, fabric: 10.89.0.11}}
roles:
  base: {{}}
  network:
    interfaces:
      mgmt0: {{pci: "0000:00:04.0"}}
      rail0: {{pci: "0000:00:05.0"}}
      rail1: {{pci: "0000:00:06.0"}}
    networks:
      management: {{"on": mgmt0}} # quoted for these tests' own reader, to which a bare `on` is true
      fabric: {{"on": [rail0, rail1]}}
    policy_routing: rails
    confirm_seconds: {CONFIRM_SECONDS}
  firewall:
    confirm_seconds: {CONFIRM_SECONDS}
"""
_BONDED = {
    "interfaces": {"mgmt0": {"pci": "0000:00:04.0"}, "mgmt1": {"pci": "0000:00:05.0"}},
    "bonds": {"mgmt": {"interfaces": ["mgmt0", "mgmt1"], "mode": "active-backup"}},
    "networks": {"management": {"on": "mgmt"}},
    "confirm_seconds": CONFIRM_SECONDS,
}


class Bench:
    """The rack as these tests ask it."""

    def __init__(self, site: Site) -> None:
        self.site = site

    def apply(self, role: str = "network", expect: int = 0) -> str:
        arguments = ("apply", str(self.site.file), "--limit", NODE, "--role", role, "--yes")
        ran = self.site.cli(*arguments, expect=expect, timeout=APPLY_SECONDS)
        return ran.out + ran.err

    def on(self, script: str, timeout: float = 300) -> str:
        return self.site.on(NODE, script, timeout)

    def network(self) -> tuple[str, str]:
        """All files and all of the live network that a rollback has to bring back."""
        files = self.on("cd /etc/systemd/network && sha256sum *")
        live = self.on("ip -br link | awk '{print $1, $3}'; ip -4 -br addr; ip -4 route; ip -4 rule")
        mtus = self.on("for p in /sys/class/net/*; do echo ${p##*/} $(cat $p/mtu); done")
        return files, live + mtus

    def checks(self, expect: int) -> dict[str, Any]:
        """Results of the role's checks on the node."""
        ran = self.site.cli("verify", str(self.site.file), "--role", "network", "--json", expect=expect)
        found = json.loads(ran.out)["results"]
        return {one["check"]: one for one in found if one["node"] == NODE}

    def cable(self, port: int, bridge: str) -> None:
        """Plug the other end of a port's cable into another switch."""
        tap = names.interface(f"e{port}", NODE)
        run(["ip", "-n", names.namespace(self.site.name), "link", "set", tap, "master", bridge], timeout=30)


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    """The rack, its network as declared."""
    site = Site(tmp_path_factory.mktemp("net"), "net", yaml.safe_load(_DECLARED))
    with site.booted():
        made = Bench(site)
        began = time.monotonic()
        made.apply()
        print(f"the first change of the network took {time.monotonic() - began:.0f} s")
        yield made


def test_ports_have_their_names_rails_their_tables_and_nothing_is_left(bench: Bench):
    assert bench.on("cd /sys/class/net && echo mgmt0 rail? && echo enp*").split() == [
        "mgmt0",
        "rail0",
        "rail1",
        "enp*",
    ]
    assert "default via 10.88.0.1 dev mgmt0" in bench.on("ip -4 route")
    assert "lookup 1001" in bench.on("ip -4 rule show from 10.89.0.139")
    plan = bench.site.plan(0, role="network", full=True)
    assert [node for node in plan["nodes"] if node["operations"]] == []
    assert {one["status"] for one in bench.checks(0).values()} <= {"PASS", "OUT OF SCOPE"}


def _wrong_vlan(content: dict[str, Any]) -> None:
    content["networks"]["management"]["vlan"] = 42


def _wrong_mtu(content: dict[str, Any]) -> None:
    content["networks"]["management"]["mtu"] = 9000
    # The rack's bridge takes for itself what is larger than its MTU, and answers in fragments; no switch does.
    del content["networks"]["management"]["gateway"]


def _wrong_address(content: dict[str, Any]) -> None:
    # A prefix that has the head and not the rack's bridge, from which rackwright comes: no way back to it.
    content["networks"]["management"]["cidr"] = "10.88.0.8/29"
    del content["networks"]["management"]["gateway"]


@pytest.mark.parametrize(
    ("wrong", "says"),
    [(_wrong_vlan, "not confirmed"), (_wrong_mtu, "MTU"), (_wrong_address, "not confirmed")],
    ids=["wrong VLAN", "wrong MTU", "wrong address"],
)
def test_a_change_that_cuts_the_node_off_is_undone_by_the_node(bench: Bench, wrong, says):
    before = bench.network()
    with bench.site.declaring(wrong):
        said = bench.apply(expect=1)
    found = _RESTORED.search(said)
    assert found, said
    assert says in said
    print(f"{wrong.__name__}: restored after {found[1]} s")
    assert int(found[1]) < _LIMIT + _SLACK
    assert bench.network() == before
    bench.site.plan(0, role="network", full=True)


def test_a_power_cut_with_an_unconfirmed_change_brings_the_old_network_back(bench: Bench):
    before = bench.network()[0]
    with bench.site.declaring(_wrong_vlan):
        arguments = ("apply", str(bench.site.file), "--limit", NODE, "--role", "network", "--yes")
        running = bench.site.start(*arguments)
        wait_until(lambda: "42" in bench.on("ls /etc/systemd/network"), "the change to land", APPLY_SECONDS)
        bench.site.fault(NODE, "power-cut")
        assert running.wait(APPLY_SECONDS).status == 1
    wait_until(lambda: bench.network()[0] == before, "the machine to boot", 900)
    assert "why boot" in bench.on("rackwright-rollback state network")
    bench.site.plan(0, role="network", full=True)


def test_rules_that_lock_rackwright_out_are_undone_by_the_node(bench: Bench):
    def lock_out(content: dict[str, Any]) -> None:
        content["roles"]["firewall"] |= {"zones": {"management": "closed"}, "ssh_from": ["192.0.2.0/24"]}

    bench.apply("firewall")
    before = bench.on(f"nft -s list table {TABLE}")
    with bench.site.declaring(lock_out):
        said = bench.apply("firewall", expect=1)
    found = _RESTORED.search(said)
    assert found, said
    print(f"firewall: restored after {found[1]} s")
    assert int(found[1]) < _LIMIT + _SLACK
    assert bench.on(f"nft -s list table {TABLE}") == before


def test_a_vlan_has_its_tag_on_the_wire(bench: Bench):
    def tagged(content: dict[str, Any]) -> None:
        content["networks"]["storage"] = {"purpose": "storage", "cidr": "10.90.0.0/24", "vlan": 77}
        content["nodes"][1]["addresses"]["storage"] = "10.90.0.11"
        content["roles"]["network"]["networks"]["storage"] = {"on": "rail0"}

    with bench.site.declaring(tagged):
        bench.apply()
        with _listening(bench, names.interface("e1", NODE)) as wire:
            bench.on("ping -c 3 -W 1 10.90.0.99 || true")
            assert _tag_of_arp(wire) == 77
    bench.apply()
    assert "rail0.77" not in bench.on("ls /sys/class/net")


def test_a_bond_goes_on_without_one_cable_and_verify_names_the_port(bench: Bench):
    def bonded(content: dict[str, Any]) -> None:
        content["roles"]["network"] = dict(_BONDED)

    bench.cable(1, names.BRIDGE)
    with bench.site.declaring(bonded):
        bench.apply()
        assert bench.checks(0)["every bond has all its ports"]["status"] == "PASS"
        active = bench.on("cat /sys/class/net/mgmt/bonding/active_slave").strip()
        bench.site.rack.fault(NODE, "link:down", active.removeprefix("mgmt"))
        ping = "ping -c 5 -W 5 10.88.0.1"
        assert " 0% packet loss" in bench.on(f"sleep 5; {ping}")
        found = bench.checks(3)["every bond has all its ports"]
        assert found["status"] == "FAIL"
        assert f"{active} of mgmt is down" in found["evidence"]
        bench.site.heal(NODE)
    bench.apply()


def test_after_all_of_it_a_second_apply_is_empty(bench: Bench):
    bench.site.apply()
    assert operations(bench.site.plan(0, full=True)) == set()
    assert "nothing to change on 2 of 2 nodes" in bench.site.apply().out


class _Listening:
    """A raw socket on an interface of the rack's namespace."""

    def __init__(self, rack: str, interface: str) -> None:
        with _Namespace(rack):
            self.socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
            self.socket.bind((interface, 0))
            self.socket.setsockopt(
                263, 8, 1
            )  # SOL_PACKET, PACKET_AUXDATA: the kernel takes the tag out of the frame
            self.socket.settimeout(60)

    def __enter__(self) -> socket.socket:
        return self.socket

    def __exit__(self, *_: object) -> None:
        self.socket.close()


def _listening(bench: Bench, interface: str) -> _Listening:
    return _Listening(bench.site.name, interface)


class _Namespace:
    """This thread in the rack's network namespace for a moment."""

    def __init__(self, rack: str) -> None:
        self._path = names.NETNS / names.namespace(rack)

    def __enter__(self) -> None:
        import ctypes

        self._libc = ctypes.CDLL(None, use_errno=True)
        self._own = open("/proc/thread-self/ns/net", "rb")
        with self._path.open("rb") as inside:
            assert self._libc.setns(inside.fileno(), 0x40000000) == 0

    def __exit__(self, *_: object) -> None:
        assert self._libc.setns(self._own.fileno(), 0x40000000) == 0
        self._own.close()


def _tag_of_arp(wire: socket.socket) -> int | None:
    """The VLAN of the first ARP request for an unused address."""
    wanted = socket.inet_aton("10.90.0.99")
    end = time.monotonic() + 120
    while time.monotonic() < end:
        frame, auxiliary, _, _ = wire.recvmsg(2048, 256)
        if wanted not in frame:
            continue
        for level, kind, data in auxiliary:
            if (level, kind) == (263, 8):  # struct tpacket_auxdata
                status, _, _, _, _, tag, _ = struct.unpack("IIIHHHH", data[:20])
                return tag & 0xFFF if status & 0x10 else None
    return None

"""RDMA between two virtual machines whose fabric ports carry soft-RoCE: as declared, measured, and broken by hand."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pytest
import yaml

from rackwright.lab.process import wait_until
from tests.racks.site import Site, operations
from tests.racks.verified import results

pytestmark = [pytest.mark.lab, pytest.mark.proof]

_DECLARED = """\
version: 1
cluster: {name: "", domain: rdma.test}
defaults: {os: debian-13}
networks:
  management: {purpose: management, cidr: 10.97.0.0/24, gateway: 10.97.0.1}
  fabric: {purpose: fabric, kind: roce, cidr: 10.98.0.0/24, rails: 2, mtu: 9000}
fabrics:
  fabric: {port_name: "swp{port}"}
ssh:
  user: rack
  key: .lab/id_ed25519
  known_hosts: .lab/known_hosts
  connect_timeout_seconds: 60
  command_timeout_seconds: 3600
  time_factor: 10
mirrors: {apt_proxy: "http://10.97.0.1:3142"}
skus:
  two-rails:
    vendor: rackwright
    description: A virtual machine with a management port and two fabric ports that carry soft-RoCE
    sockets: 1
    cores_per_socket: 2
    threads_per_core: 1
    memory_mib: 1536
    nics:
      - {purpose: management, kind: ethernet, speed_gbps: 10}
      - {purpose: fabric, kind: roce, speed_gbps: 10, rail: 0}
      - {purpose: fabric, kind: roce, speed_gbps: 10, rail: 1}
    sources:
      - {text: "By definition: the smallest machine that has two rails", read: 2026-11-25}
nodes:
  - nodes: head1
    roles: [head]
    platform: container
    sku: lab-node
    lab: {cpus: 2, memory_mib: 1024}
    addresses: {management: 10.97.0.10}
  - nodes: worker[1-2]
    roles: [worker]
    platform: vm
    sku: two-rails
    lab: {cpus: 2, memory_mib: 1536}
    addresses: {management: 10.97.0.11, fabric: 10.98.0.11}
    switch: [leaf1, leaf2]
roles:
  base: {}
  access:
    users:
      - {name: ada, uid: 3000}
  network:
    interfaces:
      mgmt0: {pci: "0000:00:04.0"}
      rail0: {pci: "0000:00:05.0"}
      rail1: {pci: "0000:00:06.0"}
    networks:
      management: {"on": mgmt0} # quoted for these tests' own reader, to which a bare `on` is true
      fabric: {"on": [rail0, rail1]}
    policy_routing: rails
  tuning: {}
  time: {max_offset_seconds: 0.25}
  lldp: {}
  rdma:
    devices:
      rxe_rail0: {soft: rxe, rail: 0}
      rxe_rail1: {soft: rxe, rail: 1}
  roce: {backend: dcb, dscp: 26, priority: 3, cnp_dscp: 48, cnp_priority: 6, pfc: true}
  nccl: {}
  munge: {}
  mariadb: {}
  hpc_stack: {compilers: false, mpi4py: true}
  slurm:
    memory_headroom_mib: 64
    partitions:
      main: {nodes: "worker[1-2]", default: true, max_time: 1-00:00:00}
    accounts:
      research: {description: Research groups}
    users:
      ada: {default_account: research}
    timeouts: {message: 100, unkillable_step: 500, tcp: 60}
burnin:
  engine: mpi
  max_bytes: 1048576
  iterations: 3
  floor_busbw_gbs: 0.0001
  floor_source: "lab floor: 0.1 MB/s, which an emulated machine passes and a broken transport does not"
"""
WORKERS = ("worker1", "worker2")
FABRIC_ROLES = ("lldp", "rdma", "roce", "nccl")
_HEARD_SECONDS = 120


@pytest.fixture(scope="module")
def rack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """The rack, applied once."""
    site = Site(tmp_path_factory.mktemp("rdma"), "rdma", yaml.safe_load(_DECLARED))
    with site.booted():
        site.apply()
        yield site


def test_a_second_apply_is_empty_and_every_check_passes(rack: Site) -> None:
    assert operations(rack.plan(0)) == set()
    found = results(rack, 0)
    assert set(found) == {"PASS", "OUT OF SCOPE"}
    passed = {one["role"] for one in found["PASS"] if one["node"] == WORKERS[0]}
    assert set(FABRIC_ROLES) <= passed
    # what is out of scope of the workers' fabric: a device made in software has no priorities
    beyond = {one["role"] for one in found["OUT OF SCOPE"] if one["node"] in WORKERS}
    assert beyond & set(FABRIC_ROLES) <= {"roce", "rdma"}


def test_the_cabling_is_as_declared(rack: Site) -> None:
    def checked() -> dict[str, Any]:
        [found] = json.loads(rack.cli("fabric", "check", str(rack.file), "--json", expect=None).out)[
            "fabrics"
        ]
        return dict(found)

    wait_until(lambda: checked()["status"] == "PASS", "all leaves to be heard", _HEARD_SECONDS)
    assert checked()["intact"] == 4


def sent_packets(rack: Site, node: str) -> int:
    """What left by RDMA, asked of the kernel past rackwright."""
    return sum(
        map(int, rack.on(node, "cat /sys/class/infiniband/rxe_rail*/ports/1/hw_counters/sent_pkts").split())
    )


def burnin(rack: Site, *options: str, expect: int = 0) -> dict[str, Any]:
    [group] = rack.cli("burnin", str(rack.file), *options, "--json", expect=expect).json()["groups"]
    return dict(group)


def test_burnin_measures_every_rail_and_mpi_goes_over_verbs(rack: Site) -> None:
    before = {node: sent_packets(rack, node) for node in WORKERS}
    group = burnin(rack, "--profile", "acceptance")
    assert {one["status"] for one in group["findings"]} <= {"OUT OF SCOPE"}, group["findings"]
    for rail in range(2):
        figures = [one["gbps"] for one in group["ports"] if one["rail"] == rail]
        assert min(figures, default=0) > 0.01
    # an all-reduce of 1 MiB alone is hundreds of packets of 4 KiB
    assert all(sent_packets(rack, node) - before[node] > 1000 for node in WORKERS)


def by_hand(script: str) -> Callable[[Site], object]:
    return lambda rack: rack.on("worker1", script)


class Fault(NamedTuple):
    """Something that happens to worker1, how it is repaired, and the evidence of the failing check."""

    happens: Callable[[Site], object]
    undone: Callable[[Site], object]
    check: tuple[str, str]
    says: str


FAULTS = {
    "link down": Fault(
        lambda rack: rack.fault("worker1", "link:down"),  # of the last port
        lambda rack: rack.heal("worker1"),
        ("rdma", "every RDMA port is active"),
        "rxe_rail1 (rail 1 of fabric) is DOWN",
    ),
    "wrong MTU": Fault(
        by_hand("ip link set rail0 mtu 1500"),
        by_hand("ip link set rail0 mtu 9000"),
        ("roce", "interfaces and RDMA ports have the fabric's MTU"),
        "rxe_rail0 (fabric rail 0): rail0 has MTU 1500, not 9000",
    ),
    "wrong subnet": Fault(
        by_hand("ip address del 10.98.0.11/25 dev rail0; ip address add 10.99.0.11/25 dev rail0"),
        by_hand("ip address del 10.99.0.11/25 dev rail0; networkctl reconfigure rail0"),
        ("roce", "each rail's device has the GID of its address"),
        "rxe_rail0 (fabric rail 0): no RoCE v2 GID for 10.98.0.11",
    ),
}


def failures(rack: Site, expect: int | None) -> dict[tuple[str, str], str]:
    """Evidence of failed checks of the fabric's roles on worker1; none may be unknown."""
    asked = [word for role in FABRIC_ROLES for word in ("--role", role)]
    found = results(rack, expect, "--limit", "worker1", *asked)
    assert "UNKNOWN" not in found, found["UNKNOWN"]
    return {(one["role"], one["check"]): one["evidence"] for one in found.get("FAIL", [])}


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
def test_a_fault_is_named_and_gone_with_its_cause(rack: Site, fault: Fault) -> None:
    fault.happens(rack)
    try:
        found = failures(rack, 3)
        assert fault.says in found[fault.check], found
    finally:
        fault.undone(rack)
    wait_until(lambda: failures(rack, None) == {}, "every check to pass again", 300)


def test_a_transport_that_falls_back_to_tcp_fails_burnin(rack: Site) -> None:
    """The devices are active and as declared; programs that find no character device use TCP without a word."""
    rack.on("worker2", "mkdir /run/kept && mv /dev/infiniband/uverbs* /run/kept")
    try:
        group = burnin(rack, expect=3)
    finally:
        rack.on("worker2", "mv /run/kept/* /dev/infiniband && rmdir /run/kept")
    said = [one["text"] for one in group["findings"] if one["status"] == "FAIL"]
    assert any(text.startswith("transport: roce is declared and RDMA was not used") for text in said), said

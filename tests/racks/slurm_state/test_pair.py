"""A pair of slurmctld whose state is on a declared mount: without it, neither takes over with an empty state."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import yaml

from tests.racks.patience import APPLY_SECONDS, settled, until
from tests.racks.site import Site, operations
from tests.racks.slurm_jobs import as_ada
from tests.racks.verified import results

pytestmark = [pytest.mark.lab, pytest.mark.proof]
STORE, PRIMARY, BACKUP = "store1", "head1", "head2"
STATE = "/shared/state"
_DECLARED = """\
version: 1
cluster: {name: "", domain: pair.test}
defaults: {os: debian-13, platform: vm, sku: plain-vm, lab: {cpus: 2, memory_mib: 1536}}
networks:
  management: {purpose: management, cidr: 10.90.0.0/24, gateway: 10.90.0.1}
ssh:
  user: rack
  key: .lab/id_ed25519
  known_hosts: .lab/known_hosts
  connect_timeout_seconds: 60
  command_timeout_seconds: 3600
  time_factor: 10
mirrors: {apt_proxy: "http://10.90.0.1:3142"}
skus:
  plain-vm:
    vendor: rackwright
    description: Lab virtual machine
    sockets: 1
    cores_per_socket: 2
    threads_per_core: 1
    memory_mib: 1536
    numa_nodes: 1
    nics: [{purpose: management, kind: ethernet, speed_gbps: 10}]
    sources: [{text: "By definition: the size the lab rack gives it", read: 2026-11-26}]
storage:
  state:
    {kind: nfs, purpose: state, servers: [store1], export: /srv/state, path: /shared/state, nodes: "head[1-2]", automount: false}
nodes:
  - {nodes: store1, roles: [storage], addresses: {management: 10.90.0.9}}
  - {nodes: head1, roles: [head], primary: true, addresses: {management: 10.90.0.10}}
  - {nodes: head2, roles: [head, worker], addresses: {management: 10.90.0.11}}
roles:
  base: {}
  access: {users: [{name: ada, uid: 3000}]}
  tuning: {}
  time: {max_offset_seconds: 0.25}
  nfs_server: {root_access: {state: "head[1-2]"}}
  nfs_client: {}
  munge: {}
  mariadb: {}
  slurm:
    backups: [head2]
    state_dir: /shared/state/slurmctld
    memory_headroom_mib: 64
    partitions: {main: {nodes: head2, default: true, max_time: "01:00:00"}}
    accounts: {research: {}}
    users: {ada: {default_account: research}}
    timeouts: {message: 100, unkillable_step: 500, tcp: 60}
"""


@pytest.fixture(scope="module")
def booted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """The three machines, applied once."""
    declared: dict[str, Any] = yaml.safe_load(_DECLARED)
    site = Site(tmp_path_factory.mktemp("pair"), "pair", declared)
    with site.booted():
        site.cli("apply", str(site.file), "--yes", timeout=APPLY_SECONDS)
        yield site


@pytest.fixture
def pair(booted: Site, put_right: Callable[[Site], None]) -> Site:
    """The pair as declared: what a failed test left behind is repaired first."""
    put_right(booted)
    return booted


def controller(site: Site, node: str) -> str:
    return site.on(node, "systemctl is-active slurmctld || :").strip()


def queue(site: Site, node: str) -> list[str]:
    """Jobs in the queue, as a controller that answers has them."""
    return site.on(node, "timeout 120 squeue -h -o '%i %T' || :", 180).splitlines()


def cut_store(site: Site, *, back: bool = False) -> None:
    """The NFS server answers the backup no more; what it sends goes nowhere."""
    site.on(STORE, f"ip route {'del' if back else 'add'} blackhole 10.90.0.11/32")


def test_the_pair_is_as_declared(pair: Site) -> None:
    assert operations(pair.plan(0)) == set()
    found = results(pair, 0)
    assert set(found) <= {"PASS", "OUT OF SCOPE"}, found


def test_a_backup_without_the_state_does_not_take_over(pair: Site) -> None:
    line = "sbatch --parsable -D / -o /dev/null -t 50 --mem=64 -H --wrap 'sleep 600'"
    held = as_ada(pair, PRIMARY, line).split()[0]
    jobs = queue(pair, PRIMARY)
    assert f"{held} PENDING" in jobs
    # the backup loses the mount, and its slurmctld ends with it; then the server is silent, and the primary dies
    pair.on(BACKUP, f"umount -l {STATE}")
    until(lambda: controller(pair, BACKUP) in ("inactive", "failed"), "end of the backup")
    cut_store(pair)
    try:
        pair.on(BACKUP, "systemctl start --no-block slurmctld || :")
        pair.fault(PRIMARY, "kill")
        end = time.monotonic() + 400  # SlurmctldTimeout is 120 s
        while time.monotonic() < end:
            assert controller(pair, BACKUP) != "active" or queue(pair, BACKUP) == []
            assert "slurmctld" not in pair.on(BACKUP, f"ls {STATE} 2>/dev/null || :", 120)
            time.sleep(30)
        assert pair.on(BACKUP, "timeout 60 scontrol ping || :", 120).count(" UP") == 0
    finally:
        cut_store(pair, back=True)
        pair.heal(PRIMARY)
    settled(pair, PRIMARY)
    # nothing was lost: the primary has the queue, and an apply brings the backup back
    until(lambda: queue(pair, PRIMARY) == jobs, "queue")
    pair.cli("apply", str(pair.file), "--yes", timeout=APPLY_SECONDS)
    assert controller(pair, BACKUP) == "active"
    # and with its mount it does take over
    pair.fault(PRIMARY, "kill")
    try:
        until(lambda: queue(pair, BACKUP) == jobs, "takeover")
    finally:
        pair.heal(PRIMARY)
    settled(pair, PRIMARY)


def test_a_store_that_dies_stops_nothing_for_good(pair: Site) -> None:
    before = queue(pair, PRIMARY)
    pair.fault(STORE, "kill")
    try:
        found = results(pair, None, "--role", "nfs_client", "--limit", "head[1-2]")
        assert {one["node"] for one in found["UNKNOWN"]} == {PRIMARY, BACKUP}
    finally:
        pair.heal(STORE)
    settled(pair, STORE)
    until(lambda: queue(pair, PRIMARY) == before, "the same queue")
    until(lambda: set(results(pair, None)) <= {"PASS", "OUT OF SCOPE"}, "a healthy pair", 1500)

"""One rack for the set: two heads and a worker; slurmdbd and its database on the second head."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import pytest
import yaml

from rackwright.status import Status
from rackwright.verify import verify
from tests.racks.site import REPO, Site

_DECLARED = """\
version: 1
cluster: {name: "", domain: lab.test}
defaults: {os: debian-13, platform: container, sku: lab-node, lab: {cpus: 2, memory_mib: 2048}}
networks:
  management: {purpose: management, cidr: 10.93.0.0/24, gateway: 10.93.0.1}
ssh: {user: rack, key: .lab/id_ed25519, known_hosts: .lab/known_hosts}
mirrors: {apt_proxy: "http://10.93.0.1:3142"}
nodes:
  - {nodes: head1, roles: [head], primary: true, addresses: {management: 10.93.0.10}}
  - {nodes: head2, roles: [head], addresses: {management: 10.93.0.11}}
  - {nodes: worker1, roles: [worker], addresses: {management: 10.93.0.12}}
roles:
  base: {}
  access: {users: [{name: ada, uid: 3000}]}
  munge: {}
  mariadb: {node: head2}
  slurm:
    accounting: {dbd_host: head2}
    licenses: {matlab: 20}
    partitions: {main: {nodes: worker1, default: true, qos: big, max_time: "01:00:00"}}
    qos: {big: {priority: 10}}
    accounts: {research: {}}
    users: {ada: {default_account: research}}
    reservations:
      maint: {nodes: ALL, start: "2035-01-01T08:00", duration: "04:00:00", users: [root], flags: [MAINT, IGNORE_JOBS]}
      weekly: {nodes: worker1, start: "2026-11-02T03:00", duration: "01:00:00", accounts: [research], flags: [WEEKLY]}
      gone: {nodes: worker1, start: "2020-01-01T08:00", end: "2020-01-02T08:00", users: [root]}
"""


@pytest.fixture(scope="session")
def rack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """The rack, applied once from bare nodes."""
    site = Site(tmp_path_factory.mktemp("services"), "sv", yaml.safe_load(_DECLARED))
    with site.booted():
        site.apply()
        yield site


def share_state(site: Site, *heads: str) -> None:
    """One file system at /shared of these heads."""
    command = [sys.executable, "-m", "tests.racks.slurm_services.shared", site.name, "/shared", *heads]
    subprocess.run(command, check=True, timeout=240, cwd=REPO, env=site.environment)


def verdicts(site: Site) -> dict[tuple[str, str], tuple[Status, str]]:
    """(node, check) to status and evidence, of all that the slurm role claims and does not just pass."""
    with site.here():
        report = verify(site.cluster, roles=frozenset({"slurm", "mariadb"}))
    fine = (Status.PASS, Status.OUT_OF_SCOPE)
    return {
        (one.node, one.check): (one.status, one.evidence) for one in report.results if one.status not in fine
    }

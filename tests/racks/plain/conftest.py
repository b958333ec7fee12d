"""One small rack for the set: a head of Debian 12, a worker of Debian 13, roles without Slurm."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import yaml

from tests.racks.site import Site
from tests.racks.snapshot import Snapshot, snapshots

# Debian 12 has the Python 3.11 of CI: the drift check's tests give the head this program.
_DECLARED = """\
version: 1
cluster: {name: "", domain: lab.test}
defaults: {os: debian-13, platform: container, sku: lab-node, lab: {cpus: 2, memory_mib: 1024}}
networks:
  management: {purpose: management, cidr: 10.77.0.0/24, gateway: 10.77.0.1}
ssh: {user: rack, key: .lab/id_ed25519, known_hosts: .lab/known_hosts}
mirrors: {apt_proxy: "http://10.77.0.1:3142"}
nodes:
  - {nodes: head1, roles: [head], os: debian-12, addresses: {management: 10.77.0.10}}
  - {nodes: worker1, roles: [worker], addresses: {management: 10.77.0.11}}
roles:
  base: {packages: [jq]}
  access:
    users:
      - {name: ada, uid: 3000}
      - {name: bob, uid: 3001, sudo: true}
  tuning: {drift: repair}
  time: {drift: repair}
"""


def declared() -> dict[str, Any]:
    """The content of the set's cluster file."""
    content: dict[str, Any] = yaml.safe_load(_DECLARED)
    return content


@pytest.fixture(scope="session")
def rack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """The rack, applied once."""
    site = Site(tmp_path_factory.mktemp("plain"), "plain", declared())
    with site.booted():
        site.apply()
        yield site


@pytest.fixture(scope="session")
def baseline(rack: Site) -> dict[str, Snapshot]:
    """Every node as the first apply left it."""
    return snapshots(rack)


@pytest.fixture
def site(rack: Site, baseline: dict[str, Snapshot], put_right: Callable[[Site], None]) -> Site:
    """The rack as declared."""
    put_right(rack)
    return rack

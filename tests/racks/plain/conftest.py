"""One small rack for the set, with roles whose changes take milliseconds."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from rackwright.lab.rack import Rack
from tests.racks.slurm.site import Site
from tests.racks.slurm.snapshot import Snapshot, snapshots

_DECLARED = """\
version: 1
cluster: {name: "", domain: lab.test}
defaults: {os: debian-13, platform: container, sku: lab-node, lab: {cpus: 2, memory_mib: 1024}}
networks:
  management: {purpose: management, cidr: 10.77.0.0/24, gateway: 10.77.0.1}
ssh: {user: rack, key: .lab/id_ed25519, known_hosts: .lab/known_hosts}
mirrors: {apt_proxy: "http://10.77.0.1:3142"}
nodes:
  - {nodes: head1, roles: [head], addresses: {management: 10.77.0.10}}
  - {nodes: worker1, roles: [worker], addresses: {management: 10.77.0.11}}
roles:
  base: {packages: [jq]}
  access:
    users:
      - {name: ada, uid: 3000}
      - {name: bob, uid: 3001, sudo: true}
  tuning: {}
  time: {}
"""


def declared() -> dict[str, Any]:
    """The content of the set's cluster file."""
    content: dict[str, Any] = yaml.safe_load(_DECLARED)
    return content


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """The rack, applied once; whatever a test leaves behind, the next one begins with an apply."""
    site = Site(tmp_path_factory.mktemp("engine"), f"eng{os.getpid()}", declared())
    try:
        site.cli("lab", "up", str(site.file))
        site.apply()
        yield site
    finally:
        if site.name in Rack.names():
            Rack.named(site.name).down()


@pytest.fixture(scope="session")
def baseline(site: Site) -> dict[str, Snapshot]:
    """Every node as the first apply left it."""
    return snapshots(site)

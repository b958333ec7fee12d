"""A head of Debian 12 and a worker of Debian 13 on two networks: two versions of nft, one fabric of two rails."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import yaml

from tests.racks.site import Site

# Keys by name: a declaration that was changed for a while comes back sorted.
_DECLARED = """\
version: 1
cluster: {name: "", domain: lab.test}
defaults: {os: debian-13, platform: container, sku: lab-node, lab: {cpus: 2, memory_mib: 768}}
networks:
  fabric: {purpose: fabric, cidr: 10.79.0.0/24, rails: 2}
  management: {purpose: management, cidr: 10.77.0.0/24, gateway: 10.77.0.1}
ssh: {user: rack, key: .lab/id_ed25519, known_hosts: .lab/known_hosts}
mirrors: {apt_proxy: "http://10.77.0.1:3142"}
nodes:
  - {nodes: head1, roles: [head], os: debian-12, addresses: {management: 10.77.0.10}}
  - {nodes: worker1, roles: [worker], addresses: {fabric: 10.79.0.11, management: 10.77.0.11}}
roles:
  base: {}
  access:
    users:
      - {name: ada, uid: 3000}
  firewall: {confirm_seconds: 20}
"""


def declared() -> dict[str, Any]:
    """The content of the set's cluster file."""
    content: dict[str, Any] = yaml.safe_load(_DECLARED)
    return content


@pytest.fixture(scope="session")
def rack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """The rack, applied once."""
    site = Site(tmp_path_factory.mktemp("firewall"), "firewall", declared())
    with site.booted():
        site.apply()
        yield site


@pytest.fixture
def site(rack: Site, put_right: Callable[[Site], None]) -> Site:
    """The rack as declared."""
    put_right(rack)
    return rack

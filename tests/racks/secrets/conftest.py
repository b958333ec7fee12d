"""One rack for the set: a head with Slurm and its database, two workers."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pyrage
import pytest
import yaml

from tests.racks.site import Site

_DECLARED = """\
version: 1
cluster: {name: "", domain: lab.test}
defaults: {os: debian-13, platform: container, sku: lab-node, lab: {cpus: 2, memory_mib: 1536}}
networks:
  management: {purpose: management, cidr: 10.94.0.0/24, gateway: 10.94.0.1}
ssh: {user: rack, key: .lab/id_ed25519, known_hosts: .lab/known_hosts}
mirrors: {apt_proxy: "http://10.94.0.1:3142"}
nodes:
  - {nodes: head1, roles: [head], addresses: {management: 10.94.0.10}}
  - {nodes: "worker[1-2]", roles: [worker], addresses: {management: 10.94.0.11}}
roles:
  base: {}
  access: {users: [{name: ada, uid: 3000}]}
  munge: {}
  mariadb: {}
  slurm:
    partitions: {main: {nodes: "worker[1-2]", default: true, max_time: "01:00:00"}}
    accounts: {research: {}}
    users: {ada: {default_account: research}}
"""
NODES = ("head1", "worker1", "worker2")


@pytest.fixture(scope="session")
def rack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """The rack, applied once from bare nodes."""
    site = Site(tmp_path_factory.mktemp("secrets"), "se", yaml.safe_load(_DECLARED))
    with site.booted():
        site.apply()
        yield site


@pytest.fixture
def site(rack: Site, put_right: Callable[[Site], None]) -> Site:
    """The rack as declared."""
    put_right(rack)
    return rack


def stored(site: Site) -> dict[str, Any]:
    """The content of the store, decrypted without rackwright's help."""
    identity = (site.config / "rackwright" / "identity.age.txt").read_text().split("\n")
    key = next(line for line in identity if line.startswith("AGE-SECRET-KEY-"))
    data = (site.folder / f"{site.name}.secrets.age").read_bytes()
    content: dict[str, Any] = json.loads(pyrage.decrypt(data, [pyrage.x25519.Identity.from_str(key)]))
    return content


def keys_on_nodes(site: Site) -> dict[str, str]:
    """SHA-256 of every node's munge key."""
    return {node: site.on(node, "sha256sum </etc/munge/munge.key").split()[0] for node in NODES}

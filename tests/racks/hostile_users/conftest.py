"""A head and two workers with Slurm and podman, on which ada works and eve is hostile."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import yaml

from tests.racks.site import Site
from tests.racks.watch import Watch

# Simulated GPUs give a node a kernel log that a test can write, and something to lose.
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
  - nodes: "worker[1-2]"
    roles: [worker]
    sku: lab-h100-node
    lab: {cpus: 2, memory_mib: 2048, gpus: simulated}
    addresses: {management: 10.77.0.11}
roles:
  base: {}
  access:
    users:
      - {name: ada, uid: 3000}
      - {name: eve, uid: 3001}
      - {name: bob, uid: 3002, sudo: true}
  tuning: {}
  time: {}
  munge: {}
  mariadb: {}
  podman: {graph_root: /scratch/podman, rootless_root: /scratch/rootless, pids_limit: 0}
  health: {act: true, probe_seconds: 30, prolog_seconds: 30, drain: {clean_passes: 1}}
  slurm:
    health_check: {interval_seconds: 5, node_states: [ANY]}
    partitions: {main: {nodes: "worker[1-2]", default: true}}
    accounts: {research: {description: Research}}
    users: {ada: {default_account: research}, eve: {default_account: research}}
"""

# What Debian's prometheus-node-exporter 1.9.0 leaves; the package itself takes minutes to configure on a busy machine.
_EXPORTER = """\
useradd --system --home-dir /var/lib/prometheus --shell /usr/sbin/nologin prometheus
install -d -o prometheus -g prometheus /var/lib/prometheus /var/lib/prometheus/node-exporter
"""


def declared() -> dict[str, Any]:
    """The content of the set's cluster file."""
    content: dict[str, Any] = yaml.safe_load(_DECLARED)
    return content


@pytest.fixture(scope="session")
def rack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """The rack, applied once."""
    site = Site(tmp_path_factory.mktemp("users"), "users", declared())
    with site.booted():
        site.on("worker1", _EXPORTER)
        site.apply()
        yield site


@pytest.fixture
def site(rack: Site, put_right: Callable[[Site], None]) -> Site:
    """The rack as declared."""
    put_right(rack)
    return rack


@pytest.fixture
def watch(site: Site) -> Watch:
    """What Slurm and the nodes know of their health."""
    return Watch(site)

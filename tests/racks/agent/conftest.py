"""The wire, the image and the agent of machines under qemu."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from rackwright.clusterfile.load import load_cluster
from rackwright.image.build import build, order
from rackwright.install import agent_image
from tests.racks.agent import wire
from tests.racks.agent.bench import RACK, Bench

_CLUSTER = """\
version: 1
cluster: {name: agenttest, domain: lab.test}
defaults: {os: debian-13, platform: vm, sku: lab-node, lab: {cpus: 2, memory_mib: 2048}}
networks:
  management: {purpose: management, cidr: 10.77.0.0/24, gateway: 10.77.0.1}
  out-of-band: {purpose: bmc, cidr: 10.78.0.0/24}
ssh: {user: rack, key: .lab/id_ed25519, known_hosts: .lab/known_hosts}
boot_network: {server: 10.77.0.1}
nodes:
  - nodes: node1
    roles: [head]
    addresses: {management: 10.77.0.11}
    macs: ["02:00:5e:10:00:11"]
    bmc: {address: 10.78.0.11, user: admin, password: bmc_password}
    install: {image: root, mirror: true, disk: {serials: [RW-disk0, RW-disk1]}}
roles: {}
"""


@pytest.fixture(scope="session")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """root.tar.zst of a node whose disks are a mirror."""
    folder = tmp_path_factory.mktemp("root")
    (folder / "cluster.yaml").write_text(_CLUSTER)
    cluster = load_cluster(folder / "cluster.yaml")
    built = build(order(cluster, cluster.nodes, "root", 16), folder / "image", print)
    assert "mdadm" in {package.name for package in built.packages}
    return folder / "image/root.tar.zst"


@pytest.fixture(scope="session")
def agent() -> Path:
    """The agent image."""
    return agent_image.ensure(print)


@pytest.fixture
def bench(tmp_path: Path, agent: Path, root: Path) -> Iterator[Bench]:
    """A wire with a head."""
    with wire.wire(RACK) as namespace:
        made = Bench(tmp_path, namespace, agent, root)
        yield made
        made.close()
    assert not wire.exists(RACK)

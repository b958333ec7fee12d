"""rackwright.lab.ports: one port for each address, with a MAC that stays."""

from __future__ import annotations

from pathlib import Path

import pytest

from rackwright.clusterfile.load import load_cluster
from rackwright.lab import names
from rackwright.lab.ports import ports
from rackwright.model.cluster import Cluster
from tests.unit.clusterfile.base_file import change

_MANAGEMENT = """\
  mgmt:
    purpose: management
    cidr: 10.1.0.0/24
    gateway: 10.1.0.1
"""


@pytest.fixture
def cluster(tmp_path: Path) -> Cluster:
    """The base file with the management network as the last, and the head on a second one."""
    path = tmp_path / "demo.yaml"
    path.write_text(
        change(
            ("addresses: {mgmt: 10.1.0.10}", "addresses: {store: 10.2.0.10, mgmt: 10.1.0.10}"),
            (_MANAGEMENT, ""),
            ("\nssh:\n", f"{_MANAGEMENT}\nssh:\n"),
        )
    )
    return load_cluster(path)


def test_the_management_port_is_first(cluster: Cluster) -> None:
    found = ports(cluster, cluster.by_name["head1"])
    assert [(port.network, port.address, port.prefix_length, port.mtu) for port in found] == [
        ("mgmt", "10.1.0.10", 24, 1500),
        ("store", "10.2.0.10", 24, 9000),
    ]
    assert [port.mac for port in found] == [None, None]


def test_a_rail_has_its_own_subnet(cluster: Cluster) -> None:
    found = ports(cluster, cluster.by_name["w1"])
    assert [(port.network, port.rail, port.prefix_length) for port in found] == [
        ("mgmt", 0, 24),
        ("ib", 0, 25),
        ("ib", 1, 25),
    ]


def test_a_lab_node_has_the_macs_of_its_cables() -> None:
    cluster = load_cluster(Path(__file__).parents[3] / "inventory/vagrant.yaml")
    found = ports(cluster, cluster.by_name["head1"])
    assert [port.mac for port in found] == [
        names.mac("vagrant", "head1", "node"),
        names.mac("vagrant", "head1", "node1"),
    ]

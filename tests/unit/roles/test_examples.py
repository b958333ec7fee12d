"""What the example files promise: correct, locked, each role planned on each node; and the DGX example's figures."""

from __future__ import annotations

from ipaddress import IPv4Address
from pathlib import Path

import pytest

from rackwright.clusterfile.load import load_cluster
from rackwright.lock.index import read_index
from rackwright.lock.lock_file import lock_text
from rackwright.lock.request import shipped_tables
from rackwright.lock.solve import solve
from rackwright.model.cluster import Cluster, Node
from rackwright.model.types import LinkKind, NetworkPurpose, NodeRole
from tests.examples import DGX, INVENTORY, cluster_files
from tests.unit.roles.fake_host import planned

EXAMPLES = cluster_files("example-*.yaml")
each = pytest.mark.parametrize("file", EXAMPLES, ids=lambda file: file.stem)

KEPT_OFF = {"fabricmanager", "gpudirect", "home", "imex"}
"""Roles that only keep their daemon off where a node's GPUs have no need of it, or leave their work to a server."""


@pytest.fixture(scope="module")
def dgx() -> Cluster:
    return load_cluster(INVENTORY / "example-dgx-h100.yaml")


def _unplanned(cluster: Cluster, node: Node) -> set[str]:
    """Roles of the node for which an empty node has nothing to change."""
    plan = planned(cluster, node)
    assert plan.error is None
    return set(node.options) - {operation.role for operation in plan.operations}


def _kinds(cluster: Cluster) -> list[Node]:
    """The last node of each kind, whose ranges end there."""
    return list({(node.roles, node.primary, node.sku.name): node for node in cluster.nodes}.values())


@each
def test_a_node_of_each_kind_is_planned(file: Path):
    cluster = load_cluster(file)
    for node in _kinds(cluster):
        assert _unplanned(cluster, node) <= KEPT_OFF, node.name


@pytest.mark.slow
@each
def test_every_node_is_planned(file: Path):
    cluster = load_cluster(file)
    for node in cluster.nodes:
        assert _unplanned(cluster, node) <= KEPT_OFF, node.name


@pytest.mark.parametrize(
    "file", [file for file in EXAMPLES if "\ngpu_stack:" in file.read_text()], ids=lambda file: file.stem
)
def test_the_lock_is_what_would_be_solved_now(file: Path):
    cluster = load_cluster(file)
    assert cluster.gpu_stack is not None
    solution = solve(cluster, shipped_tables(), read_index(cluster.gpu_stack.package_index))
    assert not solution.refused
    assert all(group.exact for group in solution.lock.groups)
    assert cluster.lock_path.read_text() == lock_text(solution.lock, file.name), (
        f"run: rackwright lock {file}"
    )


def test_the_scalable_unit(dgx):
    """RA-11333: 31 systems, four in a rack, eight rails, InfiniBand storage, no Ethernet but for management."""
    workers = dgx.holding(NodeRole.WORKER)
    assert [len(dgx.holding(role)) for role in (NodeRole.WORKER, NodeRole.LOGIN, NodeRole.HEAD)] == [31, 2, 2]
    racks = [node.rack for node in workers]
    assert {rack: racks.count(rack) for rack in racks} == {**{f"rack{n}": 4 for n in range(1, 8)}, "rack8": 3}
    assert {len(node.addresses) for node in workers} == {10}
    assert workers[-1].address_on("fabric", 7) == IPv4Address("10.100.224.31")
    assert {
        network.kind for network in dgx.networks.values() if network.purpose is not NetworkPurpose.MANAGEMENT
    } == {LinkKind.INFINIBAND}


def test_every_address_has_a_port_of_its_kind(dgx):
    """In-band ports of DGX systems are Ethernet, which the catalogue may leave out; nothing else is."""
    for node in dgx.nodes:
        ports = {(nic.purpose, nic.kind) for nic in node.sku.nics}
        networks = {dgx.networks[entry.network] for entry in node.addresses}
        missing = {(network.purpose, network.kind) for network in networks} - ports
        known = {(NetworkPurpose.MANAGEMENT, LinkKind.ETHERNET)} if node.holds(NodeRole.WORKER) else set()
        assert missing <= known, node.name


def test_each_role_runs_where_the_reference_has_it(dgx):
    assert {name: set(dgx.by_name[name].options) - {"fabricmanager"} for name in DGX} == {
        name: roles - {"fabricmanager"} for name, roles in DGX.items()
    }
    assert "fabricmanager" in dgx.by_name["gpu031"].options

"""What a correct file means: ranges, addresses, rails, placement, options."""

from __future__ import annotations

from hashlib import sha256
from ipaddress import IPv4Address, IPv4Network
from pathlib import Path

import pytest
import yaml
from pydantic import ValidationError

from rackwright.clusterfile.load import load_cluster
from rackwright.engine.waves import plan_waves
from rackwright.model.cluster import Cluster
from rackwright.model.settings import Waves
from rackwright.model.types import NodeRole, Platform
from rackwright.osfamily.known import os_release
from rackwright.pyinfra_driver.connector import groups_of
from tests.examples import INVENTORY, cluster_files
from tests.factories import make_node
from tests.unit.clusterfile.base_file import BASE, change


def loaded(folder: Path, *edits: tuple[str, str]) -> Cluster:
    path = folder / "demo.yaml"
    path.write_text(change(*edits))
    return load_cluster(path)


@pytest.fixture
def cluster(tmp_path):
    return loaded(tmp_path)


def test_the_cluster(cluster, tmp_path):
    assert (cluster.name, cluster.domain) == ("demo", "demo.test")
    assert cluster.path == tmp_path / "demo.yaml"
    assert cluster.sha256 == sha256(BASE.encode()).hexdigest()
    assert cluster.management.name == "mgmt"
    assert list(cluster.by_name) == ["head1", "w1", "w2", "w3", "w4"]
    assert [node.name for node in cluster.holding(NodeRole.WORKER)] == ["w1", "w2", "w3", "w4"]


def test_the_only_head_is_primary(cluster):
    assert cluster.primary.name == "head1"
    assert [node.primary for node in cluster.nodes] == [True, False, False, False, False]


def test_a_primary_among_several_heads(tmp_path):
    edit = (
        "  - nodes: head1\n    roles: [head]\n",
        "  - nodes: head1\n    roles: [head]\n    primary: true\n",
    )
    assert loaded(tmp_path, edit, ("roles: [worker]", "roles: [worker, head]")).primary.name == "head1"


def test_a_primary_named_in_a_group_of_two_heads(tmp_path):
    made = loaded(
        tmp_path,
        ("nodes: head1", "nodes: head[1-2]"),
        ("addresses: {mgmt: 10.1.0.10}", "addresses: {mgmt: 10.1.0.20}\n    primary: head2"),
    )
    assert [node.name for node in made.nodes if node.primary] == ["head2"]
    assert made.primary.name == "head2"


def test_addresses_count_up_and_repeat_in_each_rail(cluster):
    third = cluster.by_name["w3"]
    assert [(entry.network, entry.rail, str(entry.address)) for entry in third.addresses] == [
        ("mgmt", 0, "10.1.0.13"),
        ("ib", 0, "10.3.0.13"),
        ("ib", 1, "10.3.0.141"),
    ]
    assert third.address_on("ib", 1) == IPv4Address("10.3.0.141")
    assert cluster.management_address(third) == IPv4Address("10.1.0.13")


def test_rails_are_subnets(cluster):
    fabric = cluster.networks["ib"]
    assert [fabric.subnet(rail) for rail in range(2)] == [
        IPv4Network("10.3.0.0/25"),
        IPv4Network("10.3.0.128/25"),
    ]
    assert cluster.networks["mgmt"].subnet() == IPv4Network("10.1.0.0/24")


def test_rails_share_the_network_equally_where_no_prefix_is_said(tmp_path):
    edits = (("    rails: 2\n", "    rails: 3\n"), ("    rail_prefix: 25\n", ""))
    assert loaded(tmp_path, *edits).networks["ib"].rail_prefix == 26


def test_a_node_with_fewer_ports_has_addresses_in_the_first_rails_only(tmp_path):
    cluster = loaded(
        tmp_path,
        (
            "sockets: 1",
            "sockets: 1\n    nics: [{purpose: fabric, kind: infiniband, speed_gbps: 400, rail: 0}]",
        ),
        ("{mgmt: 10.1.0.10}", "{mgmt: 10.1.0.10, ib: 10.3.0.10}\n    sku: own-node"),
    )
    assert [(entry.network, entry.rail) for entry in cluster.primary.addresses] == [("mgmt", 0), ("ib", 0)]


def test_address_step(tmp_path):
    cluster = loaded(tmp_path, ("mgmt: 10.1.0.11", "mgmt: {first: 10.1.0.20, step: 10}"))
    assert [str(cluster.management_address(node)) for node in cluster.nodes[1:]] == [
        "10.1.0.20",
        "10.1.0.30",
        "10.1.0.40",
        "10.1.0.50",
    ]


def test_placement_spreads_in_order_and_positions_start_again(cluster):
    assert [(node.rack, node.position, node.switch) for node in cluster.nodes[1:]] == [
        ("r1", 1, "s1"),
        ("r1", 2, "s1"),
        ("r2", 1, "s2"),
        ("r2", 2, "s2"),
    ]


def test_a_switch_for_each_rail_spreads_as_a_single_one_does(tmp_path):
    by_rail = 'switch: ["su[1-2]-leaf1", "su[1-2]-leaf2"]'
    made = loaded(tmp_path, ("switch: s[1-2]", by_rail), ("    rack: r[1-2]\n    position: 1\n", ""))
    assert [node.switches for node in made.nodes] == [
        (),
        *[("su1-leaf1", "su1-leaf2")] * 2,
        *[("su2-leaf1", "su2-leaf2")] * 2,
    ]
    assert [node.switch for node in made.nodes] == [None, *["su1-leaf1-2"] * 2, *["su2-leaf1-2"] * 2]
    waves = plan_waves(made.nodes, Waves(size="switch", order="heads-first"))
    assert waves == [("head1",), ("w1", "w2"), ("w3", "w4")]
    assert [one for one in groups_of(made.by_name["w1"]) if one.startswith("switch_")] == [
        "switch_su1-leaf1",
        "switch_su1-leaf2",
        "switch_su1-leaf1-2",
    ]


def test_the_pages_example_of_switches(tmp_path):
    page = (INVENTORY.parent / "docs" / "cluster-file.md").read_text()
    (group,) = yaml.safe_load(
        page.partition("## Leaf switches")[2].partition("```yaml\n")[2].partition("```")[0]
    )
    leaves = "".join(f"\n      - {leaf}" for leaf in group["switch"])
    made = loaded(
        tmp_path,
        ("nodes: w[1-4]", f"nodes: {group['nodes']}\n    sku: {group['sku']}\n    switch:{leaves}"),
        ("    switch: s[1-2]\n", ""),
        ("    rack: r[1-2]\n    position: 1\n", ""),
        ("      ib: 10.3.0.11\n", ""),
    )
    assert made.by_name["gpu032"].switch == "su1-leaf1-8"
    assert made.by_name["gpu033"].switches[2] == "su2-leaf3"


def test_one_switch_for_all_rails_is_in_one_group(cluster):
    assert cluster.by_name["w1"].switches == ("s1",)
    assert [one for one in groups_of(cluster.by_name["w1"]) if one.startswith("switch_")] == ["switch_s1"]


def test_switches_follow_the_skus_rails_where_the_fabric_has_no_addresses(tmp_path):
    leaves = ", ".join(f"leaf{number}" for number in range(1, 9))
    made = loaded(
        tmp_path, ("switch: s[1-2]", f"sku: dgx-h100\n    switch: [{leaves}]"), ("      ib: 10.3.0.11\n", "")
    )
    assert made.by_name["w4"].switches == tuple(leaves.split(", "))
    assert made.by_name["w4"].switch == "leaf1-8"


@pytest.mark.parametrize(
    ("switches", "unit"),
    [
        (("leaf3",), "leaf3"),
        (("leaf3", "leaf3"), "leaf3"),
        (("leaf2", "leaf1"), "leaf1-2"),
        (("leaf01", "leaf02", "leaf10"), "leaf01-02_10"),
        (("leaf1", "leaf3"), "leaf1_3"),
        (("su1-leaf1", "su1-leaf2", "su2-leaf1", "su2-leaf2"), "su1-leaf1-2_su2-leaf1-2"),
        (("east", "west"), "east_west"),
    ],
)
def test_the_name_of_a_set_of_switches(switches, unit):
    assert make_node("w1", 1, switches=switches).switch == unit


def test_macs_are_given_in_order(tmp_path):
    macs = ", ".join(f"52-54-00-00-00-0{number}" for number in range(1, 5))
    cluster = loaded(tmp_path, ("position: 1", f"position: 1\n    macs: [{macs}]"))
    assert [node.mac for node in cluster.nodes] == [
        None,
        *(f"52:54:00:00:00:0{number}" for number in range(1, 5)),
    ]


def test_defaults_and_what_a_group_says_instead(tmp_path):
    cluster = loaded(
        tmp_path, ("roles: [worker]", "roles: [worker]\n    os: rocky-9\n    sku: own-node\n    platform: vm")
    )
    head, worker = cluster.by_name["head1"], cluster.by_name["w1"]
    assert (head.os, head.sku.name, head.platform) == (
        os_release("debian-13"),
        "cpu-16c-64g",
        Platform.BARE_METAL,
    )
    assert (worker.os, worker.sku.name, worker.platform) == (os_release("rocky-9"), "own-node", Platform.VM)
    assert worker.sku.cpus == 16


def test_a_sites_own_sku_wins(tmp_path):
    cluster = loaded(tmp_path, ("  own-node:\n", "  cpu-16c-64g:\n"))
    assert cluster.primary.sku.description == "A server of ours"


def test_roles_run_where_they_apply(cluster):
    assert set(cluster.by_name["head1"].options) == {"munge", "mariadb"}
    assert set(cluster.by_name["w1"].options) == {"munge"}


def test_overrides_are_merged_and_shared_by_equal_groups(tmp_path):
    cluster = loaded(
        tmp_path,
        ("munge: {}", "munge: {uid: 500, threads: 3}"),
        ("position: 1", "position: 1\n    options: {munge: {threads: 4}}"),
    )
    head, worker = (cluster.by_name[name].options["munge"].model_dump() for name in ("head1", "w1"))
    assert (head["uid"], head["threads"]) == (500, 3)
    assert (worker["uid"], worker["threads"]) == (500, 4)
    assert cluster.by_name["w1"].options["munge"] is cluster.by_name["w4"].options["munge"]


def test_paths_are_relative_to_the_file(cluster, tmp_path):
    assert cluster.ssh.key == tmp_path / "keys" / "id_ed25519"
    assert cluster.ssh.known_hosts == tmp_path / "known_hosts"


def test_the_cluster_cannot_be_changed(cluster):
    with pytest.raises(ValidationError):
        cluster.name = "other"


MONITORING = {
    *("alertmanager", "dcgm_exporter", "job_metrics", "logs", "node_exporter", "prometheus", "site_ca"),
    "slurm_exporter",
}


@pytest.mark.parametrize("file", cluster_files(), ids=lambda file: file.stem)
def test_the_example_files_are_correct(file):
    assert load_cluster(file).nodes


def test_the_lab(tmp_path):
    lab = load_cluster(INVENTORY / "lab.yaml")
    assert [node.name for node in lab.nodes] == ["head1", "worker1", "worker2"]
    assert {node.platform for node in lab.nodes} == {Platform.CONTAINER}
    assert lab.mirrors.apt_proxy == f"http://{lab.management.gateway}:3142"


def test_the_rack_of_virtual_machines():
    rack = load_cluster(INVENTORY / "vm.yaml")
    assert [node.name for node in rack.nodes] == ["head1", "worker1", "worker2"]
    assert {node.platform for node in rack.nodes} == {Platform.VM}
    assert all(node.lab is not None and node.lab.memory_mib <= 2048 for node in rack.nodes)
    for worker in rack.nodes[1:]:
        assert sum(drives.count for drives in worker.sku.nvme) == 2
        assert len([entry for entry in worker.addresses if entry.network == "fabric"]) == 2
    lab = load_cluster(INVENTORY / "lab.yaml")
    here, there = ({role for node in one.nodes for role in node.options} for one in (rack, lab))
    assert there - here == MONITORING  # inventory/drill.yaml is the rack for it
    assert here <= there


def test_the_rack_for_drills_has_all_that_the_lab_monitors_with():
    drill = load_cluster(INVENTORY / "drill.yaml")
    assert {role for node in drill.nodes for role in node.options} >= MONITORING
    (options,) = (node.options["prometheus"] for node in drill.nodes if "prometheus" in node.options)
    assert options.hold_factor < 0.1

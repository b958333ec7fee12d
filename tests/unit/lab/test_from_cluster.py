"""What the lab boots for each node of a cluster file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from rackwright.clusterfile.load import load_cluster
from rackwright.errors import LabError
from rackwright.lab import names
from rackwright.lab.from_cluster import rack_spec
from rackwright.lab.spec import LeafPort, NodeSpec, RackSpec, VmSpec
from rackwright.model.types import Workload

INVENTORY = Path(__file__).parents[3] / "inventory"


def declared() -> dict[str, Any]:
    content: dict[str, Any] = yaml.safe_load((INVENTORY / "vm.yaml").read_text())
    return content


def booted(folder: Path, content: dict[str, Any]) -> RackSpec:
    file = folder / "cluster.yaml"
    file.write_text(yaml.safe_dump(content))
    return rack_spec(load_cluster(file, locked=False))


def test_the_rack_of_virtual_machines():
    spec = rack_spec(load_cluster(INVENTORY / "vm.yaml", locked=False))
    assert (spec.name, spec.bridge_address, spec.apt_proxy) == (
        "vm",
        "10.78.0.1/24",
        "http://10.78.0.1:3142",
    )
    head = NodeSpec(
        name="head1",
        address="10.78.0.10",
        prefix_length=24,
        image="debian-13",
        cpus=2,
        memory_mib=2048,
        mtu=1500,
        vm=VmSpec(sockets=1, cores=2, threads=1, numa_nodes=1),
    )
    workers = [
        NodeSpec(
            name=f"worker{number}",
            address=f"10.78.0.{10 + number}",
            prefix_length=24,
            image="debian-13",
            cpus=2,
            memory_mib=2048,
            mtu=1500,
            extra_addresses=tuple(f"{address}/{prefix}" for address, prefix in addresses),
            vm=VmSpec(sockets=2, cores=1, threads=1, numa_nodes=2, data_disks_gb=(4, 4)),
        )
        for number, addresses in ((1, _fabric(spec, 1)), (2, _fabric(spec, 2)))
    ]
    assert list(spec.nodes) == [head, *workers]
    assert all(len(one.extra_addresses) == 2 for one in workers)


def _fabric(spec: RackSpec, worker: int) -> list[tuple[str, int]]:
    """Addresses of a worker's two rails; each rail is a subnet, which is a bridge."""
    given = [cidr.split("/") for cidr in spec.node(f"worker{worker}").extra_addresses]
    assert all(address.startswith("10.79.0.") for address, _ in given)
    return [(address, int(prefix)) for address, prefix in given]


def test_declared_cables_end_at_the_lab_s_leaves(tmp_path: Path):
    content = declared()
    content["networks"]["fabric"]["mtu"] = 9000
    content["fabrics"] = {"fabric": {"port_name": "swp{port}", "leaf_ports": 5}}
    content["nodes"][1]["switch"] = ["leaf1", "leaf2"]
    workers = booted(tmp_path, content).nodes[1:]
    assert [one.leaf_ports for one in workers] == [
        (LeafPort("leaf1", "swp5"), LeafPort("leaf2", "swp5")),
        (LeafPort("leaf1", "swp6"), LeafPort("leaf2", "swp6")),
    ]
    assert {one.extra_mtus for one in workers} == {(9000, 9000)}


def test_a_container_rack_has_no_machines():
    spec = rack_spec(load_cluster(INVENTORY / "lab.yaml", locked=False))
    assert {one.vm for one in spec.nodes} == {None}


def test_containers_and_machines_are_mixed_by_their_platform(tmp_path: Path):
    content = declared()
    content["nodes"][0] |= {"platform": "container", "sku": "lab-node"}
    spec = booted(tmp_path, content)
    assert [one.vm is None for one in spec.nodes] == [True, False, False]


def test_a_rack_gets_kubernetes_where_a_kubelet_can_run_or_the_workload_is_kubernetes(tmp_path: Path):
    content = declared()
    content["nodes"][0] |= {"platform": "container", "sku": "lab-node"}
    assert not booted(tmp_path, content).kubernetes
    content["nodes"][0]["lab"] = {"cpus": 2, "memory_mib": 2048, "kubelet": True}
    spec = booted(tmp_path, content)
    assert spec.kubernetes
    assert [one.kubelet for one in spec.nodes] == [True, False, False]
    cluster = load_cluster(INVENTORY / "vm.yaml", locked=False)
    nodes = [one.model_copy(update={"workload": Workload.KUBERNETES}) for one in cluster.nodes]
    assert rack_spec(cluster.model_copy(update={"nodes": tuple(nodes)})).kubernetes


def test_real_servers_are_not_booted(tmp_path: Path):
    content = declared()
    content["nodes"][1] |= {"platform": "bare-metal"}
    with pytest.raises(LabError) as caught:
        booted(tmp_path, content)
    assert caught.value.message == "worker1 is bare-metal without a BMC, which the lab cannot boot."
    assert caught.value.hint == (
        "set `platform: container` or `platform: vm` to boot the file as a lab rack, or declare `bmc:`"
    )


def test_machines_with_a_bmc_are_racked():
    spec = rack_spec(load_cluster(INVENTORY / "baremetal.yaml", locked=False))
    head, *workers = spec.nodes
    assert (head.vm, head.bmc) == (None, None)
    assert spec.racked == tuple(workers)
    assert spec.bmc_bridge == "10.82.0.1/24"  # where the BMCs are declared to fetch images
    bmc = workers[0].bmc
    assert bmc is not None
    assert workers[0].vm is not None
    assert (bmc.address, bmc.prefix_length, bmc.port, bmc.user) == ("10.82.0.11", 24, 443, "admin")
    assert bmc.password == INVENTORY / ".lab" / "bmc_password"
    assert bmc.authority == INVENTORY / ".lab" / "bmc_ca.pem"
    assert bmc.secure_boot  # as `install` declares unless it says otherwise


def test_the_declared_macs_are_those_the_lab_gives_its_machines():
    cluster = load_cluster(INVENTORY / "baremetal.yaml", locked=False)
    for node in cluster.nodes:
        if node.bmc is not None:
            assert node.mac == names.port_mac(cluster.name, node.name, 0)


def test_a_bmc_address_is_free_for_the_rack_and_its_protocol_is_redfish(tmp_path: Path):
    content = bare_metal()
    del content["boot_network"], content["nodes"][1]["install"]
    content["nodes"][1]["bmc"]["address"] = "10.82.0.1"
    content["nodes"][1]["platform"] = "bare-metal"
    assert booted(tmp_path, content).bmc_bridge == "10.82.0.4/24"
    content["nodes"][1]["bmc"]["protocol"] = "ipmi"
    with pytest.raises(
        LabError, match="The BMC of worker1 is declared with ipmi, but lab BMCs support only redfish"
    ):
        booted(tmp_path, content)


def bare_metal() -> dict[str, Any]:
    content: dict[str, Any] = yaml.safe_load((INVENTORY / "baremetal.yaml").read_text())
    return content

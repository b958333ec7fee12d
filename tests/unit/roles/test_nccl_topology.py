"""NCCL's topology file."""

from __future__ import annotations

from xml.etree import ElementTree as ET

import pytest

from rackwright.claims.check import Undetermined
from rackwright.model.hcas import DeclaresHcas, Hca
from rackwright.model.options import RoleOptions
from rackwright.model.sku import Gpus, Nic
from rackwright.model.types import LinkKind, NetworkPurpose, Platform
from rackwright.roles.nccl import texts
from rackwright.roles.nccl.derived import TOPOLOGY
from rackwright.roles.nccl.options import NcclOptions
from rackwright.roles.nccl.readings import READ_ADDRESSES, parse_addresses
from rackwright.roles.nccl.verify import CHECKS
from tests.factories import make_gpu_sku
from tests.unit.roles.fake_host import FakeHost, claimed, content, judged, planned
from tests.unit.roles.rail_sites import fabric_site
from tests.unit.roles.sites import worker

PLACES = "GPUs are at the addresses of NCCL's topology file"
GIVEN = NcclOptions(topology_file=True)
# Recorded: the busids of Azure's ndv5-topo.xml for NUMA node 0 (public, read 2026-11-25), one switch after the other
NDV5_SWITCHES = [
    ["0001:00:00.0", "0101:00:00.0"],
    ["0002:00:00.0", "0102:00:00.0"],
    ["0003:00:00.0", "0103:00:00.0"],
]


class Devices(RoleOptions, DeclaresHcas):
    """Stands for the role that names the RDMA devices: one for each rail, at the addresses of Azure's machines."""

    at_pci: bool = True

    def hcas(self, cluster, node):
        return tuple(
            Hca(f"mlx5_rail{rail}", "fabric", rail, f"010{rail + 1}:00:00.0" if self.at_pci else None)
            for rail in (0, 1)
        )


PLACED = Gpus(
    model="H100",
    gres_type="h100",
    count=3,
    memory_mib=81559,
    pcie_generation=5,
    pcie_width=16,
    pci_addresses=("0001:00:00.0", "0002:00:00.0", "0003:00:00.0"),
)


def sku_with(near=((0,), (1,)), **changes):
    port = {"purpose": NetworkPurpose.FABRIC, "kind": LinkKind.INFINIBAND, "speed_gbps": 400}
    nics = tuple(Nic(**port, rail=rail, near_gpus=gpus) for rail, gpus in enumerate(near))
    return make_gpu_sku(
        "nd-h100", **{"gpus": PLACED, "gpu_sockets": (0, 0, 1), "numa_nodes": 2, "nics": nics, **changes}
    )


def made(given=GIVEN, sku=None, devices=None, **more):
    parts = {"nccl": given, "devices": devices or Devices()}
    more = {"kind": LinkKind.INFINIBAND, "platform": Platform.VM, **more}
    return fabric_site(parts, **{"sku": sku or sku_with(), **more})


CLUSTER = made()


def tree(cluster):
    """(NUMA node, class, address) by the address of what it is below."""
    root = ET.fromstring(texts.topology(cluster, worker(cluster), GIVEN))
    assert (root.tag, root.attrib) == ("system", {"version": "1"})
    return {
        (cpu.get("numaid"), below.get("busid")): [
            (one.get("busid"), one.get("class")) for one in below.iter("pci") if one is not below
        ]
        for cpu in root
        for below in cpu
    }


def test_gpus_and_devices_that_are_near_are_behind_one_switch():
    assert tree(CLUSTER) == {
        ("0", "ffff:ff:01.0"): [("0001:00:00.0", "0x030200"), ("0101:00:00.0", "0x020700")],
        ("0", "ffff:ff:02.0"): [("0002:00:00.0", "0x030200"), ("0102:00:00.0", "0x020700")],
        ("1", "0003:00:00.0"): [],
    }
    found = [[address for address, _ in below] for below in tree(CLUSTER).values() if below]
    assert found == NDV5_SWITCHES[:2]
    shared = tree(made(sku=sku_with(near=((0, 1), (0, 1))), kind=LinkKind.ROCE))
    assert shared["0", "ffff:ff:01.0"] == [
        ("0001:00:00.0", "0x030200"),
        ("0002:00:00.0", "0x030200"),
        ("0101:00:00.0", "0x020000"),
        ("0102:00:00.0", "0x020000"),
    ]


def test_each_line_is_as_nccls_reader_takes_it():
    """One space between attributes, and none before the end of a tag: it is not a full XML parser (src/graph/xml.cc)."""
    text = texts.topology(CLUSTER, worker(CLUSTER), GIVEN)
    assert (
        '    <pci busid="ffff:ff:01.0" class="0x060400" link_speed="32.0 GT/s PCIe" link_width="16" vendor='
        in text
    )
    for line in text.splitlines():
        assert "  " not in line.strip(), line
        assert " />" not in line, line
        assert " >" not in line, line


def test_the_file_is_written_and_named_only_where_it_is_declared():
    plan = planned(CLUSTER, worker(CLUSTER))
    assert plan.error is None
    assert content(plan, TOPOLOGY) == texts.topology(CLUSTER, worker(CLUSTER), GIVEN)
    configuration = content(plan, texts.CONFIGURATION)
    assert configuration.endswith(
        "# made from the SKU and the rails' devices (NCCL user guide, environment variables)\n"
        f"NCCL_TOPO_FILE={TOPOLOGY}\n"
    )
    without = made(NcclOptions())
    assert "NCCL_TOPO_FILE" not in texts.configuration(without, worker(without), NcclOptions())
    assert list(texts.files(without, worker(without), NcclOptions())) == [texts.CONFIGURATION]
    assert PLACES in claimed("nccl", CHECKS, worker(CLUSTER))
    assert PLACES not in claimed("nccl", CHECKS, worker(without))


def test_what_is_declared_is_enough():
    assert list(GIVEN.problems(CLUSTER)) == []
    assert list(NcclOptions().problems(made(NcclOptions(), sku=make_gpu_sku()))) == []


@pytest.mark.parametrize(
    ("sku", "lacks"),
    [
        (
            make_gpu_sku("nd-h100"),
            (
                "`gpus.pci_addresses`, `gpus.pcie_generation` from 3 to 6, `gpus.pcie_width`, `gpu_sockets`, "
                "`numa_nodes` as many as `sockets`, `near_gpus` of every fabric port"
            ),
        ),
        (sku_with(numa_nodes=8), "`numa_nodes` as many as `sockets`"),
        (sku_with(near=((0,), ())), "`near_gpus` of every fabric port"),
        (sku_with(near=((0, 2), (1,))), "`near_gpus` on one socket for each port"),
    ],
)
def test_what_the_sku_lacks_is_refused(sku, lacks):
    assert list(GIVEN.problems(made(sku=sku))) == [
        (
            "topology_file",
            f"The topology file of gpu1 needs of its SKU nd-h100: {lacks}.",
            "declare them in `skus.nd-h100`, or leave `topology_file` out",
        )
    ]


def test_nodes_without_gpus_or_devices_are_refused():
    plain = make_gpu_sku("cpu-node", gpus=None)
    assert ("topology_file", "gpu1 has no GPUs: its SKU cpu-node declares none.", "leave it out") in list(
        GIVEN.problems(made(sku=plain))
    )
    no_devices = (
        "topology_file",
        "gpu1 has no RDMA devices at PCI addresses for NCCL.",
        "declare them in `roles.rdma.devices`",
    )
    assert list(GIVEN.problems(made(devices=Devices(at_pci=False)))) == [no_devices]


@pytest.mark.parametrize(
    ("printed", "status", "evidence"),
    [
        ("0, 00000001:00:00.0\n1, 00000002:00:00.0\n2, 00000003:00:00.0\n", "PASS", "3 GPUs"),
        (
            "0, 00000001:00:00.0\n1, 00000003:00:00.0\n",
            "FAIL",
            "GPU 1 is at 0003:00:00.0, not 0002:00:00.0; GPU 2 is at no address, not 0003:00:00.0",
        ),
        ("No devices were found\n", "UNKNOWN", "nvidia-smi printed no PCI address: 'No devices were found'"),
        ("", "UNKNOWN", "nvidia-smi printed nothing"),
        (None, "UNKNOWN", None),
    ],
)
def test_gpus_at_other_addresses_fail(printed, status, evidence):
    replies = {} if printed is None else {f"timeout 60 {READ_ADDRESSES}": printed}
    found = judged("nccl", CHECKS, PLACES, CLUSTER, worker(CLUSTER), FakeHost(replies))
    assert (found.status, evidence or found.evidence) == (status, found.evidence)


def test_addresses_are_read_as_sysfs_has_them():
    """Recorded form: an 8-digit domain and upper case."""
    assert parse_addresses("0, 00000000:1B:00.0\n4, 00000000:9D:00.0\n") == {
        0: "0000:1b:00.0",
        4: "0000:9d:00.0",
    }
    with pytest.raises(Undetermined):
        parse_addresses("0, [N/A]")


def test_a_sku_has_an_address_for_each_gpu():
    for places in (("0001:00:00.0",), ("0001:00:00.0",) * 3):
        gpus = PLACED.model_copy(update={"pci_addresses": places})
        with pytest.raises(ValueError, match="`pci_addresses` has 1 addresses, but the node has 3 GPUs"):
            sku_with(gpus=gpus)

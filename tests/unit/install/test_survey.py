"""What was found beside what is declared, and the declaration that would be true of it."""

from __future__ import annotations

from datetime import date

import yaml

from rackwright.clusterfile.load import load_cluster
from rackwright.install.survey import compare, fragment, machine_list
from rackwright.model.install import DiskRule
from tests.factories import make_gpu_sku
from tests.unit.clusterfile.base_file import change
from tests.unit.install.site import GPT, changed, disk, document, inventory, mac, make_worker

NODE = make_worker()
NVME = [
    disk(
        number,
        path=f"/dev/nvme{number}n1",
        serial=f"N {number}" if number == 3 else f"N{number}",
        size_bytes=3840755982336,
        pci=f"0000:0{number}:00.0",
    )
    for number in (5, 6)
]
DMI = document()["dmi"]


def lines(node, found):
    return {line.what: (line.declared, line.found, line.agrees) for line in compare(node, found)}


def test_what_agrees_is_shown_too():
    found = lines(NODE, inventory(1, disk(signatures=[GPT])))
    assert found == {
        "serial number": ("SN-1", "SN-1", True),
        "management MAC": (mac(1), mac(1), True),
        "CPUs": ("2", "2", True),
        "memory": ("2048 MiB", "1950 MiB", True),
        "GPUs": ("0", "0", True),
        "NVMe drives": ("0", "0", True),
        "Secure Boot": ("off", "off", True),
        "system disk": ("by rule", "/dev/sda (serial DISK-1, Example 480)", True),
        "disk": (None, "/dev/sda (serial DISK-1, Example 480), 480 GB, holds /dev/sda:gpt:1f0c", None),
        "port": (None, f"eno1 {mac(1)} at 0000:01:00.0, cable plugged in", None),
    }


def test_what_differs():
    sku = make_gpu_sku(cpu_model="Xeon 8480")
    node = changed(NODE.model_copy(update={"sku": sku}), secure_boot=True, disk=DiskRule(model="Small"))
    found = lines(node, inventory(2, nics=[], secure_boot=None, gpus=7))
    assert found["serial number"] == ("SN-1", "SN-2", False)
    assert found["management MAC"] == (mac(1), "no port", False)
    assert found["CPUs"] == ("224", "2", False)
    assert found["memory"] == ("2097152 MiB", "1950 MiB", False)
    assert found["GPUs"] == ("8", "7", False)
    assert found["CPU model"] == ("Xeon 8480", "Example CPU", False)
    assert found["Secure Boot"] == ("on", "not known", False)
    assert found["system disk"][2] is False
    assert found["system disk"][1].startswith("the model Small matches 0 disks, but 1 are needed")


def test_what_is_not_declared_cannot_differ():
    node = NODE.model_copy(update={"mac": None, "serial": None, "install": None})
    found = compare(node, inventory())
    assert all(line.agrees is None for line in found if line.declared is None)
    assert not any(line.agrees is False for line in found)


def test_a_machine_without_anything():
    found = inventory(nics=[], dmi={}, gpus=0).model_copy(update={"disks": ()})
    assert lines(NODE, found)["serial number"] == ("SN-1", "not set", False)
    assert machine_list([(NODE, found)]) == "node,mac,serial,disk,bmc\nworker1,,,,10.8.0.1\n"
    assert "  found-1:" in fragment([(NODE, found)], "machines.csv", date(2026, 11, 27))


def test_a_machine_list_is_what_was_found():
    second = make_worker(2).model_copy(update={"mac": None, "bmc": None})
    ports = [
        {"name": "eno1", "mac": mac(21).upper(), "carrier": False},
        {"name": "eno2", "mac": mac(22).upper(), "carrier": True},
    ]
    found = [(NODE, inventory(1)), (second, inventory(2, disk(7), nics=ports))]
    assert machine_list(found) == (
        "node,mac,serial,disk,bmc\n"
        f"worker1,{mac(1)},SN-1,DISK-1,10.8.0.1\n"
        f"worker2,{mac(22)},SN-2,,\n"
    )  # fmt: skip


def test_a_declared_certificate_of_a_bmc_stays():
    second = make_worker(2)
    pinned = second.model_copy(update={"bmc": second.bmc.model_copy(update={"certificate": "a1" * 32})})
    assert machine_list([(NODE, inventory(1)), (pinned, inventory(2, disk(2)))]) == (
        "node,mac,serial,disk,bmc,bmc_certificate\n"
        f"worker1,{mac(1)},SN-1,DISK-1,10.8.0.1,\n"
        f"worker2,{mac(2)},SN-2,DISK-2,10.8.0.2,{'a1' * 32}\n"
    )


def test_what_was_never_set_is_not_listed():
    """A serial number that all boards have, and a disk's that the list cannot hold."""
    for serial in ("To be filled by O.E.M.", "0123456789", "Default string", "odd*one", "x" * 65):
        found = inventory(dmi={**DMI, "product_serial": serial})
        assert machine_list([(NODE, found)]).splitlines()[1] == f"worker1,{mac(1)},,DISK-1,10.8.0.1"
    node = changed(NODE, disk=DiskRule(model="Spaced"))
    found = inventory(1, disk(serial="A B", model="Spaced"))
    assert machine_list([(node, found)]).splitlines()[1] == f"worker1,{mac(1)},SN-1,,10.8.0.1"


def test_the_declaration_is_true_of_what_was_found(tmp_path):
    """Moved into a cluster file, it loads, and nothing differs any more."""
    odd = {**DMI, "sys_vendor": 'Acme "X" \\ Co: #1', "product_name": "R 1\ttab"}
    found = [
        (
            make_worker(number),
            inventory(number, disk(number), *NVME, dmi={**odd, "product_serial": f"SN-{number}"}),
        )
        for number in (1, 2)
    ]
    third = inventory(3, disk(3), cpus=4, memory_kib=4_000_000, sockets=2)
    found.append((make_worker(3), third))
    text = fragment(found, "machines.csv", date(2026, 11, 27))
    assert yaml.safe_load(text)["skus"]["found-1"]["vendor"].startswith('Acme "X" \\ Co: #1')
    skus, nodes = text.split("nodes:\n")
    worker = "  - nodes: w[1-4]\n"
    base = change((worker, worker.replace("w[1-4]", "x[1-4]")))
    base = base.replace("skus:\n", skus.split("\n", 1)[1], 1)
    base = base.replace("\nroles:\n", f"\n{nodes}\nroles:\n", 1)
    base = base.replace("  store:\n", "  oob: {purpose: bmc, cidr: 10.8.0.0/24}\n  store:\n", 1)
    first = 11
    for members in ("worker1,worker2", "worker3"):
        place = f"    addresses: {{mgmt: 10.1.0.1{first}}}\n"
        base = base.replace(f"  - nodes: {members}\n", f"  - nodes: {members}\n{place}", 1)
        first += 10
    (tmp_path / "machines.csv").write_text(machine_list(found))
    (tmp_path / "demo.yaml").write_text(base)
    cluster = load_cluster(tmp_path / "demo.yaml")
    for node, inventory_ in found:
        loaded = cluster.by_name[node.name]
        assert (loaded.serial, loaded.mac) == (node.serial, node.mac)
        assert loaded.bmc.address == node.bmc.address
        assert not any(line.agrees is False for line in compare(loaded, inventory_))
    sku = cluster.by_name["worker1"].sku
    assert [(one.count, one.size_gb, one.slots) for one in sku.nvme] == [
        (2, 3841, ("0000:05:00.0", "0000:06:00.0"))
    ]
    assert cluster.by_name["worker3"].sku.sockets == 2


def test_nodes_of_one_kind_with_other_roles_or_systems_are_groups_of_their_own():
    from rackwright.model.types import NodeRole

    nodes = [make_worker(1), make_worker(2).model_copy(update={"roles": frozenset({NodeRole.LOGIN})})]
    text = fragment(
        [(node, inventory(number)) for number, node in enumerate(nodes, 1)], "m.csv", date(2026, 1, 1)
    )
    groups = yaml.safe_load(text)["nodes"]
    assert [(one["nodes"], one["roles"], one["sku"]) for one in groups] == [
        ("worker1", ["worker"], "found-1"),
        ("worker2", ["login"], "found-1"),
    ]


def test_gpus_are_left_to_the_catalogue():
    text = fragment([(NODE, inventory(gpus=8))], "m.csv", date(2026, 1, 1))
    assert "    # 8 NVIDIA GPUs were found: name a SKU of `rackwright catalog`, or add `gpus:`" in text

"""rackwright import netbox: devices, interfaces and cables of NetBox 3.7 and 4.x as files."""

from __future__ import annotations

import json

import pytest

from tests.unit.importers.filling import round_trip
from tests.unit.importers.netbox_documents import cable, device, interface, page


def site(*, four: bool, workers: int = 198):
    heads = [
        device(
            1 + index,
            f"HEAD{index + 1}.hpc.example.com",
            four=four,
            role="Management node",
            model="PowerEdge R650",
            maker="Dell",
            primary=f"10.60.0.{index + 1}/16",
            oob=f"10.61.0.{index + 1}/16",
            platform="Rocky Linux 9.4",
        )
        for index in range(2)
    ]
    nodes = [
        device(
            10 + index,
            f"gpu{index + 1:03d}.hpc.example.com",
            four=four,
            primary=f"10.60.1.{index + 1}/16",
            oob=f"10.61.1.{index + 1}/16",
            rack=f"Row A_{index // 9 + 1:02d}",
            position=1.0 + 4 * (index % 9),
            serial=f"16605220000{index:03d}",
        )
        for index in range(workers)
    ]
    return heads + nodes


def save(path, data):
    path.write_text(json.dumps(data))
    return path


@pytest.mark.parametrize("four", [False, True], ids=["netbox 3.7", "netbox 4.2"])
def test_two_hundred_devices(rackwright, tmp_path, four):
    devices = site(four=four)
    out = tmp_path / "cluster.yaml"
    result = rackwright("import", "netbox", save(tmp_path / "d.json", page(devices)), "-o", out)
    assert result.status == 0, result.err
    text = out.read_text()
    assert "  - nodes: gpu[001-198] # d.json: device 10 to d.json: device 207\n" in text
    assert "    rack: row-a-[01-22]\n    position: {first: 1, step: 4}\n" in text
    cluster = round_trip(out, text)
    assert cluster.domain == "hpc.example.com"
    assert str(cluster.management.cidr) == "10.60.0.0/16"
    assert len(cluster.nodes) == 200
    for one in devices[2:]:
        node = cluster.by_name[one["name"].partition(".")[0]]
        assert f"{node.address_on('management')}/16" == one["primary_ip4"]["address"]
        assert node.bmc is not None
        assert f"{node.bmc.address}/16" == one["oob_ip"]["address"]
        assert (node.serial, node.position) == (one["serial"], one["position"])
        assert node.rack == one["rack"]["name"].lower().replace(" ", "-").replace("_", "-")
        assert (node.sku.name, node.os.id) == ("dgx-h100", "ubuntu-24.04")
    head = cluster.by_name["head1"]
    assert ([*head.roles], head.os.id) == (["head"], "rocky-9")
    assert (
        "sku: # MISSING: SKU of the nodes, see `rackwright catalog`; `Dell PowerEdge R650`: not certainly"
        in text
    )


def test_what_is_not_taken_is_listed(rackwright, tmp_path):
    devices = [
        *site(four=True, workers=2),
        device(50, "gpu900", status="planned"),
        device(51, "gpu901", status="decommissioning"),
        device(52, "sw1", role="Leaf switch", primary="10.60.9.1/16"),
        device(53, "pdu1", role="PDU"),
        device(54, "gpu003", primary="10.60.1.3/16", rack="Row A_01", position=5.0),
        device(
            55,
            "gpu004",
            primary="10.60.1.4/16",
            rack="Row A_01",
            position=9.5,
            custom={"mac_address": "xx", "owner": "me"},
        ),
    ]
    devices[0] |= {"tags": [{"id": 1, "name": "gpu"}], "tenant": {"id": 2, "name": "physics"}}
    devices[1]["site"] = {"id": 9, "name": "DC East", "slug": "dc-east"}
    result = rackwright("import", "netbox", save(tmp_path / "d.json", devices))
    assert result.status == 0, result.err
    for line in (
        "1 device of status `planned`: `gpu900`",
        "1 device of status `decommissioning`: `gpu901`",
        "d.json: device 52: `sw1`: `leaf-switch` is not a node of the cluster",
        "d.json: device 53: `pdu1`: `pdu` is not a node of the cluster",
        "d.json: device 54: gpu003 is at position 5 of row-a-01, where gpu002 is",
        "d.json: device 55, position: position `9.5`: not a whole number from 0 to 200",
        "d.json: device 55, custom field mac_address: mac `xx`: not a valid MAC address",
        "custom field `owner`: a cluster file has nothing of it, or has it from elsewhere",
        "fields of devices that a cluster file has nothing of: tags, tenant",
        "sites of devices: all are in one cluster file: `DC West` (9 devices), `DC East` (1 device)",
        "nodes written in lower case, with hyphens: `HEAD1` as head1, `HEAD2` as head2",
    ):
        assert f"ignored: {line}\n" in result.err
    for name in ("gpu900", "gpu901", "sw1", "pdu1"):
        assert name not in result.out


def test_macs_and_leaves_of_interfaces(rackwright, tmp_path):
    devices, number, ports = site(four=True, workers=4), 0, []
    for index, one in enumerate(devices[2:]):
        ports.append(
            interface(number, one, "BMC", "1000base-t", mac=f"52:54:00:00:01:{index:02x}", mgmt_only=True)
        )
        ports.append(interface(number + 1, one, "eno1", "25gbase-x-sfp28", mac=f"52:54:00:00:02:{index:02X}"))
        ports += [
            interface(number + 2 + rail, one, f"ib{rail}", "infiniband-ndr", peer=f"SU1-Leaf{rail + 1}")
            for rail in range(8)
        ]
        number += 10
    devices_file = save(tmp_path / "d.json", page(devices))
    out = tmp_path / "cluster.yaml"
    result = rackwright(
        "import", "netbox", devices_file, "--interfaces", save(tmp_path / "i.json", page(ports)), "-o", out
    )
    assert result.status == 0, result.err
    node = round_trip(out, out.read_text()).by_name["gpu003"]
    assert node.mac == "52:54:00:00:02:02"
    assert node.switches == tuple(f"su1-leaf{rail}" for rail in range(1, 9))


def test_leaves_of_cables(rackwright, tmp_path):
    devices = site(four=True, workers=4)
    cables = [
        cable(index, one, "eth0", f"leaf{index // 2 + 1}", f"swp{index}")
        for index, one in enumerate(devices[2:])
    ]
    out = tmp_path / "cluster.yaml"
    rackwright(
        *("import", "netbox", save(tmp_path / "d.json", devices)),
        *("--cables", save(tmp_path / "c.json", page(cables)), "-o", out),
    )
    cluster = round_trip(out, out.read_text())
    assert [cluster.by_name[f"gpu00{index}"].switches for index in (1, 2, 3, 4)] == [
        ("leaf1",),
        ("leaf1",),
        ("leaf2",),
        ("leaf2",),
    ]


def test_two_ports_are_not_guessed(rackwright, tmp_path):
    devices = site(four=False, workers=1)
    ports = [
        interface(
            index, devices[2], f"eno{index}", "25gbase-x-sfp28", mac=f"52:54:00:00:02:0{index}", four=False
        )
        for index in range(2)
    ]
    result = rackwright(
        "import",
        "netbox",
        save(tmp_path / "d.json", devices),
        "--interfaces",
        save(tmp_path / "i.json", ports),
    )
    assert "macs:" not in result.out
    assert "MAC addresses of `eno0`, `eno1`: which is the management port is not certain\n" in result.err


def test_several_subnets_are_marked_with_the_network_that_has_them(rackwright, tmp_path):
    devices = [
        device(1, "h1", role="head", primary="10.60.0.1/24"),
        device(2, "w1", primary="10.60.1.1/24"),
        device(3, "w2", primary="10.60.2.1/24"),
    ]
    out = tmp_path / "cluster.yaml"
    rackwright("import", "netbox", save(tmp_path / "d.json", devices), "-o", out)
    assert (
        "    cidr: # MISSING: the network of these addresses; the addresses are in 10.60.0.0/24, 10.60.1.0/24, 10.60.2.0/24; "
        "e.g. `10.60.0.0/22`\n"
    ) in out.read_text()
    assert len(round_trip(out, out.read_text()).nodes) == 3


def test_a_public_address_among_private_ones(rackwright, tmp_path):
    devices = [
        device(1, "h1", role="head", primary="192.0.2.1/24"),
        device(2, "w1", primary="10.60.0.11/16"),
        device(3, "w2", primary="10.60.0.12/16"),
    ]
    out = tmp_path / "cluster.yaml"
    rackwright("import", "netbox", save(tmp_path / "d.json", devices), "-o", out)
    assert (
        "management: # MISSING: address of the node; 192.0.2.1 is not an address of a node in 10.60.0.0/16"
        in out.read_text()
    )
    round_trip(out, out.read_text())


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("[{]", "is not JSON"),
        (
            '{"count": 2, "next": "https://x/?offset=1", "results": [{"id": 1}]}',
            "is one page of several: 2 objects in all.",
        ),
        ('{"detail": "Invalid token"}', "is not an answer of NetBox's REST API."),
        (
            '[{"id": 1, "name": null, "device_type": null, "role": null}]',
            "d.json: device 1: The node has no name.",
        ),
        ('[{"id": 1, "name": "a\\nroles: {}"}]', "cannot be a node's name"),
    ],
)
def test_files_that_are_no_export(rackwright, tmp_path, content, message):
    (tmp_path / "d.json").write_text(content)
    result = rackwright("import", "netbox", tmp_path / "d.json")
    assert result.status == 1
    assert message in result.err

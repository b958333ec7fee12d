"""What is on a disk, and whether it is what was approved."""

from __future__ import annotations

import json

import pytest

from rackwright.install.agent import disks, inventory, signatures
from rackwright.install.agent.order import Disk
from rackwright.install.agent.programs import AgentError

# wipefs 2.41 --json and sfdisk 2.41 --json, shortened
WIPEFS = json.dumps(
    {
        "signatures": [
            {"device": "vda2", "offset": "0x438", "type": "ext4", "uuid": "8a0f", "label": "root"},
            {"device": "vda2", "offset": "0x1000", "type": "linux_raid_member", "uuid": "9b", "label": None},
        ]
    }
)
SFDISK = json.dumps(
    {
        "partitiontable": {
            "label": "gpt",
            "partitions": [
                {"node": "/dev/vda1", "start": 2048, "size": 1, "name": "rw-unfinished-k3x9ab12"},
                {"node": "/dev/vda2", "start": 4096, "size": 1},
            ],
        }
    }
)


def test_signatures_are_type_and_label():
    assert signatures.of_device("/dev/vda2", WIPEFS) == [
        "/dev/vda2:ext4:root",
        "/dev/vda2:linux_raid_member:9b",
    ]
    assert signatures.of_device("/dev/vda", "") == []


def test_partitions_have_names_out_of_the_table():
    assert signatures.of_table("/dev/vda", SFDISK) == [
        "/dev/vda1:partlabel:rw-unfinished-k3x9ab12",
        "/dev/vda2:partlabel:",
    ]


def test_a_table_that_cannot_be_read_is_not_empty():
    assert signatures.of_table("/dev/vda", "") == ["/dev/vda:partitions:unreadable"]


def test_partitions_are_found(tmp_path):
    for name in ("nvme0n1p2", "nvme0n1p1"):
        (tmp_path / "nvme0n1" / name).mkdir(parents=True)
        (tmp_path / "nvme0n1" / name / "partition").touch()
    (tmp_path / "nvme0n1" / "queue").mkdir()
    assert signatures.partitions_of("/dev/nvme0n1", str(tmp_path)) == ["/dev/nvme0n1p1", "/dev/nvme0n1p2"]
    assert signatures.partition("/dev/nvme0n1", 2) == "/dev/nvme0n1p2"
    assert signatures.partition("/dev/sda", 2) == "/dev/sda2"


def test_a_blank_file_is_empty_and_one_of_no_size_is_an_error(tmp_path):
    device = tmp_path / "disk"
    device.write_bytes(b"")
    with pytest.raises(AgentError, match="has size 0"):
        signatures.read(str(device))
    with pytest.raises(AgentError, match=r"cannot read .*: No such file"):
        signatures.read(str(tmp_path / "gone"))
    device.write_bytes(bytes(2 << 20))
    assert signatures.read(str(device)) == []


def test_a_disk_that_cannot_be_read_has_an_error_and_is_not_blank(monkeypatch):
    def unreadable(path):
        raise AgentError(f"cannot read {path}: Input/output error")

    monkeypatch.setattr(signatures, "read", unreadable)
    row = {
        "path": "/dev/sda",
        "size": 5,
        "serial": " S1 ",
        "model": None,
        "wwn": "",
        "rota": True,
        "ro": False,
    }
    found = inventory.disk(row, [], "/sys/devices/pci0000:00/0000:00:1f.2/ata1/host0/target0/0:0:0:0")
    assert found["error"] == "cannot read /dev/sda: Input/output error"
    assert (found["serial"], found["wwn"], found["pci"]) == ("S1", None, "0000:00:1f.2")


APPROVED = Disk("/dev/vda", "S1", ("/dev/vda1:ext4:old",))


def _found(**changes):
    return {"serial": "S1", "read_only": False, "signatures": ["/dev/vda1:ext4:old"], **changes}


def test_a_disk_as_it_was_approved_is_accepted():
    assert disks.difference(APPROVED, _found()) is None


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (None, "/dev/vda is gone"),
        (_found(serial="S2"), "serial number S2, but S1 was approved"),
        (_found(serial=None), "serial number None"),
        (_found(signatures=[]), "no longer has /dev/vda1:ext4:old"),
        (_found(signatures=["/dev/vda1:ext4:old", "/dev/vda2:xfs:data"]), "now has /dev/vda2:xfs:data"),
        (_found(error="cannot read /dev/vda: x"), "cannot read"),
        (_found(read_only=True), "read-only"),
    ],
)
def test_a_disk_that_changed_since_is_not_written(found, said):
    assert said in str(disks.difference(APPROVED, found))


def test_the_second_look_is_at_what_is_there_now(monkeypatch):
    written = []
    monkeypatch.setattr(disks, "run", lambda *a, **k: written.append(a))
    monkeypatch.setattr(
        inventory, "disks", lambda: [{"path": "/dev/vda", **_found(signatures=["/dev/vda:gpt:"])}]
    )
    with pytest.raises(AgentError, match=r"changed since it was approved.*nothing was written"):
        disks.require_as_approved([APPROVED])
    monkeypatch.setattr(inventory, "disks", lambda: [{"path": "/dev/vda", **_found()}])
    monkeypatch.setattr(signatures, "busy", lambda disk: f"{disk} is in use: Device or resource busy")
    with pytest.raises(AgentError, match=r"in use.*nothing was written"):
        disks.require_as_approved([APPROVED])
    assert written == []

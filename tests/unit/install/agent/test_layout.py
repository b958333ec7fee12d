"""Commands that make partitions, arrays and volumes, for each layout."""

from __future__ import annotations

import pytest

from rackwright.install.agent import disks, layout, order
from rackwright.install.agent.layout import Command
from rackwright.install.agent.programs import AgentError
from tests.unit.install.agent import orders
from tests.unit.install.agent.orders import RUN, install_object, mirrored

ENCRYPTION = {"kind": "tpm2", "recovery_key": "s3cret-k3y", "tang": None}


def _lines(commands):
    return [" ".join(command.argv) for command in commands]


def test_one_disk():
    plain = orders.order()
    assert layout.table(plain).splitlines() == [
        "label: gpt",
        f"size=512MiB, type=C12A7328-F81F-11D2-BA4B-00A0C93EC93B, name=rw-unfinished-{RUN}",
        f"type=4F68BCE3-E8CD-4DB1-96E7-FBCAF984B709, name=rw-unfinished-{RUN}",
    ]
    assert layout.volumes(plain) == []
    assert layout.release(plain) == []
    assert (layout.root_device(plain), layout.boot_device(plain)) == ("/dev/nvme0n1p2", None)
    assert _lines(layout.rename(plain)) == [
        "sfdisk --part-label /dev/nvme0n1 1 esp0",
        "sfdisk --part-label /dev/nvme0n1 2 root0",
    ]


def test_two_disks_are_an_array_with_an_esp_on_each():
    two = mirrored()
    (array,) = layout.volumes(two)
    assert array.argv[:3] == ("mdadm", "--create", "/dev/md0")
    assert array.argv[-3:] == ("--write-zeroes", "/dev/sda2", "/dev/sdb2")
    assert array.otherwise is not None
    assert "--write-zeroes" not in array.otherwise
    assert layout.esps(two) == ["/dev/sda1", "/dev/sdb1"]
    assert layout.root_device(two) == "/dev/md0"
    assert _lines(layout.release(two)) == ["mdadm --stop /dev/md0"]
    assert _lines(layout.rename(two)) == [
        "sfdisk --part-label /dev/sda 1 esp0",
        "sfdisk --part-label /dev/sda 2 root0",
        "sfdisk --part-label /dev/sdb 1 esp1",
        "sfdisk --part-label /dev/sdb 2 root1",
    ]


def test_a_logical_volume_has_its_boot_beside_it():
    lvm = orders.order(volumes="lvm")
    assert layout.root_device(lvm) == f"/dev/mapper/system_{RUN}-root"
    assert layout.boot_device(lvm) == "/dev/nvme0n1p2"
    assert [line.split()[0] for line in _lines(layout.volumes(lvm))] == ["pvcreate", "vgcreate", "lvcreate"]
    assert "--devices /dev/nvme0n1p3" in _lines(layout.volumes(lvm))[0]
    assert [line.split()[-1] for line in _lines(layout.rename(lvm))] == ["esp0", "boot0", "root0"]
    assert _lines(layout.release(lvm)) == [f"vgchange --activate n system_{RUN}"]


def test_everything_at_once_is_released_from_the_top():
    all_of_it = mirrored(volumes="lvm", encryption=ENCRYPTION)
    assert [line.split()[0] for line in _lines(layout.volumes(all_of_it))] == [
        "mdadm", "mdadm", "cryptsetup", "cryptsetup", "pvcreate", "vgcreate", "lvcreate",
    ]  # fmt: skip
    assert layout.boot_device(all_of_it) == "/dev/md1"
    assert layout.crypt_device(all_of_it) == "/dev/md0"
    assert _lines(layout.release(all_of_it)) == [
        f"vgchange --activate n system_{RUN}",
        "cryptsetup close root_crypt",
        "mdadm --stop /dev/md0",
        "mdadm --stop /dev/md1",
    ]


@pytest.mark.parametrize(
    "encryption", [ENCRYPTION, {**ENCRYPTION, "kind": "tang", "tang": "http://10.0.0.5"}]
)
def test_the_recovery_key_is_in_no_command_and_no_text(encryption):
    encrypted = orders.order(encryption=encryption)
    commands = layout.volumes(encrypted)
    assert not any("s3cret-k3y" in line for line in _lines(commands))
    assert all(command.secret for command in commands)
    assert "s3cret-k3y" not in repr(encrypted)


def test_partitions_are_wiped_before_the_table():
    assert [line.split()[-1] for line in _lines(layout.wipe("/dev/sda", ["/dev/sda1", "/dev/sda2"]))] == [
        "/dev/sda1", "/dev/sda2", "/dev/sda",
    ]  # fmt: skip


def test_a_command_that_fails_is_tried_otherwise_or_ends_it(monkeypatch):
    tried = []

    def run(argv, **_):
        tried.append(argv[0])
        if argv[0] == "fails":
            raise AgentError("fails failed")
        return ""

    monkeypatch.setattr(disks, "run", run)
    disks.carry_out([Command(("fails",), otherwise=("works",)), Command(("works",))])
    assert tried == ["fails", "works", "works"]
    with pytest.raises(AgentError, match="fails failed"):
        disks.carry_out([Command(("fails",)), Command(("works",))])
    assert tried[3:] == ["fails"]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"run": "other123"}, "ordered run 'other123'"),
        ({"disks": []}, "needs 1 disks, but the head named none"),
        ({"mirror": True}, "needs 2 disks"),
        (
            {"mirror": True, "disks": [{"path": "/dev/sda", "serial": None, "signatures": []}] * 2},
            "needs 2 disks",
        ),
        ({"disks": [{"path": "/etc/passwd", "serial": None, "signatures": []}]}, "disks.path"),
        ({"disks": [{"path": "/dev/sda", "serial": "x"}]}, "signatures"),
        ({"volumes": "zfs"}, "incomplete: zfs"),
        ({"image": {"size": 5, "sha256": "abc", "name": "x"}}, "incomplete: image"),
        ({"files": [{"path": "etc/x", "content": "", "mode": 420}]}, "files.path"),
        ({"files": [{"path": "/etc/../../x", "content": "", "mode": 420}]}, "files.path"),
        ({"folders": [{"path": "home", "mode": 448}]}, "folders.path"),
        ({"encryption": {"kind": "tang", "recovery_key": "k", "tang": None}}, "encryption"),
        ({"encryption": {"kind": "tpm2", "recovery_key": ""}}, "encryption"),
    ],
)
def test_an_order_that_is_not_whole_is_refused(change, said):
    with pytest.raises(AgentError, match=said):
        order.parse(install_object(**change), RUN)


def test_a_node_in_memory_has_no_disks():
    assert order.parse(install_object(disks=[]), RUN, ramdisk=True).disks == ()

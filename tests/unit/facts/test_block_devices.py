"""Storage as a virtual machine listed it, which disk is meant, and answers that are refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from rackwright.boundary import Refused
from rackwright.facts.block_devices import parse
from rackwright.facts.block_records import Disk, Signature, Storage
from rackwright.facts.disk_choice import NoDisk, NotChosen, chosen, usable
from rackwright.model.disks import Selector

RECORDED = (Path(__file__).parent / "recorded/block_devices_vm.txt").read_text().splitlines()
"""Debian 13 in a virtual machine with four NVMe drives, 2026-11-24."""


def test_the_recorded_machine():
    there = parse(RECORDED)
    found = {disk.serial: (disk.name, disk.slots[0], disk.size) for disk in there.disks}
    assert found["store1-data0"] == ("nvme3n1", "0000:00:04.0", 10**9)
    assert found["store1-data1"] == ("nvme0n1", "0000:00:05.0", 10**9)
    root = chosen(there, Selector("root", serial="root"))
    assert "vda2 is mounted on /" in root.uses
    assert {one.type for one in root.signatures or ()} == {"gpt", "PMBR", "vfat", "ext4"}
    assert there.mounts["/"].type == "ext4"
    assert chosen(there, Selector("c", slot="0000:00:06.0")).serial == "store1-data2"
    assert chosen(there, Selector("c", slot="pci-0000:00:06.0-nvme-1")).serial == "store1-data2"


@pytest.mark.parametrize(
    ("lines", "why"),
    [
        ([], "list of block devices is incomplete"),
        (RECORDED[:-1], "list of block devices is incomplete"),
        (["begin", "lsblk {}", "end"], "lacks 'blockdevices'"),
        (["begin", 'lsblk {"blockdevices": []}', "disk sda", "end"], "does not list sda"),
        (["begin", "lsblk rubbish", "end"], "not valid JSON"),
        (["begin", 'lsblk {"blockdevices": []}', "mount / /x", "end"], "mountinfo"),
    ],
)
def test_refused_answers(lines, why):
    with pytest.raises(Refused, match=why):
        parse(lines)


def test_unreadable_content_is_not_no_content():
    lines = [line for line in RECORDED if not line.startswith("signatures")]
    lines = ["unreadable" if line.startswith("digest") else line for line in lines]
    disk = chosen(parse(lines), Selector("a", serial="store1-data0"))
    assert disk.signatures is None
    with pytest.raises(NotChosen, match="are unreadable; it was not changed"):
        usable(disk)


BLANK = Disk("nvme0n1", 10**9, "A", ("0000:01:00.0",), (), (), "d" * 64, ())


def there(*disks: Disk) -> Storage:
    return Storage(True, disks)


def test_a_missing_disk_is_named_with_those_that_are_there():
    with pytest.raises(NoDisk, match=r"No disk matches x \(serial B\)") as refused:
        chosen(there(BLANK), Selector("x", serial="B"))
    assert refused.value.hint == "the node has: A in 0000:01:00.0"


@pytest.mark.parametrize(
    ("disks", "selector", "why"),
    [
        ((BLANK, replace(BLANK, name="nvme1n1")), Selector("x", serial="A"), "2 disks match x"),
        (
            (BLANK, replace(BLANK, name="nvme1n1", slots=("0000:02:00.0",))),
            Selector("x", slot="0000:02:00.0"),
            "Several disks have the serial A",
        ),
        ((replace(BLANK, serial=None),), Selector("x", slot="0000:01:00.0"), "no readable serial"),
        (
            (BLANK, replace(BLANK, name="sdb", serial="B")),
            Selector("x", slot="0000:01:00.0"),
            "2 disks match x",
        ),
    ],
)
def test_disks_that_cannot_be_told_apart(disks, selector, why):
    with pytest.raises(NotChosen, match=why):
        chosen(there(*disks), selector)


def test_nothing_is_chosen_from_an_incomplete_answer():
    with pytest.raises(NotChosen, match="did not list its disks"):
        chosen(Storage(), Selector("x", serial="A"))


@pytest.mark.parametrize(
    ("disk", "why"),
    [
        (replace(BLANK, uses=("nvme0n1 is mounted on /data",)), "is in use and is never erased"),
        (replace(BLANK, read_only=True), "is read-only"),
        (replace(BLANK, digest=None), "are unreadable"),
    ],
)
def test_disks_that_are_never_written(disk, why):
    with pytest.raises(NotChosen, match=why):
        usable(disk)


def test_content_names_all_signatures():
    disk = replace(BLANK, signatures=(Signature("nvme0n1", "ext4", "0x438", "u-1", "old"),))
    assert disk.content == "ext4 LABEL=old UUID=u-1 on nvme0n1 at 0x438"
    assert BLANK.content == "no signature"

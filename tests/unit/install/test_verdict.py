"""Whether a machine is the declared one, which disks it gives, and what on them needs a confirmation."""

from __future__ import annotations

import pytest

from rackwright.install.verdict import choose, judge
from rackwright.model.install import DiskRule
from tests.factories import make_gpu_sku, make_sku
from tests.unit.install.site import EXT4, GPT, changed, disk, document, inventory, mac, make_worker

NODE = make_worker()
DMI = document()["dmi"]
UNFINISHED = (
    "/dev/sda1:partlabel:rw-unfinished-k3x9ab12",
    "/dev/sda2:ext4:root",
    "/dev/sda2:partlabel:rw-unfinished-k3x9ab12",
    "/dev/sda:PMBR:",
    "/dev/sda:gpt:1f0c",
)


def wrong(found, node=NODE, bmc_serial="SN-1"):
    return judge(node, found, bmc_serial, {}).contradictions


def test_the_declared_machine_with_an_empty_disk_is_approved():
    verdict = judge(NODE, inventory(), "SN-1", {})
    assert verdict.approved
    assert [one.serial for one in verdict.chosen] == ["DISK-1"]


CONTRADICTIONS = [
    ({"dmi": {**DMI, "product_serial": "SN-9"}}, ["its serial number is SN-9, but SN-1 is declared", "its serial number is SN-9, but its BMC's machine has SN-1"]),
    ({"dmi": {**DMI, "product_serial": None}}, ["its serial number is not set, but SN-1 is declared", "its serial number is not set, but its BMC's machine has SN-1"]),
    ({"nics": []}, [f"it has no port with the MAC {mac(1)}: none at all"]),
    ({"nics": [{"name": "eno1", "mac": mac(7)}]}, [f"it has no port with the MAC {mac(1)}: {mac(7)}"]),
    ({"efi": False, "secure_boot": None}, ["it was not booted with UEFI"]),
    ({"secure_boot": True}, ["Secure Boot is on, but off is declared"]),
    ({"secure_boot": None}, ["Secure Boot is not known, but off is declared"]),
    ({"cpus": 1}, ["it has 1 CPUs, but test-node has 2"]),
    ({"cpus": 4}, ["it has 4 CPUs, but test-node has 2"]),
    ({"memory_kib": 1024 * 1024}, ["it has 1024 MiB of memory, but test-node has 2048 MiB"]),
    ({"gpus": 1}, ["it has 1 NVIDIA GPUs, but test-node has 0"]),
]  # fmt: skip


@pytest.mark.parametrize(("changes", "messages"), CONTRADICTIONS)
def test_a_machine_that_contradicts_its_declaration_is_held(changes, messages):
    assert list(wrong(inventory(**changes))) == messages
    assert not judge(NODE, inventory(**changes), "SN-1", {}).approved


def test_all_contradictions_come_at_once():
    found = inventory(1, disk(9), efi=False, cpus=1, gpus=8, nics=[], memory_kib=0)
    assert len(wrong(found, bmc_serial="SN-2")) == 7


def test_no_confirmation_helps_against_a_contradiction():
    found = inventory(1, disk(signatures=[GPT]), cpus=1)
    assert not judge(NODE, found, "SN-1", {"DISK-1": (GPT,)}).approved


def test_a_mac_alone_is_no_machine():
    """The port of the declared machine in another one: its serial number is what counts."""
    found = inventory(dmi={**DMI, "product_serial": "SN-9"})
    assert wrong(found, NODE.model_copy(update={"serial": None})) == (
        "its serial number is SN-9, but its BMC's machine has SN-1",
    )
    assert wrong(found, NODE.model_copy(update={"serial": None}), bmc_serial="") == ()


UUID = "1f0c2e3a-0000-4000-8000-000000000001"
REVERSED = "3a2e0c1f-0000-0040-8000-000000000001"


def reasons(uuid, serial=""):
    node = NODE.model_copy(update={"serial": None})
    found = inventory(dmi={**DMI, "product_uuid": uuid, "product_serial": serial or None})
    return judge(node, found, serial, {}, UUID).contradictions


def test_where_the_bmc_has_no_serial_number_its_uuid_has_to_be_the_machines():
    for same in (UUID, UUID.upper(), REVERSED):
        assert reasons(same) == ()
        assert reasons(same, "0123456789") == (), "a serial number that was never set is none"
    for other in (UUID.replace("1f", "2f"), None, "odd", ""):
        for serial in ("", "0123456789"):
            assert reasons(other, serial) == (
                f"its UUID is {other or 'not set'}, but its BMC's machine has {UUID}",
            )
    assert reasons("odd", "SN-1") == (), "the serial number tells"


def test_macs_are_compared_without_case():
    assert not wrong(inventory(nics=[{"name": "eno1", "mac": mac(1).upper()}]))


def test_firmware_keeps_some_of_the_memory_but_no_module():
    sku = make_sku(memory_mib=524288)
    big = NODE.model_copy(update={"sku": sku})
    assert not wrong(inventory(memory_kib=int(524288 * 1024 * 0.95)), big)
    assert wrong(inventory(memory_kib=int(524288 * 1024 * 15 / 16) - 30_000_000), big)
    small = NODE.model_copy(update={"sku": make_sku(memory_mib=1024)})
    assert not wrong(inventory(memory_kib=(1024 - 200) * 1024), small)
    assert wrong(inventory(memory_kib=512 * 1024), small)


def test_gpus_are_counted():
    node = NODE.model_copy(update={"sku": make_gpu_sku(memory_mib=2048)})
    assert not wrong(inventory(cpus=224, gpus=8), node)
    assert wrong(inventory(cpus=224, gpus=7), node) == ("it has 7 NVIDIA GPUs, but gpu-node has 8",)


RULES = [
    ({"serials": ("DISK-2",)}, ["/dev/sdb"]),
    ({"serials": ("DISK-9",)}, []),
    ({"by_path": ("pci-0000:00:17.0-ata-2",)}, ["/dev/sdb"]),
    ({"by_path": ("pci-0000:00:17.0-ata",)}, []),
    ({"model": "Boot 240"}, ["/dev/sdb"]),
    ({"model": "Boot"}, []),
    ({"model": "Data 960"}, ["/dev/sdc", "/dev/sdd"]),
    ({"model": "Data 960", "size_gb": 1000}, ["/dev/sdc"]),
    ({"model": "Data 960", "size_gb": 480}, []),
]
DISKS = (
    disk(1),
    disk(2, path="/dev/sdb", model="Boot 240", by_path=["pci-0000:00:17.0-ata-2", "pci-0000:00:17.0-ata-2.0"]),
    disk(3, path="/dev/sdc", model="Data 960", size_bytes=960 * 10**9, by_path=[]),
    disk(4, path="/dev/sdd", model="Data 960", size_bytes=900 * 10**9, by_path=[]),
)  # fmt: skip


@pytest.mark.parametrize(("rule", "paths"), RULES)
def test_which_disks_a_rule_names(rule, paths):
    node = changed(NODE, disk=DiskRule(**rule))
    chosen, mistakes = choose(node.install, inventory(1, *DISKS))
    assert [one.disk.path for one in chosen] == paths
    assert bool(mistakes) is (len(paths) != 1)
    verdict = judge(node, inventory(1, *DISKS), "SN-1", {})
    assert verdict.approved is (len(paths) == 1)
    assert len(verdict.chosen) == (len(paths) == 1)


def test_a_rule_that_matches_too_many_names_what_there_is():
    node = changed(NODE, disk=DiskRule(model="Data 960"))
    there = "; found: " + ", ".join(one.label for one in inventory(1, *DISKS).disks)
    assert wrong(inventory(1, *DISKS), node) == (
        f"the model Data 960 matches 2 disks, but 1 are needed{there}",
    )


def test_a_machine_without_disks():
    found = inventory().model_copy(update={"disks": ()})
    assert wrong(found) == ("the serial number DISK-1 matches 0 disks, but 1 are needed; found: none",)


def test_a_mirror_takes_two():
    node = changed(NODE, mirror=True, disk=DiskRule(serials=("DISK-1", "DISK-2")))
    verdict = judge(node, inventory(1, *DISKS), "SN-1", {})
    assert verdict.approved
    assert [one.serial for one in verdict.chosen] == ["DISK-1", "DISK-2"]
    assert wrong(inventory(1, DISKS[0]), node)


def test_two_disks_of_one_serial_number_are_no_mirror():
    node = changed(NODE, mirror=True, disk=DiskRule(serials=("DISK-1", "DISK-2")))
    twins = (disk(1), disk(1, path="/dev/sdb"))
    assert set(wrong(inventory(1, *twins), node)) == {"several disks have the serial number DISK-1"}


def test_a_serial_number_that_another_disk_has_too_names_none():
    """The rule by slot names one disk, but its confirmation would name two."""
    node = changed(NODE, disk=DiskRule(by_path=("pci-0000:00:17.0-ata-1",)))
    found = inventory(1, disk(1), disk(1, path="/dev/sdb", by_path=[]))
    assert wrong(found, node) == ("several disks have the serial number DISK-1",)


BAD_DISKS = [
    ({"read_only": True}, "/dev/sda (serial DISK-1, Example 480) is read-only"),
    ({"error": "I/O error"}, "the contents of /dev/sda (serial DISK-1, Example 480) are unknown: I/O error"),
    ({"serial": None}, "/dev/sda has no serial number to confirm it with"),
    ({"serial": ""}, "/dev/sda has no serial number to confirm it with"),
]


@pytest.mark.parametrize(("changes", "message"), BAD_DISKS)
def test_a_disk_that_is_not_written(changes, message):
    node = changed(NODE, disk=DiskRule(by_path=("pci-0000:00:17.0-ata-1",)))
    verdict = judge(node, inventory(1, disk(**changes)), "SN-1", {"DISK-1": (), "": ()})
    assert verdict.contradictions == (message,)
    assert not verdict.chosen


@pytest.mark.parametrize(
    "sign", [GPT, EXT4, "/dev/sda:LVM2_member:x", "/dev/sda:partitions:unreadable", "odd", ""]
)
def test_a_disk_that_holds_anything_waits_for_its_serial_number(sign):
    found = inventory(1, disk(signatures=[sign]))
    verdict = judge(NODE, found, "SN-1", {})
    assert not verdict.approved
    assert verdict.unconfirmed == {"DISK-1": (sign,)}
    assert judge(NODE, found, "SN-1", {"DISK-1": (sign,)}).approved
    assert not judge(NODE, found, "SN-1", {"DISK-2": (sign,)}).approved


@pytest.mark.parametrize("seen", [[GPT, EXT4], [EXT4], ["/dev/sda:gpt:other"], [EXT4, GPT, GPT]])
def test_a_disk_that_changed_after_its_confirmation_is_not_confirmed(seen):
    confirmed = {"DISK-1": (GPT,)}
    assert not judge(NODE, inventory(1, disk(signatures=seen)), "SN-1", confirmed).approved


def test_other_disks_may_hold_what_they_like():
    found = inventory(1, disk(), disk(2, path="/dev/sdb", signatures=[GPT], read_only=True, error="odd"))
    assert judge(NODE, found, "SN-1", {}).approved


def test_each_disk_of_a_mirror_has_its_own_confirmation():
    node = changed(NODE, mirror=True, disk=DiskRule(serials=("DISK-1", "DISK-2")))
    found = inventory(1, disk(signatures=[GPT]), disk(2, path="/dev/sdb", signatures=["/dev/sdb:gpt:2"]))
    assert set(judge(node, found, "SN-1", {"DISK-1": (GPT,)}).unconfirmed) == {"DISK-2"}
    assert judge(node, found, "SN-1", {"DISK-1": (GPT,), "DISK-2": ("/dev/sdb:gpt:2",)}).approved


def test_what_we_left_half_written_needs_no_confirmation():
    assert judge(NODE, inventory(1, disk(signatures=UNFINISHED)), "SN-1", {}).approved


HOLDS_MORE = {
    "a partition of another name": (*UNFINISHED, "/dev/sda3:partlabel:data"),
    "a partition without a name": (*UNFINISHED, "/dev/sda3:partlabel:"),
    "a filesystem on a partition that is not in the table": (*UNFINISHED, "/dev/sda3:xfs:data"),
    "a filesystem on the whole disk": (*UNFINISHED, "/dev/sda:xfs:data"),
    "an array on the whole disk": (*UNFINISHED, "/dev/sda:linux_raid_member:x"),
    "a table in a partition": (*UNFINISHED, "/dev/sda3:gpt:x"),
    "a table that cannot be read": (*UNFINISHED, "/dev/sda:partitions:unreadable"),
    "a name with more before it": ("/dev/sda1:partlabel:x-rw-unfinished-k3x9ab12", GPT),
    "a finished installation": ("/dev/sda1:partlabel:esp0", "/dev/sda2:partlabel:root0", GPT),
    "a table alone": (GPT,),
    "an odd signature": (*UNFINISHED, "odd"),
    "a label like a name": ("/dev/sda:btrfs:x:partlabel:rw-unfinished-1",),
    "a label like a name, of a partition": (GPT, "/dev/sda1:btrfs:x:partlabel:rw-unfinished-1"),
    "the whole disk as its own partition": ("/dev/sda:partlabel:rw-unfinished-1", "/dev/sda:xfs:data"),
    "a name with nothing around it": ("rw-unfinished-1",),
}  # fmt: skip


@pytest.mark.parametrize("signatures", HOLDS_MORE.values(), ids=HOLDS_MORE)
def test_what_also_holds_something_else_does(signatures):
    verdict = judge(NODE, inventory(1, disk(signatures=signatures)), "SN-1", {})
    assert set(verdict.unconfirmed) == {"DISK-1"}


def test_a_diskless_node_is_judged_without_its_disks():
    for rule in (DiskRule(), NODE.install.disk):
        node = changed(NODE, diskless=True, disk=rule)
        verdict = judge(node, inventory(1, disk(signatures=[GPT], read_only=True)), "SN-1", {})
        assert verdict.approved
        assert not verdict.chosen

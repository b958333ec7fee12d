"""What operations on disks plan, and what they refuse when they are carried out."""

from __future__ import annotations

import re
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from pyinfra.api.exceptions import OperationError

from rackwright.facts.block_records import Array, Disk, Signature, Storage
from rackwright.facts.disk_choice import NoDisk, NotChosen
from rackwright.model.disks import Selector
from rackwright.model.types import NodeRole, Platform
from rackwright.operations import arrays, disk_guard, filesystems, volumes
from rackwright.plan.changes import Change
from tests.factories import make_node

A = Disk("nvme0n1", 10**9, "A", ("0000:01:00.0",), ("/dev/disk/by-id/nvme-X_A",), (), "a" * 64, ())
B = Disk("nvme1n1", 10**9, "B", ("0000:02:00.0",), ("/dev/disk/by-id/nvme-X_B",), (), "b" * 64, ())
C = replace(B, name="nvme2n1", serial="C", slots=("0000:03:00.0",))
OLD = Signature("nvme0n1", "ext4", "0x438", "u", "old")
FULL = replace(A, signatures=(OLD,))
SELECTED = tuple(Selector(name.lower(), serial=name) for name in "AB")


class Host:
    """Stands for pyinfra's host: a fact of storage, and notes."""

    name = "n1"

    def __init__(self) -> None:
        self.storage = Storage(True, (A, B, C))
        self.noops: list[str] = []

    def get_fact(self, fact: Any, **_: Any) -> Storage:
        return self.storage

    def noop(self, text: str) -> None:
        self.noops.append(text)


class Made:
    """One node, and what its operations recorded and yielded."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.host, self.state = Host(), SimpleNamespace(is_executing=False)
        self.changes: list[Change] = []
        node = make_node("n1", 10, NodeRole.HEAD, platform=Platform.VM)
        self.site = SimpleNamespace(node=node, offline=False, erasable={})
        for module in (arrays, filesystems, volumes):
            monkeypatch.setattr(module, "host", self.host)
            monkeypatch.setattr(module, "site_of", lambda: self.site)
            monkeypatch.setattr(module, "record", lambda *changes: self.changes.extend(changes))
        monkeypatch.setattr(disk_guard, "site_of", lambda: self.site)
        monkeypatch.setattr(disk_guard, "state", self.state)
        monkeypatch.setattr(disk_guard, "ctx_host", SimpleNamespace(get=lambda: self.host))

    def array(self, **options: Any) -> list[str]:
        given = {"array": "scratch", "level": "1", "disks": SELECTED, **options}
        return [str(one) for one in arrays.array._inner(**given)]

    def has(self, *disks: Disk, **more: Any) -> None:
        self.host.storage = Storage(True, disks, **more)


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> Made:
    return Made(monkeypatch)


def test_an_array_of_blank_disks(made):
    (command,) = made.array()
    assert (
        "mdadm --create /dev/md/scratch --run --metadata=1.2 --level=1 --name=scratch --homehost=n1"
        in command
    )
    assert "/dev/nvme0n1 /dev/nvme1n1" in command
    assert "wipefs --all" not in command
    assert "--scan" not in command
    assert [(one.target, one.before, one.erases, one.disruptive) for one in made.changes] == [
        ("/dev/nvme0n1 (serial A, 1.0 GB)", "no signature", None, True),
        ("/dev/nvme1n1 (serial B, 1.0 GB)", "no signature", None, True),
    ]


def test_a_disk_with_a_signature_says_so_in_the_plan(made):
    made.has(FULL, B)
    (command,) = made.array()
    assert made.changes[0].before == "ext4 LABEL=old UUID=u on nvme0n1 at 0x438"
    assert made.changes[0].erases == "A"
    assert "wipefs --all --quiet /dev/nvme0n1" in command


def test_it_is_not_carried_out_without_its_serial(made):
    made.has(FULL, B)
    made.array()
    made.state.is_executing = True
    for typed in ({}, {"B": FULL.content}, {"A": "xfs"}, {"a": FULL.content}):
        made.site.erasable = typed
        with pytest.raises(OperationError, match="its serial was not confirmed for this run"):
            made.array()
    made.site.erasable = {"A": FULL.content}
    assert len(made.array()) == 1


@pytest.mark.parametrize(
    "now",
    [
        (replace(A, name="nvme1n1"), replace(B, name="nvme0n1")),  # they changed their names
        (replace(A, digest="c" * 64), B),  # something appeared on it
        (replace(A, size=2 * 10**9), B),
    ],
)
def test_disks_other_than_planned_are_refused(made, now):
    made.has(A, B)
    made.array()
    made.has(*now)
    made.state.is_executing = True
    with pytest.raises(OperationError, match="when it was planned"):
        made.array()


def test_another_disk_in_the_slot_than_planned(made):
    by_slot = (Selector("a", slot="0000:01:00.0"), Selector("b", slot="0000:02:00.0"))
    made.array(disks=by_slot)
    made.has(replace(A, serial="OTHER"), B)
    made.state.is_executing = True
    with pytest.raises(OperationError, match=r"OTHER.* was not part of the plan"):
        made.array(disks=by_slot)


def test_a_typed_serial_does_not_free_a_disk_in_use(made):
    made.site.erasable = {"A": FULL.content}
    made.has(replace(FULL, uses=("nvme0n1 is mounted on /home",)), B)
    with pytest.raises(NotChosen, match="is in use and is never erased: nvme0n1 is mounted on /home"):
        made.array()


def test_a_missing_disk(made):
    made.has(A)
    with pytest.raises(NoDisk, match=r"No disk matches b \(serial B\)"):
        made.array()
    assert made.changes == []


def test_a_container_is_refused(made):
    made.site.node = make_node("n1", 10, NodeRole.HEAD, platform=Platform.CONTAINER)
    for operation in (
        made.array,
        lambda: list(filesystems.filesystem._inner(path=LINK, type="xfs")),
        lambda: list(volumes.group._inner(group="g", disks=SELECTED)),
        lambda: list(volumes.volume._inner(group="g", volume="v", size="rest")),
    ):
        with pytest.raises(OperationError, match="a container's disks belong to its host"):
            operation()


LINK = "/dev/disk/by-id/md-name-n1:scratch"
"""What an array is opened by: /dev/md/scratch is not there after a reboot."""


def running(
    members: dict[str, str], degraded: str = "0", level: str = "raid1", raid_disks: str = "2"
) -> Array:
    values = {"array_state": "clean", "level": level, "degraded": degraded, "raid_disks": raid_disks}
    return Array("md127", values, members, "scratch", (LINK, "/dev/md/n1:scratch"), 10**9)


MEMBERS = {"nvme0n1": "in_sync", "nvme1n1": "in_sync"}


def test_an_array_as_declared(made):
    made.has(A, B, arrays=(running(MEMBERS),))
    assert made.array() == []
    assert made.host.noops == ["scratch is as declared"]


def test_a_replaced_disk_is_added_and_the_failed_one_removed(made):
    made.has(A, B, C, arrays=(running({**MEMBERS, "nvme1n1": "faulty"}, "1"),))
    new = (SELECTED[0], Selector("b", serial="C"))
    remove, add = made.array(disks=new)
    assert remove == "mdadm /dev/md127 --remove failed --remove detached"
    assert "mdadm --manage /dev/md127 --add /dev/nvme2n1" in add
    assert [(one.target, one.after) for one in made.changes] == [
        ("/dev/nvme1n1", None),
        ("/dev/nvme2n1 (serial C, 1.0 GB)", "member of the array scratch, rebuilt"),
    ]


REPLACED = (SELECTED[0], Selector("b", serial="C"))
"""C is declared where B was."""


def test_a_member_that_works_serves_until_its_data_is_on_the_disk_declared_in_its_place(made):
    made.has(A, B, C, arrays=(running(MEMBERS),))
    add, move = made.array(disks=REPLACED)
    assert "mdadm --manage /dev/md127 --add /dev/nvme2n1" in add
    assert move.startswith("mdadm --manage /dev/md127 --replace /dev/nvme1n1 && systemd-run ")
    assert "mdadm /dev/md127 --remove /dev/nvme1n1" in move
    assert [(one.target, one.after) for one in made.changes] == [
        ("/dev/nvme2n1 (serial C, 1.0 GB)", "member of the array scratch, rebuilt"),
        ("/dev/nvme1n1", None),
    ]


def test_a_declared_spare_takes_the_place_of_a_member_that_is_not(made):
    there = {**MEMBERS, "nvme2n1": "spare"}  # as versions before 2026-11-26 left it
    made.has(A, B, C, arrays=(running(there),))
    (move,) = made.array(disks=REPLACED)
    assert "--replace /dev/nvme1n1" in move


@pytest.mark.parametrize(
    ("members", "degraded"),
    [
        # its data is being copied
        ({"nvme0n1": "in_sync", "nvme1n1": "in_sync,want_replacement", "nvme2n1": "spare,replacement"}, "0"),
        # the spare is needed for a member that is missing
        ({"nvme1n1": "in_sync", "nvme2n1": "spare"}, "1"),
    ],
)
def test_a_member_without_a_free_disk_to_take_its_place_stays(made, members, degraded):
    made.has(*((A, B, C) if "nvme0n1" in members else (B, C)), arrays=(running(members, degraded),))
    assert made.array(disks=REPLACED) == []


def test_a_member_stays_until_the_declared_disk_is_there(made):
    made.has(A, B, arrays=(running(MEMBERS),))
    assert made.array(disks=REPLACED) == []


def test_a_member_is_not_moved_to_a_spare_while_a_declared_disk_is_missing(made):
    """The serial of b is misspelt: the member that looks undeclared is the one that was meant."""
    made.has(A, B, C, arrays=(running({**MEMBERS, "nvme2n1": "spare"}),))
    misspelt = (SELECTED[0], Selector("b", serial="BB"))
    assert made.array(disks=misspelt, spares=(Selector("c", serial="C"),)) == []
    made.has(A, B, C, arrays=(running(MEMBERS),))
    (add,) = made.array(disks=misspelt, spares=(Selector("c", serial="C"),))
    assert "--add /dev/nvme2n1" in add
    assert "--replace" not in add


def test_a_failed_disk_that_is_still_declared_is_left(made):
    made.has(A, B, arrays=(running({**MEMBERS, "nvme1n1": "faulty"}, "1"),))
    assert made.array() == []


def test_a_missing_member_of_a_running_array_stops_nothing_else(made):
    made.has(A, arrays=(running({"nvme0n1": "in_sync"}, "1"),))
    assert made.array() == []


def test_an_array_is_not_reshaped(made):
    made.has(A, B, arrays=(running(MEMBERS, level="raid0"),))
    with pytest.raises(OperationError, match="it is not reshaped"):
        made.array()


def test_an_array_gets_no_more_disks_than_it_is_made_for(made):
    made.has(A, B, C, arrays=(running(MEMBERS),))
    three = (*SELECTED, Selector("c", serial="C"))
    message = "scratch (/dev/md127) has 2 disks, but 3 are declared: it is not reshaped"
    with pytest.raises(OperationError, match=re.escape(message)):
        made.array(disks=three)
    assert made.changes == []
    (add,) = made.array(spares=three[2:])  # a spare is none of them
    assert "--add /dev/nvme2n1" in add


@pytest.mark.parametrize("raid_disks", ["", "3 (2)"])
def test_an_array_whose_number_of_disks_cannot_be_read_is_left_to_verify(made, raid_disks):
    made.has(A, B, arrays=(running(MEMBERS, raid_disks=raid_disks),))
    assert made.array() == []


def test_members_of_an_array_that_does_not_run_are_assembled(made):
    part = Signature("x", "linux_raid_member", "0x1000", "u", "n1:scratch")
    made.has(replace(A, signatures=(part,)), replace(B, signatures=(part,)))
    assert made.array() == ["mdadm --assemble --run /dev/md/scratch /dev/nvme0n1 /dev/nvme1n1"]
    assert [one.erases for one in made.changes] == [None]


def test_a_stripe_with_a_replaced_drive_is_made_anew_once_the_other_serials_were_typed(made):
    label = Signature("nvme0n1", "linux_raid_member", "0x1000", "u", "n1:scratch")
    left = replace(A, signatures=(label,))
    made.has(left, B)
    (command,) = made.array(level="0")
    assert "mdadm --create /dev/md/scratch --run --metadata=1.2 --level=0" in command
    assert "--assemble" not in command
    assert [one.erases for one in made.changes] == ["A", None]
    made.state.is_executing = True
    with pytest.raises(OperationError, match="its serial was not confirmed for this run"):
        made.array(level="0")
    made.site.erasable = {"A": left.content}
    assert len(made.array(level="0")) == 1


def test_a_stripe_whose_drives_are_all_there_is_assembled(made):
    label = Signature("nvme0n1", "linux_raid_member", "0x1000", "u", "n1:scratch")
    made.has(replace(A, signatures=(label,)), replace(B, signatures=(label,)))
    assert made.array(level="0") == ["mdadm --assemble --run /dev/md/scratch /dev/nvme0n1 /dev/nvme1n1"]


def test_a_stripe_that_was_left_inactive_without_its_drive_is_stopped_by_hand(made):
    label = Signature("nvme0n1", "linux_raid_member", "0x1000", "u", "n1:scratch")
    inactive = Array("md127", {"array_state": "inactive"}, {"nvme0n1": "spare"}, "scratch")
    made.has(replace(A, signatures=(label,)), B, arrays=(inactive,))
    message = "the stripe scratch (/dev/md127) is inactive: the data of the lost drive cannot be recovered; run `mdadm --stop /dev/md127`, and apply again: it is recreated from its declared drives"
    with pytest.raises(OperationError, match=re.escape(message)):
        made.array(level="0")
    made.has(replace(A, signatures=(label,)), replace(B, signatures=(label,)), arrays=(inactive,))
    with pytest.raises(OperationError, match="is inactive: repair it by hand"):
        made.array(level="0")


def test_a_filesystem_is_never_made_over_anything(made):
    made.has(A, B, arrays=(running(MEMBERS),), on={"/dev/md127": (OLD,)})
    with pytest.raises(OperationError, match="it is not formatted"):
        list(filesystems.filesystem._inner(path=LINK, type="xfs"))
    assert list(filesystems.filesystem._inner(path=LINK, type="ext4")) == []
    with pytest.raises(OperationError, match="with the label new: it is not formatted"):
        list(filesystems.filesystem._inner(path=LINK, type="ext4", label="new"))


def test_an_array_is_opened_by_the_link_that_it_has_in_every_boot(made):
    made.has(A, B, arrays=(running(MEMBERS),), on={"/dev/md127": ()})
    (command,) = map(str, filesystems.filesystem._inner(path=LINK, type="xfs"))
    assert f"mkfs.xfs -q {LINK} </dev/null" in command
    (command,) = map(str, volumes.group._inner(group="g", arrays=("scratch",)))
    assert f"vgcreate --quiet g {LINK} </dev/null" in command
    made.host.storage = replace(made.host.storage, physical={"/dev/md127": "g"}, groups={"g": {}})
    assert list(volumes.group._inner(group="g", arrays=("scratch",))) == []


def test_a_volume_is_grown_and_never_shrunk(made):
    extent = 4 << 20
    group = {"vg_name": "g", "vg_size": str(100 * extent), "vg_free": "0", "vg_extent_size": str(extent)}
    row = {"lv_size": str(50 * extent)}
    made.has(A, groups={"g": group}, volumes={"g/v": row})
    (grow,) = volumes.volume._inner(group="g", volume="v", size="60%")
    assert str(grow) == "lvextend --quiet --extents 60%VG /dev/mapper/g-v </dev/null"
    assert list(volumes.volume._inner(group="g", volume="v", size="50%")) == []
    with pytest.raises(OperationError, match="volumes are not shrunk"):
        list(volumes.volume._inner(group="g", volume="v", size="40%"))


def test_an_array_of_another_machine_is_not_assembled(made):
    part = Signature("x", "linux_raid_member", "0x1000", "u", "n2:scratch")
    made.has(replace(A, signatures=(part,)), replace(B, signatures=(part,)))
    made.array()
    assert [one.erases for one in made.changes] == ["A", "B"]

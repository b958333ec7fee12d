"""The storage_layout role: mistakes of its options, its files, and its checks."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from rackwright.facts.block_devices import BlockDevices
from rackwright.model.mount_names import unit_name
from rackwright.model.types import Platform
from rackwright.roles.storage_layout.options import StorageLayoutOptions
from rackwright.roles.storage_layout.readings import array_faults, progress
from rackwright.roles.storage_layout.verify import CHECKS
from tests.unit.roles.fake_facts import files, unit
from tests.unit.roles.fake_host import FakeHost, content, errors_in, judged, planned
from tests.unit.roles.sites import site, worker

RECORDED = Path(__file__).parents[1] / "facts/recorded/block_devices_vm.txt"


def declared(**changes: Any) -> dict[str, Any]:
    return {
        "disks": {
            "a": {"serials": {"head1": "store0-a", "gpu1": "store1-data0", "gpu2": "store2-data0"}},
            "b": {"slot": "0000:00:05.0"},
            "c": {"slot": "0000:00:06.0"},
        },
        "arrays": {"mirror": {"level": 1, "disks": ["a", "b"]}},
        "volume_groups": {"data": {"on": ["c"], "volumes": {"work": "60%", "left": "rest"}}},
        "filesystems": {
            "/scratch": {"on": "mirror", "mode": "1777"},
            "/work": {"on": "data/work", "type": "ext4"},
        },
        **changes,
    }


def made(**changes: Any) -> StorageLayoutOptions:
    return StorageLayoutOptions.model_validate(declared(**changes))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"disks": {}},
            "No disk is declared: name some under `disks`, or those of the SKU under `sku_disks`.",
        ),
        (
            {"sku_disks": {"a": "scratch"}},
            "a names several things: disks, arrays and volume groups need distinct names.",
        ),
        (
            {"disks": {"set1": {"slot": "0000:00:05.0"}}, "sku_disks": {"set": "scratch"}},
            "set1 is the name of a drive of the set set too.",
        ),
        (
            {"sku_disks": {"set2": "scratch"}},
            "String should match pattern '^[a-z][a-z_]{0,11}$'",
        ),
        ({"disks": {"a": {}}}, "A disk is declared by its `slot`, or by its `serials` by node: one of the two."),
        (
            {"disks": {"a": {"slot": "0000:00:05.0", "serials": {"gpu1": "X"}}}},
            "A disk is declared by its `slot`, or by its `serials` by node: one of the two.",
        ),
        ({"disks": {"a": {"serials": {"gpu1": "*"}}}}, "'*' is not the serial of a disk."),
        ({"arrays": {"m": {"level": 5, "disks": ["a", "b"]}}}, "RAID 5 needs at least 3 disks, but has 2."),
        ({"arrays": {"m": {"level": 1, "disks": ["a", "a"]}}}, "a is used by the array m and by the array m."),
        (
            {"arrays": {"mirror": {"level": 1, "disks": ["a", "c"]}}},
            "c is used by the array mirror and by the volume group data.",
        ),
        (
            {"arrays": {"mirror": {"level": 1, "disks": ["a", "x"]}}},
            "the array mirror is on x, which is not declared.",
        ),
        (
            {"arrays": {"a": {"level": 1, "disks": ["b", "c"]}}, "volume_groups": {}, "filesystems": {}},
            "a names several things: disks, arrays and volume groups need distinct names.",
        ),
        (
            {"arrays": {"mirror": {"level": 0, "disks": ["a", "b"], "spares": ["c"]}}},
            "RAID 0 cannot use a spare: its data is lost with its first disk.",
        ),
        (
            {"filesystems": {"/work": {"on": "mirror"}, "/work/x": {"on": "data/work"}}},
            "/work/x is below /work, which is a filesystem of this role too.",
        ),
        (
            {"filesystems": {"/etc": {"on": "mirror"}}},
            "/etc is not usable as a mount point: the operating system needs it.",
        ),
        (
            {"filesystems": {"/usr/lib/x": {"on": "mirror"}}},
            "/usr/lib/x is not usable as a mount point: the operating system needs it.",
        ),
        (
            {"filesystems": {"/var/lib": {"on": "mirror"}}},
            "/var/lib is not usable as a mount point: the operating system needs it.",
        ),
        (
            {"filesystems": {"/s": {"on": "mirror", "type": "ext4", "mount_options": ["uquota"]}}},
            "ext4 has no mount option `uquota`.",
        ),
        ({"filesystems": {"/a/../b": {"on": "mirror"}}}, "/a/../b is not usable as a mount point."),
        ({"filesystems": {"/s": {"on": "data/none"}}}, "/s is on data/none, which is not declared."),
        (
            {"volume_groups": {"data": {"on": ["c"], "volumes": {"work": "10G"}}}},
            "'10G' is not the size of a volume (work).",
        ),
        (
            {"volume_groups": {"data": {"on": ["c"], "volumes": {"left": "rest", "work": "60%"}}}},
            "Only the last volume of a group can have the `rest`.",
        ),
        (
            {"volume_groups": {"data": {"on": ["c"], "volumes": {"left": "60%", "work": "60%"}}}},
            "The volumes of a group have more than 100% of it.",
        ),
        (
            {"filesystems": {"/scratch": {"on": "mirror", "label": "more_than_twelve"}}},
            "A label of xfs has at most 12 characters.",
        ),
    ],
)  # fmt: skip
def test_mistakes(changes, message):
    assert message in errors_in(StorageLayoutOptions, declared(**changes))


def cluster(**changes: Any):
    return site({"storage_layout": made(**changes)}, platform=Platform.VM)


def test_mistakes_that_need_the_cluster():
    serials = {"gpu1": "S", "gpu2": "S", "gpu9": "T"}
    disks = {"a": {"serials": serials}, "b": {"serials": {"gpu1": "S"}}}
    options = made(disks=disks, volume_groups={}, filesystems={})
    found = [
        (path, message)
        for path, message, _ in options.problems(site({"storage_layout": options}, platform=Platform.VM))
    ]
    assert ("disks.a.serials", "head1 has no serial for the disk a.") in found
    assert ("disks.b.serials", "b and a have the same serial on gpu1.") in found
    assert ("disks.a.serials.gpu2", "The disk S is in gpu1 too.") in found
    assert ("disks.a.serials.gpu9", "There is no node gpu9.") in found
    assert list(made().problems(cluster())) == []


def test_a_container_is_refused_before_anything_is_reached():
    options = made()
    there = site({"storage_layout": options}, platform=Platform.CONTAINER)
    messages = [message for _, message, _ in options.problems(there)]
    assert messages[0] == "storage_layout cannot run on head1: a container's disks belong to its host."
    assert len(messages) == 3


def test_files():
    plan = planned(cluster(), worker(cluster()))
    assert content(plan, "/etc/mdadm/mdadm.conf.d/90-rackwright.conf") == (
        "# Written by rackwright; changes made here are undone.\n"
        "ARRAY /dev/md/mirror metadata=1.2 name=gpu1:mirror\n"
    )
    assert content(plan, "/etc/systemd/system/scratch.mount") == (
        "# Written by rackwright; changes made here are undone.\n"
        "[Unit]\nDescription=/scratch (mirror)\n\n"
        "[Mount]\nWhat=/dev/disk/by-id/md-name-gpu1:mirror\nWhere=/scratch\nType=xfs\nOptions=noatime\n\n"
        "[Install]\nWantedBy=local-fs.target\n"
    )


@pytest.mark.parametrize(
    ("path", "name"),
    [("/scratch", "scratch.mount"), ("/a/b-c", "a-b\\x2dc.mount"), ("/a/b.c_d", "a-b.c_d.mount")],
)
def test_unit_names(path, name):
    """As systemd-escape --path prints them (systemd 252)."""
    assert unit_name(path) == name


@dataclass
class Found:
    values: dict[str, str]
    members: dict[str, str] = field(default_factory=lambda: {"nvme0n1": "in_sync", "nvme1n1": "in_sync"})

    def value(self, key: str) -> str:
        return self.values.get(key, "")


CLEAN = {"array_state": "clean", "level": "raid1", "raid_disks": "2", "degraded": "0", "sync_action": "idle"}
DECLARED = {"nvme0n1": "a (serial A)", "nvme1n1": "b (serial B)"}


@pytest.mark.parametrize(
    ("values", "members", "faults", "rebuild"),
    [
        (CLEAN, None, [], None),
        ({**CLEAN, "array_state": "inactive"}, None, ["it is inactive"], None),
        ({}, None, ["it is in an unknown state"], None),
        ({**CLEAN, "level": "raid0"}, None, ["it is raid0, not raid1"], None),
        ({**CLEAN, "degraded": ""}, None, ["whether it is degraded cannot be read"], None),
        (
            {**CLEAN, "degraded": "1"},
            {"nvme0n1": "in_sync", "nvme1n1": "faulty"},
            ["nvme1n1 has failed", "it is degraded by 1"],
            None,
        ),
        (
            {**CLEAN, "degraded": "1"},
            {"nvme0n1": "in_sync"},
            ["b (serial B) is not a member", "it is degraded by 1"],
            None,
        ),
        (CLEAN, {**DECLARED, "sdx": "in_sync"}, ["sdx is a member but not declared"], None),
        (
            {**CLEAN, "sync_action": "recover", "sync_completed": "512 / 2048"},
            {**DECLARED, "nvme1n1": "spare,replacement", "sdx": "in_sync,want_replacement"},
            [],
            "rebuilding, 25 % done",
        ),
        (
            CLEAN,
            {**DECLARED, "sdx": "in_sync,want_replacement"},
            ["sdx is a member but not declared"],
            None,
        ),
        (
            {**CLEAN, "degraded": "1", "sync_action": "recover", "sync_completed": "512 / 2048"},
            {"nvme0n1": "in_sync", "nvme1n1": "spare"},
            [],
            "rebuilding, 25 % done",
        ),
    ],
)
def test_states_of_an_array(values, members, faults, rebuild):
    found = Found(values) if members is None else Found(values, members)
    assert array_faults(found, "raid1", 2, DECLARED) == (faults, rebuild)


def test_progress_that_is_not_known():
    assert progress("none") == progress("delayed") == progress("") == "its progress is not known yet"


ASK = f"sh -c {shlex.quote(str(BlockDevices().command(lvm=True)))}"
ARRAY = [
    *(f"md md127/md/{key}: {value}" for key, value in CLEAN.items()),
    "md md127/md/dev-nvme3n1/state: in_sync",
    "md md127/md/dev-nvme0n1/state: in_sync",
    "md md127/size: 1950000",
    "mdudev md127 MD_NAME=gpu1:mirror",
    "mdudev md127 DEVLINKS=/dev/disk/by-id/md-name-gpu1:mirror /dev/md/gpu1:mirror",
    'on /dev/md127 {"signatures": [{"device": "md127", "offset": "0x0", "type": "xfs", "uuid": "u", "label": null}]}',
    "mount / /scratch rw,noatime shared:9 - xfs /dev/md127 rw,attr2",
]
REBUILDING = [
    *(line for line in ARRAY if "degraded" not in line and "sync_action" not in line),
    "md md127/md/degraded: 1",
    "md md127/md/sync_action: recover",
    "md md127/md/sync_completed: 1 / 4",
]
FAILED = [line.replace("nvme0n1/state: in_sync", "nvme0n1/state: faulty") for line in ARRAY]
DISKS, WHOLE = "the declared disks are present", "the arrays are complete and use their declared disks"
TYPES, MOUNTED = "the filesystems have their declared types", "the filesystems are mounted as declared"


def answered(*more: str, without: str = "-") -> FakeHost:
    lines = [line for line in RECORDED.read_text().splitlines() if without not in line]
    return FakeHost({ASK: "\n".join((*lines[:-1], *more, "end")) + "\n"})


ONE = {"filesystems": {"/scratch": {"on": "mirror"}}}


@pytest.mark.parametrize(
    ("name", "host", "status", "evidence"),
    [
        (DISKS, answered(without="@"), "PASS", None),
        (DISKS, answered(without="serial store1-data0"), "FAIL", "No disk matches a (serial store1-data0)."),
        (DISKS, FakeHost({}), "UNKNOWN", None),
        (WHOLE, answered(*ARRAY, without="@"), "PASS", "mirror is clean, 2 members"),
        (WHOLE, answered(*REBUILDING, without="@"), "WARN", "mirror is rebuilding, 25 % done"),
        (WHOLE, answered(*FAILED, without="@"), "FAIL", "mirror: nvme0n1 has failed"),
        (WHOLE, answered(without="@"), "FAIL", "the array mirror is not running"),
        (WHOLE, FakeHost({ASK: "begin\n"}), "UNKNOWN", None),
        (TYPES, answered(*ARRAY, without="@"), "PASS", "mirror: xfs"),
        (TYPES, answered(without="@"), "UNKNOWN", "the signatures on mirror cannot be read"),
        (MOUNTED, answered(*ARRAY, without="@"), "PASS", "/scratch (xfs from /dev/md127)"),
        (MOUNTED, answered(*ARRAY[:-1], without="@"), "FAIL", "/scratch is not mounted from a block device"),
        (
            MOUNTED,
            answered(*ARRAY[:-1], ARRAY[-1].replace("noatime", "relatime"), without="@"),
            "FAIL",
            "/scratch is mounted without noatime",
        ),
        (
            MOUNTED,
            answered(*ARRAY[:-1], ARRAY[-1].replace("md127", "sda"), without="@"),
            "FAIL",
            "/scratch is mounted from /dev/sda, not from mirror",
        ),
        (MOUNTED, FakeHost({}), "UNKNOWN", None),
    ],
)
def test_checks(name, host, status, evidence):
    there = cluster(**ONE)
    found = judged("storage_layout", CHECKS, name, there, worker(there), host)
    assert found.status == status, found.evidence
    assert evidence in (None, found.evidence)


VGS = 'vgs {"report": [{"vg": [{"vg_name": "data", "vg_size": "1000", "vg_free": "0", "vg_extent_size": "10"}]}]}'
LVS = 'lvs {"report": [{"lv": [{"vg_name": "data", "lv_name": "%s", "lv_size": "%d"}]}]}'


@pytest.mark.parametrize(
    ("lines", "status", "evidence"),
    [
        ((VGS, LVS % ("work", 600)), "PASS", "data/work 0.0 GiB"),
        ((VGS, LVS % ("work", 500)), "FAIL", None),
        ((VGS, LVS % ("other", 600)), "FAIL", "the volume data/work is missing"),
        ((), "FAIL", "the volume group data is missing, or lvm2 does not list it"),
        (("vgs rubbish",), "UNKNOWN", None),
    ],
)
def test_volumes(lines, status, evidence):
    there = cluster(volume_groups={"data": {"on": ["c"], "volumes": {"work": "60%"}}}, **ONE)
    old = ("lvs ", "pvs ", "vgs ", "end")
    kept = [line for line in RECORDED.read_text().splitlines() if not line.startswith(old)]
    host = FakeHost({ASK: "\n".join((*kept, *lines, "end")) + "\n"})
    name = "the volumes have their declared sizes"
    found = judged("storage_layout", CHECKS, name, there, worker(there), host)
    assert found.status == status, found.evidence
    assert evidence in (None, found.evidence)


def test_mounts_at_boot():
    there = cluster(**ONE)
    name = "the filesystems are mounted at boot"
    for state, status in (("enabled", "PASS"), ("disabled", "FAIL")):
        host = FakeHost(unit("scratch.mount", state=state))
        assert judged("storage_layout", CHECKS, name, there, worker(there), host).status == status
    assert judged("storage_layout", CHECKS, name, there, worker(there), FakeHost({})).status == "UNKNOWN"


def test_files_on_the_node():
    there = cluster(**ONE)
    plan = planned(there, worker(there))
    paths = ("/etc/mdadm/mdadm.conf.d/90-rackwright.conf", "/etc/systemd/system/scratch.mount")
    texts = {path: content(plan, path) for path in paths}
    name = "arrays and mounts are configured in mdadm and systemd"
    for given, status in ((texts, "PASS"), ({**texts, paths[1]: "other\n"}, "FAIL")):
        assert (
            judged("storage_layout", CHECKS, name, there, worker(there), FakeHost(files(given))).status
            == status
        )
    assert judged("storage_layout", CHECKS, name, there, worker(there), FakeHost({})).status == "UNKNOWN"


def test_who_owns_the_root_folders():
    options = made(filesystems={"/scratch": {"on": "mirror", "mode": "1777"}, "/work": {"on": "data/work"}})
    node = worker(cluster())
    assert options.made_access(node) == {"/scratch": ("root", "1777"), "/work": ("root", "755")}

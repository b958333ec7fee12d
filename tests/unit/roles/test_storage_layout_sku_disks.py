"""Drives of the SKU by their slots, as the storage_layout role names and finds them."""

from __future__ import annotations

import shlex
from typing import Any

import pytest
from pydantic import ValidationError

from rackwright.facts.block_devices import BlockDevices
from rackwright.model.sku import Nvme
from rackwright.model.types import Platform
from rackwright.roles.storage_layout.options import StorageLayoutOptions
from rackwright.roles.storage_layout.verify import CHECKS
from tests.factories import make_gpu_sku
from tests.unit.roles.fake_host import FakeHost, content, judged, planned
from tests.unit.roles.sites import site, worker
from tests.unit.roles.test_storage_layout import DISKS, MOUNTED, RECORDED, WHOLE

SLOTS = ("0000:00:05.0", "0000:00:06.0")
LAYOUT: dict[str, Any] = {
    "sku_disks": {"data": "scratch"},
    "arrays": {"fast": {"level": 0, "disks": ["data"]}},
    "filesystems": {"/scratch": {"on": "fast", "mount_options": ["noatime", "pquota"]}},
}


def sku(*nvme: Nvme):
    return make_gpu_sku(nvme=nvme)


KNOWN = sku(Nvme(count=2, size_gb=1, slots=SLOTS), Nvme(count=1, size_gb=2, use="os"))


def made(**changes: Any) -> StorageLayoutOptions:
    return StorageLayoutOptions.model_validate({**LAYOUT, **changes})


def there(options: StorageLayoutOptions, model=KNOWN):
    return site({"storage_layout": options}, platform=Platform.VM, sku=model)


def problems(options: StorageLayoutOptions, model=KNOWN) -> list[tuple[str, str, str | None]]:
    """Without those of the head, whose SKU has no drives."""
    return [one for one in options.problems(there(options, model)) if "head1" not in one[1]]


@pytest.mark.parametrize("slots", [("0000:00:05.0",), ("0000:00:05.0", "0000:00:05.0")])
def test_slots_are_one_for_each_drive(slots):
    message = "`slots` has 1 addresses, but there are 2 drives."
    with pytest.raises(ValidationError, match=message):
        Nvme(count=2, size_gb=1, slots=slots)


def test_a_set_stands_for_the_drives_of_the_node():
    options = made(volume_groups={"more": {"on": ["data"]}}, arrays={}, filesystems={})
    node = worker(there(options))
    on_node = options.on_node(node)
    assert [str(on_node.selector(disk, node.name)) for disk in on_node.disks] == [
        "data0 (slot 0000:00:05.0)",
        "data1 (slot 0000:00:06.0)",
    ]
    assert on_node.volume_groups["more"].on == ("data0", "data1")
    assert made().on_node(node).arrays["fast"].disks == ("data0", "data1")
    assert problems(made()) == []


def test_a_filesystem_is_on_a_set_of_one_drive_or_on_an_array():
    options = made(arrays={}, filesystems={"/scratch": {"on": "data"}})
    assert problems(options)[0] == (
        "filesystems./scratch.on",
        "/scratch is on data, which is several drives of gpu1: a filesystem needs one device.",
        "make an array of them, e.g. `arrays: {fast: {level: 0, disks: [data]}}`",
    )
    one = sku(Nvme(count=1, size_gb=1, slots=SLOTS[:1]))
    assert problems(options, one) == []
    assert options.on_node(worker(there(options, one))).filesystems["/scratch"].on == "data0"


def test_what_a_sku_lacks_is_named_once():
    unknown = sku(Nvme(count=2, size_gb=1))
    assert problems(made(), unknown) == [
        (
            "sku_disks.data",
            f"The SKU {unknown.name} of gpu1 does not have the slots of its 2 drives of use scratch.",
            "add `slots` to its `nvme`, or declare each drive under `disks` by its `serials`",
        )
    ]
    other = sku(Nvme(count=2, size_gb=1, use="os"))
    assert problems(made(), other) == [
        (
            "sku_disks.data",
            f"The SKU {other.name} of gpu1 has no drives of use scratch.",
            "it has some for os",
        )
    ]


def test_nodes_without_drives_are_left_out_by_their_role():
    assert next(iter(made().problems(there(made()))))[1:] == (
        "The SKU test-node of head1 has no drives of use scratch.",
        "`on: [worker]` keeps the role to workers",
    )
    on_workers = made(on=["worker"])
    cluster = there(on_workers)
    assert [node.name for node in cluster.running("storage_layout")] == ["gpu1", "gpu2"]
    assert list(on_workers.problems(cluster)) == []


def test_too_few_drives_for_a_level_and_a_slot_that_is_declared_as_well():
    options = made(arrays={"fast": {"level": 5, "disks": ["data"]}}, disks={"x": {"slot": SLOTS[0]}})
    assert [message for _, message, _ in problems(options)] == [
        f"gpu1 ({KNOWN.name}): RAID 5 needs at least 3 disks, but has 2.",
        f"gpu1 ({KNOWN.name}): Two disks are in the slot 0000:00:05.0.",
    ]


def test_the_plan_finds_them_by_slot():
    cluster = there(made())
    plan = planned(cluster, worker(cluster))
    unit = content(plan, "/etc/systemd/system/scratch.mount")
    assert unit is not None
    assert "Options=noatime,pquota\n" in unit


STRIPE = (
    *("md md127/md/array_state: clean", "md md127/md/level: raid0", "md md127/md/raid_disks: 2"),
    *("md md127/md/dev-nvme0n1/state: in_sync", "md md127/md/dev-nvme1n1/state: in_sync"),
    *("mdudev md127 MD_NAME=gpu1:fast", "mdudev md127 DEVLINKS=/dev/disk/by-id/md-name-gpu1:fast"),
)


@pytest.mark.parametrize(
    ("shown", "status", "evidence"),
    [
        ("rw,attr2,prjquota", "PASS", "/scratch (xfs from /dev/md127)"),
        ("rw,attr2,noquota", "FAIL", "/scratch is mounted without prjquota"),
    ],
)
def test_quotas_of_xfs_are_compared_by_the_kernels_names(shown, status, evidence):
    ask = f"sh -c {shlex.quote(str(BlockDevices().command(lvm=False)))}"
    mount = f"mount / /scratch rw,noatime shared:9 - xfs /dev/md127 {shown}"
    host = FakeHost({ask: "\n".join((*RECORDED.read_text().splitlines()[:-1], *STRIPE, mount, "end")) + "\n"})
    cluster = there(made())
    found = judged("storage_layout", CHECKS, MOUNTED, cluster, worker(cluster), host)
    assert (found.status, found.evidence) == (status, evidence)


def test_a_stripe_of_the_skus_drives_is_judged_drive_by_drive():
    ask = f"sh -c {shlex.quote(str(BlockDevices().command(lvm=False)))}"
    lines = RECORDED.read_text().splitlines()[:-1]
    cluster = there(made())
    for gone, status, evidence in (
        ("-", "PASS", "fast is clean, 2 members"),
        ("dev-nvme1n1", "FAIL", "fast: data1 (slot 0000:00:06.0) is not a member"),
    ):
        kept = [line for line in STRIPE if gone not in line or gone == "-"]
        host = FakeHost({ask: "\n".join((*lines, *kept, "end")) + "\n"})
        found = judged("storage_layout", CHECKS, WHOLE, cluster, worker(cluster), host)
        assert (found.status, found.evidence) == (status, evidence)
    nothing = judged("storage_layout", CHECKS, WHOLE, cluster, worker(cluster), FakeHost({}))
    assert nothing.status == "UNKNOWN"


@pytest.mark.parametrize(("kernel_name", "status"), [("nvme", "FAIL"), ("sd", "PASS")])
def test_only_nvme_drives_are_compared_with_the_sizes_of_the_sku(kernel_name, status):
    """The drives that were recorded have 1 GB."""
    cluster = there(made(), sku(Nvme(count=2, size_gb=7680, slots=SLOTS)))
    text = RECORDED.read_text()
    for number, letter in enumerate("abcd") if kernel_name == "sd" else ():
        text = text.replace(f"nvme{number}n1", f"sd{letter}")
    host = FakeHost({f"sh -c {shlex.quote(str(BlockDevices().command(lvm=False)))}": text})
    found = judged("storage_layout", CHECKS, DISKS, cluster, worker(cluster), host)
    assert found.status == status, found.evidence

"""Disks of a virtual machine: into a RAID, one failed, replaced, rebuilt; and what is not erased without its serial."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import PurePosixPath
from typing import Any

import pytest

from tests.racks.program import Ran
from tests.racks.site import Site

pytestmark = [pytest.mark.lab, pytest.mark.proof]
NODE = "store1"
USED, BLANK, SPARE = (f"{NODE}-data{number}" for number in (1, 2, 3))
"""Serials: a mirror's second drive, the volume group's, and one that takes another's place."""
WHOLE = "the arrays are complete and use their declared disks"
APPLY_SECONDS = 3000


def declared() -> dict[str, Any]:
    """One machine with four drives of 1 GB."""
    sku = {
        "vendor": "rackwright",
        "description": "Lab virtual machine with four NVMe drives",
        "sockets": 1,
        "cores_per_socket": 2,
        "threads_per_core": 1,
        "memory_mib": 1536,
        "numa_nodes": 1,
        "nics": [{"purpose": "management", "kind": "ethernet", "speed_gbps": 10}],
        "nvme": [{"count": 4, "size_gb": 1}],
        "sources": [{"text": "By definition: the size the lab rack gives it", "read": "2026-11-24"}],
    }
    disks = {name: {"serials": {NODE: f"{NODE}-data{number}"}} for number, name in enumerate("abc")}
    return {
        "version": 1,
        "cluster": {"name": "sto", "domain": "sto.test"},
        "defaults": {"os": "debian-13", "platform": "vm", "lab": {"cpus": 2, "memory_mib": 1536}},
        "skus": {"four-drives": sku},
        "networks": {"management": {"purpose": "management", "cidr": "10.84.0.0/24", "gateway": "10.84.0.1"}},
        "ssh": {
            "user": "rack",
            "key": ".lab/id_ed25519",
            "known_hosts": ".lab/known_hosts",
            "connect_timeout_seconds": 60,
            "command_timeout_seconds": 3600,
            "time_factor": 10,
        },
        "mirrors": {"apt_proxy": "http://10.84.0.1:3142"},
        "nodes": [
            {
                "nodes": NODE,
                "roles": ["head"],
                "sku": "four-drives",
                "addresses": {"management": "10.84.0.10"},
            }
        ],
        "roles": {
            "storage_layout": {
                "disks": disks,
                "arrays": {"mirror": {"level": 1, "disks": ["a", "b"]}},
                "volume_groups": {"data": {"on": ["c"], "volumes": {"work": "60%"}}},
                "filesystems": {
                    "/scratch": {"on": "mirror", "mode": "1777"},
                    "/work": {"on": "data/work", "type": "ext4"},
                },
            }
        },
    }


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    made = Site(tmp_path_factory.mktemp("storage"), "sto", declared())
    with made.booted():
        yield made


def apply(site: Site, *options: str, expect: int = 0) -> Ran:
    return site.cli("apply", str(site.file), "--yes", *options, expect=expect, timeout=APPLY_SECONDS)


def verified(site: Site) -> str:
    """The status that verify has for the array."""
    ran = site.cli("verify", str(site.file), "--json", expect=None)
    (found,) = [one["status"] for one in ran.json()["results"] if one["check"] == WHOLE]
    return str(found)


def device(site: Site, serial: str) -> str:
    return site.on(NODE, f"lsblk -dnro PATH,SERIAL | awk '$2 == \"{serial}\" {{print $1}}'").strip()


def until(true: Callable[[], bool], seconds: int = 900) -> None:
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end
        time.sleep(10)


def swap_names(site: Site, *serials: str) -> None:
    """Two drives leave their driver, and the one that comes back first gets the lower of their names."""
    names = {serial: PurePosixPath(device(site, serial)).name for serial in serials}
    low, high = sorted(names, key=names.__getitem__)
    links = " ".join(f"/sys/block/{names[serial]}/device/device" for serial in (low, high))
    site.on(
        NODE,
        f"set -e; cd /sys/bus/pci/drivers/nvme; set -- $(readlink -f {links}); "
        "for path; do echo ${path##*/} >unbind; done; echo ${2##*/} >bind; echo ${1##*/} >bind; udevadm settle",
    )
    swapped = [f"/dev/{names[high]}", f"/dev/{names[low]}"]
    until(lambda: [device(site, serial) for serial in (low, high)] == swapped)


def content(site: Site, serial: str) -> str:
    """The label of the filesystem on a drive."""
    return site.on(NODE, f"blkid -p -o value -s LABEL {device(site, serial)} || :").strip()


def restart(site: Site) -> None:
    site.cli("lab", "reboot", NODE, "--file", str(site.file))
    site.on(NODE, "systemctl is-system-running --wait || :", 900)


def no_filesystems(declared: dict[str, Any]) -> None:
    declared["roles"]["storage_layout"]["filesystems"] = {}


def another_drive(declared: dict[str, Any]) -> None:
    declared["roles"]["storage_layout"]["disks"]["b"] = {"serials": {NODE: SPARE}}


def test_a_drive_s_whole_life(site: Site) -> None:
    """In one test: each step is about what the one before it left."""
    with site.declaring(no_filesystems):
        _nothing_is_erased_by_mistake(site)
        # what a reboot left of the arrays' names is what filesystems are made on
        restart(site)
    apply(site)
    site.plan(0, full=True)
    _is_mounted_at_boot(site)
    _one_fails_and_another_takes_its_place(site)


def _nothing_is_erased_by_mistake(site: Site) -> None:
    for serial, label in ((USED, "precious"), (SPARE, "kept")):
        site.on(NODE, f"mkfs.ext4 -q -L {label} {device(site, serial)}")
    # by no --yes, and by no other serial
    refused = apply(site, expect=1)
    assert "serials were not typed" in refused.err
    assert f"--erase {USED}" in refused.err
    apply(site, "--erase", SPARE, expect=1)
    # a plan was reviewed, and then the drives changed their names, or a blank one got a filesystem
    plan = str(site.folder / "plan.json")
    site.cli("plan", str(site.file), "--out", plan, expect=2)
    for change in (
        lambda: swap_names(site, USED, SPARE),
        lambda: site.on(NODE, f"mkfs.ext4 -q -L late {device(site, BLANK)}"),
    ):
        change()
        moved = apply(site, "--plan", plan, "--erase", USED, expect=1)
        assert "The plan no longer holds, and nothing was changed" in moved.err
    assert [content(site, serial) for serial in (USED, SPARE, BLANK)] == ["precious", "kept", "late"]
    site.on(NODE, f"wipefs -aq {device(site, BLANK)}")
    # the same, while the operator reads the plan and types the serial
    refused = typed(site, USED, meanwhile=lambda: swap_names(site, USED, SPARE))
    assert refused.status == 1, refused
    assert "nothing was written" in refused.out + refused.err
    refused = typed(site, SPARE, meanwhile=lambda: None)
    assert f"'{SPARE}' is not the serial of" in refused.err
    assert [content(site, serial) for serial in (USED, SPARE)] == ["precious", "kept"]
    # and by its own serial, under any name
    apply(site, "--erase", USED)
    assert content(site, SPARE) == "kept"
    site.plan(0, full=True)


def typed(site: Site, serial: str, *, meanwhile: Callable[[], None]) -> Ran:
    """Apply at a terminal: the plan is agreed to, then something happens, then a serial is typed."""
    running = site.start("apply", str(site.file), stdin=None)
    until(lambda: "[y/N]" in running.printed(), APPLY_SECONDS)
    running.type("y")
    until(lambda: "type the serial of" in running.said())
    meanwhile()
    running.type(serial)
    return running.wait(APPLY_SECONDS)


def _is_mounted_at_boot(site: Site) -> None:
    site.on(NODE, "echo kept >/scratch/kept && echo kept >/work/kept && sync")
    restart(site)
    assert site.on(NODE, "cat /scratch/kept /work/kept") == "kept\nkept\n"
    site.plan(0, full=True)
    until(lambda: verified(site) == "PASS")


def _one_fails_and_another_takes_its_place(site: Site) -> None:
    site.on(NODE, f"mdadm --fail $(readlink -f /dev/disk/by-id/md-name-{NODE}:mirror) {device(site, USED)}")
    assert verified(site) == "FAIL"
    site.plan(0)  # it is still declared: nothing is silently added again
    site.declare(another_drive)
    apply(site, expect=1)  # it holds a filesystem
    apply(site, "--erase", SPARE)
    assert verified(site) in ("WARN", "PASS")  # being rebuilt
    until(lambda: verified(site) == "PASS")
    site.plan(0, full=True)
    assert site.on(NODE, "cat /scratch/kept") == "kept\n"

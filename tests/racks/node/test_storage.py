"""Disks of a virtual machine: into a RAID, one failed, replaced, rebuilt; and what is not erased without its serial."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.racks.program import Ran
from tests.racks.site import Site

pytestmark = [pytest.mark.lab, pytest.mark.proof]
NODE = "store1"
WHOLE = "the arrays are whole, of their declared disks"
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


def test_a_disk_s_whole_life(site: Site) -> None:
    """In one test: each step is about what the one before it left."""
    # a disk with a filesystem is erased by no --yes, by no other serial, and by its own
    site.on(NODE, f"mkfs.ext4 -q -L precious {device(site, f'{NODE}-data1')}")
    refused = apply(site, expect=1)
    assert "serials were not typed" in refused.err
    assert f"--erase {NODE}-data1" in refused.err
    apply(site, "--erase", f"{NODE}-data3", expect=1)
    assert "precious" in site.on(NODE, f"blkid {device(site, f'{NODE}-data1')}")
    apply(site, "--erase", f"{NODE}-data1")
    site.plan(0)
    # it is mounted, and after a reboot too
    site.on(NODE, "echo kept >/scratch/kept && echo kept >/work/kept && sync")
    site.cli("lab", "reboot", NODE, "--file", str(site.file))
    site.on(NODE, "systemctl is-system-running --wait || :", 900)
    print(
        site.on(
            NODE,
            "cat /proc/mdstat; ls -l /dev/md; systemctl status scratch.mount --no-pager || :; findmnt /scratch || :",
        )
    )
    assert site.on(NODE, "cat /scratch/kept /work/kept") == "kept\nkept\n"
    site.plan(0)
    # one fails
    until(lambda: verified(site) == "PASS")
    site.on(NODE, f"mdadm --fail /dev/md/mirror {device(site, f'{NODE}-data1')}")
    assert verified(site) == "FAIL"
    site.plan(0)  # it is still declared: nothing is silently added again
    # another takes its place
    site.declare(
        lambda content: content["roles"]["storage_layout"]["disks"].update(
            b={"serials": {NODE: f"{NODE}-data3"}}
        )
    )
    apply(site)
    until(lambda: verified(site) == "PASS")
    site.plan(0)
    assert site.on(NODE, "cat /scratch/kept") == "kept\n"

"""One machine's kernel: what is declared of it waits for a reboot, is live after it, and goes again."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from rackwright.verify.runner import verify
from tests.racks.site import Site, operations

pytestmark = [pytest.mark.lab, pytest.mark.proof]
APPLY_SECONDS = 3000
NODE = "head1"
ROLE = "kernel"
_DECLARED = """\
version: 1
cluster: {name: "", domain: vm.test}
defaults: {os: debian-13, platform: vm, lab: {cpus: 2, memory_mib: 2048}}
networks:
  management: {purpose: management, cidr: 10.78.0.0/24, gateway: 10.78.0.1}
ssh:
  user: rack
  key: .lab/id_ed25519
  known_hosts: .lab/known_hosts
  connect_timeout_seconds: 60
  command_timeout_seconds: 3600
  time_factor: 10
mirrors: {apt_proxy: "http://10.78.0.1:3142"}
nodes:
  - {nodes: head1, roles: [head], sku: lab-vm-head, addresses: {management: 10.78.0.10}}
roles:
  base: {}
  kernel: {}
"""
SETTINGS = {
    "arguments": {"rackwright.test": 7},
    "remove": ["quiet"],
    "hugepages": {"2M": 16},
    "modules": {"load": ["brd"], "options": {"brd": {"rd_nr": 2}}, "blacklist": ["pcspkr"]},
}
_NEXT = "grep -m1 '^[[:space:]]*linux[[:space:]]' /boot/grub/grub.cfg"


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """The machine, up, with a loaded module and an argument that its kernel settings will take out, applied once."""
    site = Site(tmp_path_factory.mktemp("vmkernel"), "vmkernel", yaml.safe_load(_DECLARED))
    with site.booted():
        site.on(
            NODE,
            "sed -i 's/^GRUB_CMDLINE_LINUX_DEFAULT=.*/GRUB_CMDLINE_LINUX_DEFAULT=quiet/' /etc/default/grub",
        )
        site.on(NODE, "update-grub", 600)
        site.cli("apply", str(site.file), "--yes", timeout=APPLY_SECONDS)
        yield site


def _set(content: dict[str, Any]) -> None:
    content["roles"][ROLE] = SETTINGS


def _take_back(content: dict[str, Any]) -> None:
    content["roles"][ROLE] = {}


def _verified(site: Site) -> dict[str, tuple[str, str]]:
    with site.here():
        report = verify(site.cluster)
    return {one.check: (one.status.value, one.evidence) for one in report.results if one.role == ROLE}


def _left_to_do(site: Site) -> set[tuple[str, str, str]]:
    """What a plan would still do, apart from the reboot that is due."""
    return {entry for entry in operations(site.plan(2, full=True)) if not entry[2].startswith("Compare")}


def test_nothing_is_declared_and_nothing_is_ours(machine: Site) -> None:
    assert operations(machine.plan(0, full=True)) == set()
    machine.on(NODE, "test ! -e /etc/default/grub.d/90-rackwright-kernel.cfg")
    assert " quiet" in machine.on(NODE, _NEXT)


def test_the_next_boot_is_set_and_what_can_be_is_live_at_once(machine: Site) -> None:
    machine.declare(_set)
    ran = machine.cli("apply", str(machine.file), "--yes", expect=2, timeout=APPLY_SECONDS)
    assert "reboot due" in ran.out
    line = machine.on(NODE, _NEXT).split()
    assert "rackwright.test=7" in line
    assert "quiet" not in line
    assert machine.on(NODE, "cat /sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages").strip() == "16"
    assert machine.on(NODE, "cat /sys/module/brd/parameters/rd_nr").strip() == "2"
    assert "rackwright.test=7" not in machine.on(NODE, "cat /proc/cmdline").split()
    status, evidence = _verified(machine)["the running kernel has the declared arguments"]
    assert status == "FAIL"
    assert "lacks rackwright.test=7" in evidence
    assert _left_to_do(machine) == set()


def test_after_the_reboot_all_of_it_is_live(machine: Site) -> None:
    boot = machine.on(NODE, "cat /proc/sys/kernel/random/boot_id")
    machine.cli("apply", str(machine.file), "--yes", "--reboot", timeout=APPLY_SECONDS)
    assert machine.on(NODE, "cat /proc/sys/kernel/random/boot_id") != boot
    found = _verified(machine)
    assert {status for status, _ in found.values()} == {"PASS", "OUT OF SCOPE"}, found
    assert [name for name, (status, _) in found.items() if status == "PASS"] == [
        "the running kernel has the declared arguments",
        "the next boot has the declared arguments",
        "the declared huge pages are reserved",
        "the declared modules are loaded",
        "blacklisted modules are not loaded",
        "loaded modules have the declared parameters",
    ]
    assert "install pcspkr /bin/false" in machine.on(NODE, "modprobe --showconfig")
    assert operations(machine.plan(0, full=True)) == set()


def test_what_is_declared_no_longer_is_gone_from_the_next_boot(machine: Site) -> None:
    machine.declare(_take_back)
    machine.cli("apply", str(machine.file), "--yes", timeout=APPLY_SECONDS)
    line = machine.on(NODE, _NEXT).split()
    assert "rackwright.test=7" not in line
    assert "quiet" in line
    machine.on(
        NODE,
        "test ! -e /etc/default/grub.d/90-rackwright-kernel.cfg && test ! -e /etc/modprobe.d/rackwright-kernel.conf"
        " && test ! -e /etc/modules-load.d/rackwright-kernel.conf && test ! -e /etc/tmpfiles.d/rackwright-kernel.conf",
    )
    assert operations(machine.plan(0, full=True)) == set()

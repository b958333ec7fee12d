"""Machines under qemu that boot the agent from its medium, and what they become."""

from __future__ import annotations

import hashlib
import subprocess
from pathlib import Path
from typing import Any

import pytest

from rackwright.install import media
from rackwright.lab.netns import socket_inside
from tests.racks.agent import wire
from tests.racks.agent.bench import BOOT_SECONDS, INSTALL_SECONDS, RUN, Bench
from tests.racks.agent.head import PORT, Head
from tests.racks.agent.machine import MAC, SERIAL, disk_serial

pytestmark = [pytest.mark.lab, pytest.mark.proof]


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@pytest.mark.smoke
def test_one_disk_with_data_is_held_untouched_then_installed_and_boots(bench: Bench):
    machine = bench.machine(1)
    machine.write(0, ["mke2fs", "-q", "-F", "-t", "ext4", "-L", "precious"])
    before, while_held = _digest(machine.disks[0]), []

    def decide(document: dict[str, Any], count: int) -> dict[str, Any]:
        if count < 3:
            while_held.append(_digest(machine.disks[0]))
            return {"action": "wait", "reasons": ["the disk is not empty"], "seconds": 1}
        return {"action": "install", "install": bench.install(document, 1)}

    bench.head.decide = decide
    bench.head.breaks_at = [50_000_000, 120_000_000]
    bench.arm()
    machine.start(bench.medium)
    machine.wait_off(INSTALL_SECONDS)

    assert bench.head.failed is None
    assert while_held == [before, before]
    (disk,) = bench.head.inventories[0]["disks"]
    assert (disk["serial"], disk["signatures"]) == (disk_serial(machine.disks[0]), ["/dev/vda:ext4:precious"])
    assert bench.head.hello is not None
    assert bench.head.hello["serial"] == bench.head.inventories[0]["dmi"]["product_serial"] == SERIAL
    assert bench.head.ranges == ["bytes=0-", "bytes=50000000-", "bytes=120000000-"]
    assert bench.head.done is not None
    assert (bench.head.done["run"], bench.head.done["disks"]) == (RUN, ["/dev/vda"])
    assert bench.head.token not in machine.said()
    assert bench.head.session not in machine.said()

    machine.start()
    assert bench.greeted(BOOT_SECONDS).startswith("SSH-2.0-")
    machine.wait_for("root@node1", 120)
    said = machine.ask("cat /proc/cmdline; lsblk -no PARTLABEL; cat /etc/ssh/*_ed25519_key.pub", "DONE1")
    assert f"rackwright.run={RUN}" in said
    assert {"esp0", "root0"} <= set(said.split())
    assert bench.head.done["host_keys"]["ed25519"].split()[1] in said
    said = machine.ask(
        "ls /rackwright; findmnt -no FSTYPE /boot/efi; systemctl --failed --no-legend", "DONE2"
    )
    assert "cannot access '/rackwright'" in said
    assert "vfat" in said.split()


def test_a_mirror_boots_from_its_second_disk_alone(bench: Bench):
    machine = bench.machine(2)
    bench.head.decide = lambda document, _: {"action": "install", "install": bench.install(document, 2)}
    bench.arm()
    machine.start(bench.medium)
    machine.wait_off(INSTALL_SECONDS)
    assert bench.head.failed is None
    assert bench.head.done is not None
    assert bench.head.done["disks"] == ["/dev/vda", "/dev/vdb"]

    machine.start(disks=machine.disks[1:])
    assert bench.greeted(BOOT_SECONDS).startswith("SSH-2.0-")
    machine.wait_for("root@node1", 120)
    said = machine.ask("cat /proc/cmdline /proc/mdstat; findmnt -no SOURCE /; lsblk -no PARTLABEL", "DONE1")
    assert f"rackwright.run={RUN}" in said
    assert "active raid1" in said
    assert "[2/1]" in said
    assert {"esp1", "root1"} <= set(said.split())


def test_a_node_without_disks_goes_on_from_memory(bench: Bench):
    machine = bench.machine(0)
    bench.head.decide = lambda document, _: {"action": "ramdisk", "install": bench.install(document, 0)}
    bench.arm()
    machine.start(bench.medium)
    assert bench.greeted(INSTALL_SECONDS).startswith("SSH-2.0-")
    assert bench.head.done is not None
    machine.wait_for("root@node1", 120)
    said = machine.ask("cat /proc/cmdline; findmnt -no FSTYPE /; ls /rackwright", "DONE1")
    assert f"rackwright.run={RUN}" in said
    assert bench.head.token not in said
    assert "tmpfs" in said.split()
    assert "cannot access '/rackwright'" in said


def test_another_machine_does_nothing(bench: Bench):
    machine = bench.machine(1)
    before = _digest(machine.disks[0])
    bench.arm(serial="SN-OTHER")
    machine.start(bench.medium)
    machine.wait_off(BOOT_SECONDS)
    assert "serial number is 'SN-11', and node1 is declared as 'SN-OTHER'" in machine.said()
    assert bench.head.hello is None
    assert _digest(machine.disks[0]) == before


def test_a_machine_without_a_medium_boots_over_the_network(bench: Bench):
    """qemu's own DHCP and TFTP, which lead 10.77.0.1 to this machine's loopback."""
    machine = bench.machine(0)
    listener = socket_inside(bench.namespace)
    assert listener is not None
    listener.bind(("127.0.0.1", PORT))
    listener.listen(64)
    head = Head(listener, bench.chain)
    served = bench.folder / "served"
    dynamic = {"mac": MAC, "address": None, "gateway": None, "vlan": None}
    config = bench.config(network=dynamic, token=head.token, mode="discover")
    media.netboot_files(bench.agent, served, [media.Armed(MAC, config, bench.ca)])
    machine.networks = [f"user,net=10.77.0.0/24,host={wire.HEAD},tftp={served},bootfile=shimx64.efi"]
    machine.start()
    machine.wait_off(BOOT_SECONDS)
    head.close()
    assert [nic["mac"] for nic in head.inventories[0]["nics"]] == [MAC]
    assert "the head stops the run: the test is over" in machine.said()


def test_the_token_is_in_no_text_that_the_boot_loader_reads(bench: Bench):
    bench.arm()
    assert bench.medium.stat().st_mode & 0o777 == 0o600
    extract = ["xorriso", "-osirrox", "on", "-indev", str(bench.medium), "-extract", "/boot/grub/grub.cfg"]
    target = bench.folder / "grub.cfg"
    subprocess.run([*extract, str(target)], check=True, capture_output=True, timeout=60)
    assert f"rackwright.run={RUN}" in target.read_text()
    assert bench.head.token not in target.read_text()

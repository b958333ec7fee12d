"""One machine with its own kernel: login, reboot, power cut."""

from __future__ import annotations

import os
import subprocess

import pytest

from tests.racks.site import Site

pytestmark = [pytest.mark.lab, pytest.mark.proof, pytest.mark.smoke]
_BOOT = "cat /proc/sys/kernel/random/boot_id"


def _over_ssh(site: Site, *argv: str) -> str:
    command = site.rack.ssh_command("head1", argv)
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_it_runs_a_kernel_of_its_own_and_lets_its_administrator_in(one: Site) -> None:
    kernel = _over_ssh(one, "uname", "-r")
    assert kernel != os.uname().release
    assert one.on("head1", "systemd-detect-virt").strip() in ("qemu", "kvm")
    assert one.on("head1", "cat /proc/1/comm").strip() == "systemd"
    assert _over_ssh(one, "sudo", "-n", "id", "-u") == "0"


def test_a_reboot_and_a_power_cut_are_boots_of_the_same_machine(one: Site) -> None:
    first, identity = one.on("head1", _BOOT), one.on("head1", "cat /etc/machine-id")
    one.on("head1", "echo kept >/root/kept && sync")
    one.cli("lab", "reboot", "head1", "--file", str(one.file))
    second = one.on("head1", _BOOT)
    one.fault("head1", "power-cut")
    one.heal("head1")
    third = one.on("head1", _BOOT)
    assert len({first, second, third}) == 3
    assert one.on("head1", "cat /etc/machine-id /root/kept") == f"{identity}kept\n"
    assert _over_ssh(one, "uname", "-n") == "head1"

"""Each of Debian's signed boot loaders under Secure Boot: it finds its settings on our media, and starts the installer."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from rackwright.install.handover.files import InstallerFiles
from rackwright.install.handover.media import make_iso, put_netboot
from tests.racks.agent import wire
from tests.racks.agent.machine import Machine
from tests.racks.installers.netboot import Unpacked

pytestmark = [pytest.mark.lab, pytest.mark.proof]

ARGUMENTS = "DEBIAN_FRONTEND=text no_timer_check console=ttyS0,115200"
SECONDS = 420.0
LOCKED = "Kernel is locked down from EFI Secure Boot"


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    """One without a system, with Secure Boot on."""
    with ExitStack() as stack:
        made = Machine(tmp_path, stack.enter_context(wire.wire("loaders")), 0, secure_boot=True)
        stack.callback(made.off)
        yield made


def _netboot(folder: Path) -> InstallerFiles:
    return InstallerFiles(
        *(folder / name for name in ("linux", "initrd.gz", "bootnetx64.efi", "grubx64.efi"))
    )


def test_the_grub_of_netboot_from_a_cd(machine: Machine, unpacked: Unpacked):
    make_iso(_netboot(unpacked.netboot), ARGUMENTS, machine.folder / "installer.iso")
    machine.start(machine.folder / "installer.iso")
    machine.wait_for(LOCKED, SECONDS)


def test_the_grub_of_a_cd(machine: Machine, unpacked: Unpacked, tmp_path: Path):
    folder = unpacked.like_a_cd(tmp_path / "cd")
    loaders = (folder / "EFI/BOOT" / name for name in ("BOOTX64.EFI", "grubx64.efi"))
    make_iso(
        InstallerFiles(folder / "linux", folder / "initrd.gz", *loaders),
        ARGUMENTS,
        tmp_path / "installer.iso",
    )
    machine.start(tmp_path / "installer.iso")
    machine.wait_for(LOCKED, SECONDS)


def test_the_grub_of_netboot_over_the_network(machine: Machine, unpacked: Unpacked, tmp_path: Path):
    """qemu's own DHCP and TFTP."""
    put_netboot(_netboot(unpacked.netboot), ARGUMENTS, tmp_path / "tftp")
    machine.networks = [
        f"user,net=10.77.0.0/24,host={wire.HEAD},tftp={tmp_path / 'tftp'},bootfile=shimx64.efi"
    ]
    machine.start()
    machine.wait_for(LOCKED, SECONDS)

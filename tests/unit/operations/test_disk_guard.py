"""The last look before a disk is written to: the real script, with real wipefs and flock, on files in a false /dev and /sys."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from rackwright.facts.block_devices import READ_SIGNATURES
from rackwright.facts.block_records import Disk, Signature
from rackwright.operations.disk_guard import guarded

MIB = 1 << 20
pytestmark = pytest.mark.skipif(  # never in CI: there it fails
    shutil.which("wipefs") is None and "CI" not in os.environ, reason="UNKNOWN: wipefs is missing"
)


class Machine:
    """Disks as files; `script` runs as a node runs it, with its paths moved below a folder."""

    def __init__(self, folder: Path) -> None:
        self.dev, self.sys = folder / "dev", folder / "sys"
        self.dev.mkdir()
        tools = folder / "bin"
        tools.mkdir()
        # what lsblk says of a mount, and of a serial that sysfs lacks
        (tools / "lsblk").write_text(f"#!/bin/sh\ncat {folder}/mounted 2>/dev/null || :\n")
        (tools / "lsblk").chmod(0o755)
        self.path_of_tools = tools
        self.mounted = folder / "mounted"
        self.path = f"{tools}:{os.environ['PATH']}:/usr/sbin:/sbin"

    def plug(self, name: str, serial: str, size: int = MIB) -> Path:
        folder = self.sys / "class/block" / name
        (folder / "device").mkdir(parents=True, exist_ok=True)
        (folder / "holders").mkdir(exist_ok=True)
        (folder / "device/serial").write_text(f"{serial:<20}\n")
        (folder / "size").write_text(f"{size // 512}\n")
        disk = self.dev / name
        disk.write_bytes(bytes(size))
        return disk

    def run(self, script: str) -> subprocess.CompletedProcess[str]:
        moved = script.replace("/dev/null", "@null@").replace("/dev/", f"{self.dev}/")
        moved = moved.replace("/sys/", f"{self.sys}/").replace("@null@", "/dev/null")
        moved = moved.replace('[ -b "', '[ -e "').replace("--timeout 30", "--timeout 1")
        return subprocess.run(
            ["sh", "-c", moved],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
            env={**os.environ, "PATH": self.path},
        )

    def seen(self, name: str, serial: str) -> Disk:
        """The disk as a plan saw it: its signatures and their digest by the fact's own shell."""
        printed = self.run(f"{READ_SIGNATURES}signatures_of {name}").stdout.rstrip("\n")
        digest = hashlib.sha256(printed.encode()).hexdigest()
        found = (Signature(name, "ext4", "0x438"),) if "ext4" in printed else ()
        size = (self.dev / name).stat().st_size
        return Disk(name, size, serial, (), (), found, digest, ())

    def write(self, *disks: Disk) -> subprocess.CompletedProcess[str]:
        """What an operation does: guard, then write to each disk."""
        commands = "".join(f"echo written >>/dev/{disk.name}\n" for disk in disks)
        return self.run(str(guarded(disks, commands)))

    def is_written(self, name: str) -> bool:
        return (self.dev / name).read_bytes().endswith(b"written\n")


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def ext4(path: Path) -> None:
    subprocess.run(
        ["/usr/sbin/mkfs.ext4", "-q", "-F", str(path)], check=True, timeout=60, capture_output=True
    )


def refused(machine: Machine, why: str, *disks: Disk) -> None:
    before = {path.name: path.read_bytes() for path in machine.dev.iterdir()}
    done = machine.write(*disks)
    assert (done.returncode, done.stderr) == (1, f"{machine_text(machine, why)}: nothing was written to it\n")
    assert {path.name: path.read_bytes() for path in machine.dev.iterdir()} == before


def machine_text(machine: Machine, text: str) -> str:
    return text.replace("/dev/", f"{machine.dev}/")


def test_blank_disks_are_written(machine):
    machine.plug("nvme0n1", "A"), machine.plug("nvme1n1", "B")
    disks = machine.seen("nvme0n1", "A"), machine.seen("nvme1n1", "B")
    done = machine.write(*disks)
    assert (done.returncode, done.stderr) == (0, "")
    assert machine.is_written("nvme0n1")
    assert machine.is_written("nvme1n1")


def test_a_typed_signature_is_wiped_first(machine):
    ext4(machine.plug("nvme0n1", "A"))
    disk = machine.seen("nvme0n1", "A")
    assert disk.signatures
    assert machine.write(disk).returncode == 0
    assert machine.seen("nvme0n1", "A").signatures == ()


def test_swapped_serials(machine):
    machine.plug("nvme0n1", "A"), machine.plug("nvme1n1", "B")
    disks = machine.seen("nvme0n1", "A"), machine.seen("nvme1n1", "B")
    machine.plug("nvme0n1", "B"), machine.plug("nvme1n1", "A")
    refused(machine, "/dev/nvme0n1 now has the serial 'B', not 'A'", *disks)


def test_the_second_of_two_is_looked_at_before_the_first_is_written(machine):
    machine.plug("nvme0n1", "A"), machine.plug("nvme1n1", "B")
    disks = machine.seen("nvme0n1", "A"), machine.seen("nvme1n1", "B")
    machine.plug("nvme1n1", "C")
    refused(machine, "/dev/nvme1n1 now has the serial 'C', not 'B'", *disks)


def test_a_name_that_is_gone(machine):
    disk = (machine.plug("nvme0n1", "A"), machine.seen("nvme0n1", "A"))[1]
    (machine.dev / "nvme0n1").rename(machine.dev / "nvme5n1")
    refused(machine, "/dev/nvme0n1 is not there any more", disk)


def test_a_signature_that_appears(machine):
    path = machine.plug("nvme0n1", "A")
    disk = machine.seen("nvme0n1", "A")
    ext4(path)
    refused(machine, "what is on /dev/nvme0n1 has changed since it was planned", disk)


def test_another_signature_than_the_one_that_was_typed_for(machine):
    path = machine.plug("nvme0n1", "A")
    ext4(path)
    disk = machine.seen("nvme0n1", "A")
    ext4(path)  # with another UUID
    refused(machine, "what is on /dev/nvme0n1 has changed since it was planned", disk)


def test_another_size(machine):
    machine.plug("nvme0n1", "A")
    disk = machine.seen("nvme0n1", "A")
    machine.plug("nvme0n1", "A", size=2 * MIB)
    refused(machine, f"/dev/nvme0n1 now has {2 * MIB} bytes, not {MIB}", disk)


def test_a_holder_and_a_mount(machine):
    machine.plug("nvme0n1", "A")
    disk = machine.seen("nvme0n1", "A")
    holder = machine.sys / "class/block/nvme0n1/holders/md127"
    holder.touch()
    refused(machine, "/dev/nvme0n1 is in use by md127", disk)
    holder.unlink()
    machine.mounted.write_text("/home\n")
    refused(machine, "/dev/nvme0n1 is in use: /home", disk)


def test_a_holder_of_a_partition(machine):
    machine.plug("nvme0n1", "A")
    disk = machine.seen("nvme0n1", "A")
    (machine.sys / "class/block/nvme0n1/nvme0n1p2/holders").mkdir(parents=True)
    (machine.sys / "class/block/nvme0n1/nvme0n1p2/holders/dm-0").touch()
    refused(machine, "/dev/nvme0n1 is in use by dm-0", disk)


def test_content_that_cannot_be_read(machine):
    machine.plug("nvme0n1", "A")
    disk = machine.seen("nvme0n1", "A")
    (machine.sys / "class/block/nvme0n1/nvme0n1p1").mkdir()  # a partition without a device
    done = machine.write(disk)
    assert done.returncode == 1
    assert machine_text(machine, "what is on /dev/nvme0n1 cannot be read: nothing") in done.stderr
    assert not machine.is_written("nvme0n1")


def test_another_program_s_lock(machine):
    path = machine.plug("nvme0n1", "A")
    disk = machine.seen("nvme0n1", "A")
    with path.open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        refused(machine, "/dev/nvme0n1 is locked by another program", disk)


def test_more_disks_than_a_shell_has_digits_for(machine):
    names = [f"nvme{number}n1" for number in range(12)]
    for name in names:
        machine.plug(name, f"S-{name}")
    disks = [machine.seen(name, f"S-{name}") for name in names]
    assert machine.write(*disks).returncode == 0
    assert all(machine.is_written(name) for name in names)


def test_the_locks_are_gone_before_udev_is_waited_for(machine):
    path = machine.plug("nvme0n1", "A")
    disk = machine.seen("nvme0n1", "A")
    (machine.path_of_tools / "udevadm").write_text(f"#!/bin/sh\nflock --nonblock {path} true && echo free\n")
    (machine.path_of_tools / "udevadm").chmod(0o755)
    assert machine.run(str(guarded([disk], "settle\n"))).stdout == "free\n"


def test_a_name_with_shell_in_it_is_only_a_name(machine):
    machine.plug("nvme0n1", "A")
    disk = replace(machine.seen("nvme0n1", "A"), serial="$(touch x)'; touch y")
    done = machine.write(disk)
    assert done.returncode == 1
    assert "now has the serial 'A'" in done.stderr

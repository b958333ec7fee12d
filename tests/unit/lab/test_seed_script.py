"""The script in the initramfs that gives a virtual machine its identity, run with other paths."""

from __future__ import annotations

import io
import os
import subprocess
import tarfile
from pathlib import Path

import pytest

from rackwright.lab.boot_tree import SEED_ID, SEED_SCRIPT, SEED_SERIAL

# The host's own programs, but no mount: what would be mounted is written down instead.
_BUSYBOX = """\
#!/bin/sh
case "$1" in
  mount) shift; echo "$*" >>"$LOG" ;;
  *) exec "$@" ;;
esac
"""
_FUNCTIONS = """\
log_success_msg() { echo "success: $*"; }
log_failure_msg() { echo "failure: $*"; }
log_warning_msg() { echo "warning: $*"; }
"""


class Machine:
    """A machine in its initramfs: disks with serials and a mounted root."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "root"
        self.log = folder / "mounts"
        self._sys, self._dev = folder / "sys", folder / "dev"
        programs = folder / "bin"
        for path in (self.root, self._sys, self._dev, programs):
            path.mkdir()
        (programs / "busybox").write_text(_BUSYBOX)
        (programs / "udevadm").write_text("#!/bin/sh\nexit 1\n")
        for program in programs.iterdir():
            program.chmod(0o755)
        (folder / "functions").write_text(_FUNCTIONS)
        self._script = (
            SEED_SCRIPT.replace("/sys/block", str(self._sys))
            .replace("/dev/$", f"{self._dev}/$")
            .replace("[ -b ", "[ -f ")
            .replace("/scripts/functions", str(folder / "functions"))
            .replace("sleep 0.1", ":")
        )
        self._path = programs

    def disk(self, name: str, serial: str | None, content: bytes) -> None:
        """A disk as the kernel shows it; None: its hypervisor gives it no serial number."""
        block = self._sys / name
        (block / "device").mkdir(parents=True, exist_ok=True)
        (block / "size").write_text(f"{len(content) // 512}\n")
        if serial is not None and name.startswith("vd"):
            (block / "serial").write_text(serial)
        elif serial is not None:
            (block / "device" / "vpd_pg80").write_bytes(b"\x00\x80\x00\x14" + serial.rjust(20).encode())
        (self._dev / name).write_bytes(content)

    def boot(self) -> str:
        env = {
            "PATH": f"{self._path}:{os.environ['PATH']}",
            "rootmnt": str(self.root),
            "LOG": str(self.log),
        }
        done = subprocess.run(
            ["sh", "-c", self._script], capture_output=True, text=True, timeout=20, env=env, check=True
        )
        return done.stdout

    def has(self, path: str) -> str | None:
        file = self.root / path
        return file.read_text() if file.exists() else None


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def seed(seed_id: str, files: dict[str, str], last: str = SEED_ID) -> bytes:
    """A seed: a tar with the id as its last member, and what a raw disk has behind it."""
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w") as tar:
        for name, text in (*files.items(), (last, seed_id)):
            member = tarfile.TarInfo(name)
            member.size, member.mode, member.uid, member.gid = len(text), 0o600, os.getuid(), os.getgid()
            tar.addfile(member, io.BytesIO(text.encode()))
    return content.getvalue() + bytes(4096)


def test_a_new_machine_gets_its_identity_on_a_root_that_is_writable_only_meanwhile(machine: Machine) -> None:
    machine.disk("vda", "root", b"a file system")
    machine.disk("vdb", SEED_SERIAL, seed("one", {"etc/hostname": "worker1\n"}))

    assert "success: seed one unpacked" in machine.boot()
    assert machine.has("etc/hostname") == "worker1\n"
    assert (machine.root / "etc/hostname").stat().st_mode & 0o777 == 0o600
    assert machine.has(SEED_ID) == "one"
    assert [line.split()[1] for line in machine.log.read_text().splitlines()] == [
        "remount,rw,sync",
        "remount,ro,async",
    ]


def test_a_sata_disk_is_found_by_its_serial_number_at_every_boot(machine: Machine) -> None:
    machine.disk("sda", "VB0a1b2c3d-4e5f6071", b"a file system")
    machine.disk("sdb", SEED_SERIAL, seed("one", {"etc/hostname": "worker1\n"}))
    assert "success: seed one unpacked" in machine.boot()
    machine.disk("sdb", SEED_SERIAL, seed("two", {"etc/hostname": "worker2\n"}))
    assert "success: seed two unpacked" in machine.boot()
    assert machine.has("etc/hostname") == "worker2\n"


def test_a_disk_without_a_serial_number_is_a_seed_for_a_machine_without_an_identity_alone(
    machine: Machine,
) -> None:
    machine.disk("sda", None, b"a file system")
    machine.disk("sdb", None, seed("one", {"etc/hostname": "worker1\n"}))
    assert "success: seed one unpacked" in machine.boot()
    machine.disk("sdb", None, seed("two", {"etc/hostname": "stranger\n"}))
    assert machine.boot() == ""
    assert machine.has("etc/hostname") == "worker1\n"


def test_a_disk_without_a_serial_number_that_holds_another_tar_is_no_seed(machine: Machine) -> None:
    machine.disk("sdb", None, seed("one", {"etc/hostname": "worker1\n"}, "var/lib/other"))
    assert machine.boot() == ""
    assert machine.has("etc/hostname") is None


def test_folders_that_the_seed_does_not_name_cannot_be_written_by_others(machine: Machine) -> None:
    machine.disk("vdb", SEED_SERIAL, seed("one", {"etc/ssh/sshd_config.d/90-lab.conf": "Port 22\n"}))
    machine.boot()

    for folder in ("var/lib/rackwright", "etc/ssh", "etc/ssh/sshd_config.d"):
        assert (machine.root / folder).stat().st_mode & 0o777 == 0o755


def test_a_seed_is_unpacked_once_and_a_file_changed_on_the_node_stays_changed(machine: Machine) -> None:
    machine.disk("vdb", SEED_SERIAL, seed("one", {"etc/hostname": "worker1\n"}))
    machine.boot()
    (machine.root / "etc/hostname").write_text("changed\n")

    assert machine.boot() == ""
    assert machine.has("etc/hostname") == "changed\n"


def test_a_seed_with_another_id_is_unpacked_over_the_first(machine: Machine) -> None:
    machine.disk("vdb", SEED_SERIAL, seed("one", {"etc/hostname": "worker1\n"}))
    machine.boot()
    machine.disk("vdb", SEED_SERIAL, seed("two", {"etc/hostname": "worker2\n"}))

    assert "success: seed two unpacked" in machine.boot()
    assert (machine.has("etc/hostname"), machine.has(SEED_ID)) == ("worker2\n", "two")


def test_a_seed_that_was_cut_short_leaves_no_id_and_is_unpacked_at_the_next_boot(machine: Machine) -> None:
    whole = seed("two", {"etc/hostname": "worker2\n", "etc/large": "x" * 20_000})
    machine.disk("vdb", SEED_SERIAL, seed("one", {"etc/hostname": "worker1\n"}))
    machine.boot()
    # the id can be read when the script starts, the rest cannot be unpacked
    (machine.root / "etc/large").mkdir()
    (machine.root / "etc/large/file").touch()
    machine.disk("vdb", SEED_SERIAL, whole)

    assert "failure: the seed on" in machine.boot()
    (machine.root / "etc/large/file").unlink()
    (machine.root / "etc/large").rmdir()
    assert "success: seed two unpacked" in machine.boot()
    assert machine.has("etc/large") == "x" * 20_000


def test_a_disk_that_holds_something_else_is_named_and_the_machine_boots(machine: Machine) -> None:
    machine.disk("vdb", SEED_SERIAL, bytes(10_240))

    assert "is not a seed" in machine.boot()
    assert machine.has(SEED_ID) is None
    assert not machine.log.exists()


def test_a_machine_without_a_seed_boots_as_it_is(machine: Machine) -> None:
    machine.disk("vda", "root", b"a file system")

    assert machine.boot() == ""
    assert not machine.log.exists()


def test_folders_that_the_image_lacks_belong_to_root_alone(machine: Machine) -> None:
    """/var/lib/rackwright is one: what is kept there is root's, and no user may replace it."""
    machine.disk("vdb", SEED_SERIAL, seed("one", {"etc/hostname": "worker1\n"}))

    machine.boot()
    assert oct((machine.root / SEED_ID).parent.stat().st_mode & 0o777) == "0o755"

"""The scripts, run by a shell against the programs of an installer as stand-ins that note how they were called."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from rackwright.install.installers.answers import make
from rackwright.install.installers.request import OsDisk
from rackwright.install.installers.signatures import confirmed
from tests.unit.install.installers.made import HOSTILE, RECOVERY, SESSION, make_request

HOST_KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIHostKeyOfTheNode"
FOUND = OsDisk(
    "/dev/sda",
    "SN-A",
    (
        "/dev/sda:gpt:",
        "/dev/sda:PMBR:",
        "/dev/sda1:vfat:EFI",
        "/dev/sda2:ext4:old röot",
        "/dev/sda2:partlabel:my root",
    ),
    "pci-0000:00:04.0-nvme-1",
)
STUBS = {
    "curl": """
for one in "$@"; do case $one in http*) url=$one ;; -o) next=1 ;; *) [ -z "$next" ] || { out=$one; next=; } ;; esac; done
[ ! -e "$BASE/refuses" ] || exit 22
case $url in
    */once) cp "$BASE/once" "$out" ;;
    *) cp "$BASE/run/body" "$BASE/body$(echo "${url##*8443}" | tr / -)"; cp "$BASE/run/header" "$BASE/header" ;;
esac
""",
    "udevadm": """
case $1 in settle) exit 0 ;; esac
for one in "$@"; do case $one in --name=*) name=${one#--name=/dev/} ;; --query=*) query=${one#--query=} ;; esac; done
cat "$BASE/udev/$name.$query" 2>/dev/null
""",
    "dd": '[ ! -e "$BASE/unreadable" ]',
    "readlink": 'cat "$BASE/by-path"',
    "poweroff": 'touch "$BASE/off"; kill "$PPID"',
    "sleep": "",
    "mount": "",
    "umount": "",
    "debconf-set-selections": 'cp "$1" "$BASE/answers"',
    "blkid": "echo /dev/nvme0n1p3",
    "chroot": """
shift
case "$1 $2" in
    "id -u") exit 1 ;;
    "getent passwd") echo "$3:x:1000:1000::/home/$3:/bin/bash" ;;
    "ssh-keygen "*) echo "%s root" >"$BASE/target/etc/ssh/ssh_host_ed25519_key.pub" ;;
    "clevis luks") cat >"$BASE/clevis" ;;
esac
""" % HOST_KEY,  # noqa: UP031 - braces are the shell's
}  # fmt: skip


@pytest.fixture
def machine(tmp_path):
    """A machine with one NVMe disk of serial SN-A, and the programs of its installer."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for name, text in STUBS.items():
        program = programs / name
        program.write_text(f'#!/bin/sh\necho "{name} $*" >>"$BASE/calls"\n{text}\n')
        program.chmod(0o755)
    for folder in (
        "run",
        "udev",
        "sys/nvme0n1/nvme0n1p1",
        "sys/nvme0n1/nvme0n1p2",
        "sys/loop0",
        "target/etc/ssh",
    ):
        (tmp_path / folder).mkdir(parents=True, exist_ok=True)
    (tmp_path / "once").write_text(f"{SESSION}\n{RECOVERY}\n")
    (tmp_path / "sys/nvme0n1/size").write_text("41943040\n")
    (tmp_path / "by-path").write_text("/dev/nvme0n1\n")
    for number in (1, 2):
        (tmp_path / f"sys/nvme0n1/nvme0n1p{number}/partition").write_text(f"{number}\n")
    _udev(tmp_path, "nvme0n1", ID_SERIAL_SHORT="SN-A", ID_PART_TABLE_TYPE="gpt", ID_PART_TABLE_UUID="u-1")
    _udev(tmp_path, "nvme0n1p1", ID_FS_TYPE="vfat", ID_FS_LABEL_ENC="EFI", ID_FS_UUID_ENC="1-2")
    _udev(
        tmp_path,
        "nvme0n1p2",
        ID_FS_TYPE="ext4",
        ID_FS_LABEL_ENC=r"old\x20röot",
        ID_PART_ENTRY_NAME=r"my\x20root",
    )
    (tmp_path / "udev/nvme0n1.symlink").write_text(
        "disk/by-path/pci-1 disk/by-id/nvme-X_SN-A disk/by-diskseq/1\n"
    )
    return tmp_path


def _udev(base, device, **properties):
    text = "".join(f"{key}={value}\n" for key, value in properties.items())
    (base / f"udev/{device}.property").write_text(text)


def _run(base, script):
    for old, new in (
        ("/run/rackwright", f"{base}/run"),
        ("/sys/block", f"{base}/sys"),
        ("/target", f"{base}/target"),
        ("/mnt/sysroot", f"{base}/target"),
        ("/autoinstall.yaml", f"{base}/autoinstall.yaml"),
        ("/usr/lib/finish-install.d", f"{base}/finish-install.d"),
    ):
        script = script.replace(old, new)
    environment = {"PATH": f"{base}/bin:{os.environ['PATH']}", "BASE": str(base)}
    return subprocess.run(
        ["/bin/sh"], input=script, env=environment, capture_output=True, text=True, timeout=60, check=False
    )


def _scripts(release, **changes):
    files = make(make_request(release, **{"disks": (FOUND,), **changes})).files
    if "user-data" in files:
        document = yaml.safe_load(files["user-data"])["autoinstall"]
        return document["early-commands"][0], document["late-commands"][0]
    if "ks.cfg" in files:
        pre, post = files["ks.cfg"].split("%pre")[1], files["ks.cfg"].split("%post")[1]
        return tuple(part.partition("\n")[2].partition("\n%end\n")[0] + "\n" for part in (pre, post))
    return files["guard.sh"], files["finish.sh"]


def _refused(base, result):
    """What the head was told; the machine is off, and no disk is named for the installer."""
    assert (base / "off").exists(), result.stderr
    assert not (base / "run/disk0").exists()
    document = json.loads((base / "body-v1-failed").read_text())
    assert document["phase"] == "check"
    return document["error"]


def test_the_approved_disk_passes(machine):
    (machine / "autoinstall.yaml").write_text("path: rackwright-disk-0\n")
    result = _run(machine, _scripts("ubuntu-24.04")[0])
    assert (result.returncode, (machine / "off").exists()) == (0, False), result.stderr
    assert (machine / "autoinstall.yaml").read_text() == "path: /dev/nvme0n1\n"
    assert (machine / "run/link0").read_text() == "disk/by-id/nvme-X_SN-A\n"
    assert json.loads((machine / "body-v1-progress").read_text()) == {"phase": "partition", "percent": 0}
    assert (machine / "header").read_text().splitlines()[0] == f"Authorization: Bearer {SESSION}"
    assert SESSION not in (machine / "calls").read_text()


def test_its_own_text_in_the_answers_does_not_look_like_a_disk(machine):
    files = make(make_request("ubuntu-24.04", disks=(FOUND,))).files
    (machine / "autoinstall.yaml").write_text(files["user-data"])
    result = _run(machine, _scripts("ubuntu-24.04")[0])
    assert result.returncode == 0, result.stderr
    assert "path: /dev/nvme0n1\n" in (machine / "autoinstall.yaml").read_text()


def test_an_empty_disk_passes(machine):
    (machine / "autoinstall.yaml").write_text("path: rackwright-disk-0\n")
    _udev(machine, "nvme0n1", ID_SERIAL_SHORT="SN-A")
    shutil.rmtree(machine / "sys/nvme0n1/nvme0n1p1")
    shutil.rmtree(machine / "sys/nvme0n1/nvme0n1p2")
    result = _run(machine, _scripts("ubuntu-24.04", disks=(OsDisk("/dev/sda", "SN-A"),))[0])
    assert (result.returncode, (machine / "off").exists()) == (0, False), result.stderr


@pytest.mark.parametrize(
    ("device", "properties", "message"),
    [
        (
            "nvme0n1p1",
            {"ID_FS_TYPE": "LVM2_member", "ID_FS_UUID_ENC": "abc"},
            "the disk SN-A (/dev/nvme0n1) has 1:LVM2_member:, which was not confirmed; nothing was written",
        ),
        (
            "nvme0n1p2",
            {"ID_FS_TYPE": "ext4", "ID_FS_LABEL_ENC": "other", "ID_PART_ENTRY_NAME": r"my\x20root"},
            "the disk SN-A (/dev/nvme0n1) has 2:ext4:other, which was not confirmed; nothing was written",
        ),
        (
            "nvme0n1p1",
            {"ID_FS_TYPE": "vfat", "ID_FS_LABEL_ENC": "EFI", "ID_PART_ENTRY_NAME": "data"},
            "the disk SN-A (/dev/nvme0n1) has 1:partlabel:data, which was not confirmed; nothing was written",
        ),
        (
            "nvme0n1p1",
            {"ID_FS_AMBIVALENT": "filesystem:ext4 filesystem:xfs"},
            "/dev/nvme0n1p1 of the disk SN-A holds more than one kind of file system; nothing was written",
        ),
        (
            "nvme0n1",
            {"ID_SERIAL_SHORT": "SN-A", "ID_PART_TABLE_TYPE": "dos"},
            "the disk SN-A (/dev/nvme0n1) has 0:dos:, which was not confirmed; nothing was written",
        ),
        (
            "nvme0n1",
            {"ID_SERIAL_SHORT": "SN-A2"},
            "0 disks have the serial number SN-A, and one was approved; nothing was written",
        ),
    ],
)
def test_a_disk_that_is_not_as_approved(machine, device, properties, message):
    _udev(machine, device, **properties)
    assert _refused(machine, _run(machine, _scripts("debian-12")[0])) == message


def test_two_disks_with_the_serial(machine):
    (machine / "sys/sdb").mkdir()
    _udev(machine, "sdb", ID_SERIAL="X_SN-A", ID_SCSI_SERIAL="SN-A")
    message = "2 disks have the serial number SN-A, and one was approved; nothing was written"
    assert _refused(machine, _run(machine, _scripts("debian-12")[0])) == message


def test_a_disk_in_another_place(machine):
    (machine / "by-path").write_text("/dev/sdb\n")
    message = "/dev/disk/by-path/pci-0000:00:04.0-nvme-1 does not lead to the disk SN-A (/dev/nvme0n1); nothing was written"
    assert _refused(machine, _run(machine, _scripts("debian-12")[0])) == message


def test_a_disk_that_cannot_be_read(machine):
    (machine / "unreadable").touch()
    message = "/dev/nvme0n1 of the disk SN-A cannot be read; nothing was written"
    assert _refused(machine, _run(machine, _scripts("debian-12")[0])) == message


def test_without_the_head_nothing_is_written(machine):
    (machine / "refuses").touch()
    result = _run(machine, _scripts("debian-12")[0])
    assert (machine / "off").exists()
    assert "rackwright: the session could not be fetched" in result.stderr
    assert not (machine / "run/disk0").exists()


def test_what_the_check_gives_partman(machine):
    result = _run(machine, _scripts("debian-12", volumes="lvm", encryption="tpm2")[0])
    assert result.returncode == 0, result.stderr
    assert (machine / "answers").read_text().splitlines() == [
        "d-i partman-auto/disk string /dev/nvme0n1",
        f"d-i partman-crypto/passphrase password {RECOVERY}",
        f"d-i partman-crypto/passphrase-again password {RECOVERY}",
    ]
    assert not (machine / "run/answers").exists()
    assert RECOVERY not in (machine / "calls").read_text()


def test_what_the_check_gives_anaconda(machine):
    (machine / "sys/sdb").mkdir()
    (machine / "sys/sdb/size").write_text("20971520\n")
    _udev(machine, "sdb", ID_SERIAL_SHORT="SN-B")
    (machine / "udev/sdb.symlink").write_text("disk/by-path/pci-2\n")
    disks = (FOUND, OsDisk("/dev/sdb", "SN-B"))
    result = _run(machine, _scripts("rocky-9", mirror=True, encryption="tpm2", disks=disks)[0])
    assert result.returncode == 0, result.stderr
    text = (machine / "run/storage.ks").read_text()
    assert "ignoredisk --only-use=disk/by-id/nvme-X_SN-A,disk/by-path/pci-2\n" in text
    root = 10240 - 512 - 1024 - 64  # of the smaller disk
    assert f"part raid.root0 --size={root} --ondisk=disk/by-id/nvme-X_SN-A\n" in text
    assert f"--passphrase={RECOVERY} raid.root0 raid.root1\n" in text
    assert "rackwright-" not in text
    assert RECOVERY not in (machine / "calls").read_text()


@pytest.mark.parametrize("release", ["ubuntu-24.04", "rocky-9", "debian-12"])
def test_the_end_makes_the_node_and_reports(machine, release):
    esp = machine / "target/boot/efi/EFI/vendor"
    esp.mkdir(parents=True)
    for name in ("shimx64.efi", "grubx64.efi"):
        (esp / name).write_text(name)
    (machine / "autoinstall.yaml").write_text("path: rackwright-disk-0\n")
    early, late = _scripts(release, admin_key=HOSTILE, encryption="tpm2", volumes="lvm")
    assert _run(machine, early).returncode == 0
    result = _run(machine, late)
    assert (result.returncode, (machine / "off").exists()) == (0, False), result.stderr
    target = machine / "target"
    assert (target / "etc/hostname").read_text() == "worker1\n"
    keys = target / "home/admin/.ssh/authorized_keys"
    assert keys.read_text() == f"{HOSTILE}\n"
    assert oct(keys.stat().st_mode & 0o777) == "0o600"
    assert oct((target / "etc/sudoers.d/90-admin").stat().st_mode & 0o777) == "0o440"
    assert (machine / "clevis").read_text() == RECOVERY
    report = json.loads((machine / "body-v1-done").read_text())
    assert report.pop("seconds") >= 0
    assert report == {"run": "k3x9ab12", "host_keys": {"ed25519": HOST_KEY}, "disks": ["SN-A"]}
    calls = (machine / "calls").read_text()
    assert SESSION not in calls
    assert RECOVERY not in calls
    for path in (one for one in target.rglob("*") if one.is_file()):
        assert SESSION not in path.read_text(), path
        assert RECOVERY not in path.read_text(), path
    assert [
        one.name for one in Path(machine, "run").iterdir() if one.name in ("once", "header", "recovery")
    ] == []
    if release != "rocky-9":
        assert (target / "boot/efi/EFI/BOOT/BOOTX64.EFI").read_text() == "shimx64.efi"


def test_a_secret_that_an_installer_left_ends_the_installation(machine):
    (machine / "target/root").mkdir()
    (machine / "target/root/log").write_text(f"fetched {SESSION}\n")
    early, late = _scripts("rocky-9")
    assert _run(machine, early).returncode == 0
    _run(machine, late)
    assert (machine / "off").exists()
    assert json.loads((machine / "body-v1-failed").read_text()) == {
        "phase": "finish",
        "error": "a secret of the installation is below /root",
    }
    assert not (machine / "body-v1-done").exists()


def test_a_step_that_fails_is_named(machine):
    early, late = _scripts("debian-12")  # no boot loader is there
    assert _run(machine, early).returncode == 0
    _run(machine, late)
    assert json.loads((machine / "body-v1-failed").read_text()) == {
        "phase": "finish",
        "error": "the installation failed: the EFI partitions",
    }


def test_signatures_are_those_of_the_disk():
    assert confirmed(FOUND) == ["0:PMBR:", "0:gpt:", "1:vfat:EFI", "2:ext4:old_r__ot", "2:partlabel:my_root"]
    assert confirmed(OsDisk("/dev/nvme0n1", "x", ("/dev/nvme0n1p12:swap:",))) == ["12:swap:"]


@pytest.mark.parametrize("signature", ["/dev/sdb1:ext4:root", "/dev/sda1", "/dev/sdab:ext4:"])
def test_a_signature_of_another_disk(signature):
    with pytest.raises(ValueError, match=f"^'{signature}' is not a signature of /dev/sda$"):
        confirmed(OsDisk("/dev/sda", "x", (signature,)))

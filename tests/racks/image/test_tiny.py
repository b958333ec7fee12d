"""One small image: whole, general, made once, and without a trace on this machine."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tarfile
import time
from pathlib import Path

import pytest
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

from rackwright.errors import ImageError
from rackwright.image import manifest
from rackwright.image.build import build, order
from rackwright.image.choice import BuildStep, Choice
from rackwright.image.install import install
from rackwright.lab import image, oci
from rackwright.lab.recipe import Kind
from tests.racks.image import machine
from tests.racks.image.conftest import Built, tiny

pytestmark = [pytest.mark.lab, pytest.mark.proof]


@pytest.mark.smoke
def test_the_folder_has_everything_a_driver_needs(built: Built):
    names = {path.name for path in built.image.folder.iterdir()}
    assert names == {"disk.qcow2", "etc", "manifest.json", "sbom.cdx.json", "vmlinuz"}
    assert {path.name for path in (built.image.folder / "etc").iterdir()} == {
        "passwd", "group", "shadow", "gshadow",
    }  # fmt: skip
    assert {"munge", "linux-image-amd64", "qemu-guest-agent"} <= {
        one.name for one in built.image.manifest.packages
    }
    text = (built.image.folder / "sbom.cdx.json").read_text()
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(text) is None
    assert len(json.loads(text)["components"]) == len(built.image.manifest.packages)


@pytest.mark.smoke
def test_the_disk_has_what_uefi_grub_and_the_kernel_look_for(built: Built):
    assert {"EFI/BOOT/BOOTX64.EFI", "EFI/BOOT/grubx64.efi", "EFI/debian/grub.cfg"} <= set(
        built.image.esp().split()
    )
    kernel = built.image.manifest.kernel
    assert {f"vmlinuz-{kernel}", f"initrd.img-{kernel}"} <= built.image.names("/boot")
    assert f"with Linux {kernel}" in built.image.text("/boot/grub/grub.cfg")
    uuid = built.image.text("/etc/fstab").split()[0].removeprefix("UUID=")
    assert f"root=UUID={uuid}" in built.image.text("/boot/grub/grub.cfg")
    built.image.check()


@pytest.mark.smoke
def test_accounts_have_the_ids_that_the_cluster_file_declares(built: Built):
    for text in ((built.image.folder / "etc/passwd").read_text(), built.image.text("/etc/passwd")):
        (munge,) = [line for line in text.splitlines() if line.startswith("munge:")]
        assert munge.split(":")[2:4] == ["441", "442"]


@pytest.mark.smoke
def test_nothing_of_one_machine_and_no_secret_is_on_the_disk(built: Built):
    assert built.image.text("/etc/machine-id") == ""
    assert "passwd" in built.image.names("/etc")
    assert not {"hostname", "resolv.conf"} & built.image.names("/etc")
    assert not [name for name in built.image.names("/etc/ssh") if name.startswith("ssh_host_")]
    assert "munge.key" not in built.image.names("/etc/munge")
    assert "policy-rc.d" not in built.image.names("/usr/sbin")
    assert "00lab-proxy" not in built.image.names("/etc/apt/apt.conf.d")
    assert not [name for name in built.image.names("/etc/apt/apt.conf.d") if "image" in name]
    # munged writes it when it ends: it never ran
    assert built.image.names("/var/lib/munge") == set()
    assert "Write the munge key" in built.image.manifest.left["munge"]


@pytest.mark.smoke
def test_a_second_build_finds_the_first(built: Built):
    said: list[str] = []
    start = time.monotonic()

    found = build(order(built.cluster, built.cluster.nodes, "disk", 4), built.image.folder, said.append)

    assert found == built.image.manifest
    assert said == []
    assert time.monotonic() - start < built.seconds


@pytest.mark.smoke
def test_this_machine_is_as_before(built: Built):
    assert machine.state() == built.before
    assert machine.inside(built.image.folder.parent) == []


def _only(step: BuildStep) -> Choice:
    return Choice((step,), {}, {})


def test_a_command_that_fails_is_named_with_what_it_said_and_leaves_nothing(tmp_path: Path):
    before = machine.state()
    step = BuildStep("slurm", "Install Slurm", commands=("apt-get install -y no-such-package",))
    with image.held({"debian-13"}, print, Kind.VM) as bases:
        subprocess.run(["cp", "-a", str(bases["debian-13"]), str(tmp_path / "tree")], check=True)
    with pytest.raises(ImageError, match=r"(?s)slurm: Install Slurm failed in the image.*no-such-package"):
        install(_only(step), tmp_path / "tree", "trixie", print)
    with pytest.raises(ImageError, match=r"(?s)left processes running: sleep"):
        install(
            _only(BuildStep("a", "start a daemon", commands=("sleep 60 &",))),
            tmp_path / "tree",
            "trixie",
            print,
        )
    daemon = "invoke-rc.d ssh start; deb-systemd-invoke start ssh.service; ls /run"
    install(_only(BuildStep("a", "start sshd", commands=(daemon,))), tmp_path / "tree", "trixie", print)
    capabilities = "effective=$((0x$(sed -n 's/^CapEff:\\t//p' /proc/self/status)))"
    harmless = [
        "! cat /proc/sys/kernel/sysrq >/proc/sys/kernel/sysrq",
        "! mount -t tmpfs none /mnt",
        # net_admin, sys_module, sys_rawio, sys_admin, sys_boot, sys_time, mknod, syslog: capabilities(7)
        f"{capabilities}; for bit in 12 16 17 21 22 25 27 34; do [ $((effective >> bit & 1)) = 0 ]; done",
    ]
    for command in harmless:
        install(_only(BuildStep("a", command, commands=(command,))), tmp_path / "tree", "trixie", print)
    assert machine.inside(tmp_path) == []
    assert machine.state() == before


def test_a_build_that_is_killed_leaves_no_process_no_mount_and_no_half_image(tmp_path: Path):
    before = machine.state()
    file, out, log = tiny(tmp_path), tmp_path / "out/head", tmp_path / "log"
    command = [sys.executable, "-m", "rackwright", "image", "build", str(file), "--group", "head1"]
    with log.open("w") as said:
        process = subprocess.Popen([*command, "--out", str(out), "--size", "4"], stderr=said, stdout=said)
        deadline = time.monotonic() + 600
        while not machine.inside(tmp_path) or "Install munge" not in log.read_text():
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < deadline
            time.sleep(0.02)
        os.kill(process.pid, signal.SIGKILL)
        process.wait(30)
    deadline = time.monotonic() + 10
    while machine.inside(tmp_path) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert machine.inside(tmp_path) == []
    assert machine.state() == before
    assert not out.exists()
    assert (tmp_path / "out/.head.unfinished").exists()

    done = subprocess.run(
        [*command, "--out", str(out), "--size", "4"], capture_output=True, text=True, timeout=900, check=False
    )
    assert done.returncode == 0, done.stderr
    assert str(out / "disk.qcow2") in done.stdout
    assert sorted(path.name for path in out.parent.iterdir()) == [".head.lock", "head"]


def test_a_container_group_becomes_an_oci_image_with_its_packages_and_their_accounts(tmp_path: Path):
    file, out = tiny(tmp_path, vm="container"), tmp_path / "out"
    command = [sys.executable, "-m", "rackwright", "image", "build", str(file), "--group", "head1"]
    done = subprocess.run(
        [*command, "--format", "oci", "--out", str(out)],
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found = manifest.read(out)
    assert found is not None
    assert (found.kernel, found.format, found.platform) == (None, "oci", "container")
    names, passwd = set(), b""
    with tarfile.open(out / oci.NAME) as whole:
        content = whole.extractfile(max(whole, key=lambda member: member.size))
        with tarfile.open(fileobj=content, mode="r|gz") as tree:
            for member in tree:
                names.add(member.name)
                if member.name == "etc/passwd" and (text := tree.extractfile(member)) is not None:
                    passwd = text.read()
    assert b"\nmunge:x:441:442:" in passwd
    assert {"usr/sbin/munged", "usr/bin/sh", "proc", "dev"} <= names
    assert not {"etc/munge/munge.key", "usr/sbin/policy-rc.d", "dev/null"} & names

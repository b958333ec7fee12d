"""Boot media of installers, made by xorriso and mtools and read again."""

from __future__ import annotations

import subprocess

import pytest

from rackwright.errors import InstallError
from rackwright.install.handover.files import InstallerFiles
from rackwright.install.handover.media import grub_config, make_iso, put_netboot

UBUNTU = "autoinstall ds=nocloud-net;s=http://10.9.0.10:8480/r4nd0m/ BOOTIF=01-52-54-00-77-00-11 console=ttyS0,115200"
PLACES = (
    "boot/grub/grub.cfg",
    "debian-installer/amd64/grub/grub.cfg",
    "grub/grub.cfg",
    "EFI/BOOT/grub.cfg",
    "grub.cfg",
)


@pytest.fixture
def files(tmp_path):
    folder = tmp_path / "a folder = odd"
    folder.mkdir()
    for name in ("kernel", "initrd", "shim", "grub"):
        (folder / name).write_bytes(name.encode() * 5000)
    return InstallerFiles(*(folder / name for name in ("kernel", "initrd", "shim", "grub")))


def test_each_argument_is_one_word_for_grub():
    text = grub_config(UBUNTU)
    assert "'ds=nocloud-net;s=http://10.9.0.10:8480/r4nd0m/'" in text
    assert text.count(" 'autoinstall' ") == 2


@pytest.mark.parametrize("arguments", ["a='b'", "a=\x1b[2J"])
def test_what_could_end_the_word_is_refused(arguments):
    with pytest.raises(InstallError, match="A kernel argument of the installer contains a quote"):
        grub_config(arguments)


def test_the_settings_can_be_parsed_by_grub(tmp_path):
    checker = subprocess.run(["which", "grub-script-check"], capture_output=True, check=False)
    if checker.returncode:
        pytest.skip("grub-script-check is not installed")
    (tmp_path / "grub.cfg").write_text(grub_config(UBUNTU, "search --no-floppy --file --set=root /x"))
    subprocess.run(["grub-script-check", tmp_path / "grub.cfg"], check=True)


def test_the_iso_has_each_file_and_its_settings_where_each_grub_looks(files, tmp_path):
    target = tmp_path / "media" / "worker1.iso"
    make_iso(files, UBUNTU, target)
    assert target.stat().st_mode & 0o777 == 0o600
    out = tmp_path / "out"
    subprocess.run(
        ["xorriso", "-osirrox", "on", "-indev", target, "-extract", "/", out], check=True, capture_output=True
    )
    assert (out / "rackwright/vmlinuz").read_bytes() == files.kernel.read_bytes()
    assert (out / "rackwright/initrd").read_bytes() == files.initrd.read_bytes()
    assert (out / ".disk/info").exists()
    texts = {(out / name).read_text() for name in PLACES}
    assert len(texts) == 1
    assert "search --no-floppy --file --set=root /rackwright/vmlinuz\n" in texts.pop()
    for name, source in {"BOOTX64.EFI": files.shim, "grubx64.efi": files.grub}.items():
        command = ["mcopy", "-i", out / "efi.img", f"::/EFI/BOOT/{name}", tmp_path / name]
        subprocess.run(command, check=True, capture_output=True)
        assert (tmp_path / name).read_bytes() == source.read_bytes()
    assert [path.name for path in target.parent.iterdir()] == ["worker1.iso"], "nothing is left of the making"


def test_netboot_files_are_readable_for_tftp_and_replace_older_ones(files, tmp_path):
    folder = tmp_path / "tftp" / "10.9.0.11"
    folder.mkdir(parents=True)
    (folder / "older").write_text("x")
    put_netboot(files, UBUNTU, folder)
    found = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
    assert found == {"shimx64.efi", "grubx64.efi", "rackwright/vmlinuz", "rackwright/initrd", *PLACES}
    assert {path.stat().st_mode & 0o777 for path in folder.rglob("*") if path.is_file()} == {0o644}
    assert "search" not in (folder / "grub.cfg").read_text()

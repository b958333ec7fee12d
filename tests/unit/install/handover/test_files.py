"""Where each distribution has its installer's files: layouts of a mounted ISO and of netboot.tar.gz."""

from __future__ import annotations

import pytest

from rackwright.errors import InstallError
from rackwright.install.handover.files import find
from rackwright.model.install import BootWay, Install, Installer
from tests.unit.install.site import make_worker

DEBIAN = ["linux", "initrd.gz", "bootnetx64.efi", "grubx64.efi"]
EL = ["images/pxeboot/vmlinuz", "images/pxeboot/initrd.img", "EFI/BOOT/BOOTX64.EFI", "EFI/BOOT/grubx64.efi"]
UBUNTU = ["casper/vmlinuz", "casper/initrd", "EFI/boot/bootx64.efi", "EFI/boot/grubx64.efi"]


def node(folder, installer, boot=BootWay.VIRTUAL_MEDIA):
    return make_worker(install=Install(installer=installer, installer_files=folder, boot=boot))


def make(folder, names):
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(name)


def found(folder, installer, boot=BootWay.VIRTUAL_MEDIA):
    files = find(node(folder, installer, boot))
    return [str(path.relative_to(folder)) for path in (files.kernel, files.initrd, files.shim, files.grub)]


@pytest.mark.parametrize(
    ("installer", "names"),
    [
        (Installer.PRESEED, DEBIAN),
        (Installer.PRESEED, [f"debian-installer/amd64/{name}" for name in DEBIAN]),
        (Installer.KICKSTART, EL),
        (Installer.KICKSTART, [name.upper() for name in EL]),
        (Installer.AUTOINSTALL, UBUNTU),
    ],
)
def test_layouts(tmp_path, installer, names):
    make(tmp_path, names)
    assert found(tmp_path, installer) == names


def test_the_grub_of_ubuntus_iso_reads_no_network(tmp_path):
    make(tmp_path, UBUNTU)
    with pytest.raises(
        InstallError, match=r"lacks: signed grub \(grubnetx64\.efi\.signed or grubnetx64\.efi\)"
    ):
        find(node(tmp_path, Installer.AUTOINSTALL, BootWay.PXE))
    make(tmp_path, ["grubnetx64.efi.signed"])
    assert found(tmp_path, Installer.AUTOINSTALL, BootWay.PXE)[3] == "grubnetx64.efi.signed"
    assert found(tmp_path, Installer.AUTOINSTALL)[3] == "EFI/boot/grubx64.efi"


def test_all_that_is_missing_at_once(tmp_path):
    make(tmp_path, ["initrd.gz"])
    (tmp_path / "linux").write_text("")
    (tmp_path / "grubx64.efi").mkdir()
    with pytest.raises(InstallError) as error:
        find(node(tmp_path, Installer.PRESEED))
    assert error.value.message == (
        f"worker1: {tmp_path} lacks: kernel (linux or vmlinuz or debian-installer/amd64/linux); signed shim "
        "(EFI/BOOT/BOOTX64.EFI or bootnetx64.efi or debian-installer/amd64/bootnetx64.efi or shimx64.efi); signed grub "
        "(EFI/BOOT/grubx64.efi or grubx64.efi or debian-installer/amd64/grubx64.efi)."
    )
    assert error.value.hint == "debian-installer/amd64 of the release's netboot.tar.gz"


def test_a_folder_that_is_missing(tmp_path):
    with pytest.raises(InstallError, match="lacks: kernel"):
        find(node(tmp_path / "none", Installer.KICKSTART))

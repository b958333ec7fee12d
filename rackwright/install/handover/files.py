"""Files that boot an installer, in the folder that the operator declares: a mounted ISO, or Debian's netboot folder.

Shim and GRUB must be the distribution's: under Secure Boot each shim accepts only that distribution's kernels.
Layouts: Debian's was checked in debian-installer-12-netboot-amd64. EL's and Ubuntu's follow documentation; the ISOs were
not available here: Oracle's guide on PXE for UEFI, Ubuntu's "How to netboot the server installer on amd64".
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from rackwright.errors import InstallError
from rackwright.model.cluster import Node
from rackwright.model.install import BootWay, Install, Installer

_SHIM, _GRUB = "EFI/BOOT/BOOTX64.EFI", "EFI/BOOT/grubx64.efi"
_KERNELS = {
    Installer.PRESEED: ("linux", "vmlinuz", "debian-installer/amd64/linux"),
    Installer.KICKSTART: ("images/pxeboot/vmlinuz", "vmlinuz"),
    Installer.AUTOINSTALL: ("casper/vmlinuz", "vmlinuz"),
}
_INITRDS = {
    Installer.PRESEED: ("initrd.gz", "debian-installer/amd64/initrd.gz"),
    Installer.KICKSTART: ("images/pxeboot/initrd.img", "initrd.img"),
    Installer.AUTOINSTALL: ("casper/initrd", "initrd"),
}
_SHIMS = (_SHIM, "bootnetx64.efi", "debian-installer/amd64/bootnetx64.efi", "shimx64.efi")
_GRUBS = (_GRUB, "grubx64.efi", "debian-installer/amd64/grubx64.efi")
_NET_GRUBS = ("grubnetx64.efi.signed", "grubnetx64.efi")
"""The GRUB on Ubuntu's ISO reads only CDs; this one is in its package grub-efi-amd64-signed."""
_SOURCES = {
    Installer.PRESEED: "debian-installer/amd64 of the release's netboot.tar.gz",
    Installer.KICKSTART: "the mounted ISO, or images/pxeboot and EFI of the distribution's tree",
    Installer.AUTOINSTALL: "the mounted live-server ISO",
}


@dataclass(frozen=True)
class InstallerFiles:
    """Files that boot one machine's installer."""

    kernel: Path
    initrd: Path
    shim: Path
    grub: Path


def find(node: Node) -> InstallerFiles:
    """The files for a node; InstallError names each missing one."""
    install, installer = node.install, None if node.install is None else node.install.installer
    if install is None or installer is None or install.installer_files is None:
        raise InstallError(f"{node.name} does not declare `installer_files`.")
    wanted = {
        "kernel": _KERNELS[installer],
        "initrd": _INITRDS[installer],
        "signed shim": _SHIMS,
        "signed grub": _grubs(install),
    }
    found = {what: _first(install.installer_files, names) for what, names in wanted.items()}
    missing = [f"{what} ({' or '.join(wanted[what])})" for what, path in found.items() if path is None]
    if missing:
        raise InstallError(
            f"{node.name}: {install.installer_files} lacks: {'; '.join(missing)}.",
            hint=_SOURCES[installer],
        )
    return InstallerFiles(*(path for path in found.values() if path is not None))


def _grubs(install: Install) -> tuple[str, ...]:
    if install.boot is not BootWay.PXE:
        return _GRUBS
    return _NET_GRUBS if install.installer is Installer.AUTOINSTALL else (*_NET_GRUBS, *_GRUBS)


def _first(folder: Path, names: tuple[str, ...]) -> Path | None:
    return next((path for name in names if (path := _file(folder, name)) is not None), None)


def _file(folder: Path, name: str) -> Path | None:
    """A non-empty file by case-insensitive name: ISO 9660 without extensions uses capitals."""
    path = folder
    for part in name.split("/"):
        try:
            path = next(one for one in path.iterdir() if one.name.lower() == part.lower())
        except (OSError, StopIteration):
            return None
    return path if path.is_file() and path.stat().st_size else None

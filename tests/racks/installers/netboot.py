"""Debian's netboot installer and signed boot loaders, unpacked from Debian's packages and not installed on this host."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

PACKAGES = ("debian-installer-12-netboot-amd64", "grub-efi-amd64-signed", "shim-signed")
_FOLDER = "usr/lib/debian-installer/images/12/amd64/text/debian-installer/amd64"
_GRUB_CD = "usr/lib/grub/x86_64-efi-signed/gcdx64.efi.signed"
_SHIM = "usr/lib/shim/shimx64.efi.signed"


class Unpacked:
    """The packages, in a folder."""

    def __init__(self, folder: Path) -> None:
        self._tree = folder / "tree"
        _run("apt-get", "-q", "download", *PACKAGES, cwd=folder)
        for package in folder.glob("*.deb"):
            _run("dpkg-deb", "-x", str(package), str(self._tree), cwd=folder)
            package.unlink()

    @property
    def netboot(self) -> Path:
        """debian-installer/amd64, as netboot.tar.gz has it."""
        return self._tree / _FOLDER

    def like_a_cd(self, folder: Path) -> Path:
        """A folder laid out as a mounted CD: with the grub that looks for one."""
        (folder / "EFI/BOOT").mkdir(parents=True)
        for name in ("linux", "initrd.gz"):
            shutil.copyfile(self.netboot / name, folder / name)
        shutil.copyfile(self._tree / _SHIM, folder / "EFI/BOOT/BOOTX64.EFI")
        shutil.copyfile(self._tree / _GRUB_CD, folder / "EFI/BOOT/grubx64.efi")
        return folder


def _run(*command: str, cwd: Path) -> None:
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False, cwd=cwd)
    assert done.returncode == 0, f"{' '.join(command)}: {done.stderr}"

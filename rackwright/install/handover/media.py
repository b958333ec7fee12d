"""Boot media of the distribution's installer: an ISO for the BMC's virtual CD, or files for PXE.

Each distribution's signed GRUB looks for its configuration in another place, so it is put in all of them: Debian's are
from its binaries, EL's could not be checked here. Nothing on the medium is secret.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

from rackwright.errors import ImageError, InstallError
from rackwright.install.agent_image import GRUB_NET, SHIM
from rackwright.install.handover.files import InstallerFiles
from rackwright.install.media import LABEL, require_xorriso
from rackwright.lab.process import run

_KERNEL, _INITRD, _ESP = "rackwright/vmlinuz", "rackwright/initrd", "efi.img"
_SETTINGS = (
    "boot/grub/grub.cfg",  # Debian's and Ubuntu's for CDs
    "debian-installer/amd64/grub/grub.cfg",  # Debian's of netboot.tar.gz
    "grub/grub.cfg",  # Debian's and Ubuntu's for networks
    "EFI/BOOT/grub.cfg",  # EL's, on a CD
    "grub.cfg",  # EL's, beside itself
)
_SECONDS = 300.0
_SPARE = 1 << 20


def require_programs() -> None:
    """ImageError if a required program is missing."""
    require_xorriso()
    if shutil.which("mcopy") is None:
        raise ImageError("mcopy is missing: apt-get install mtools")


def make_iso(files: InstallerFiles, arguments: str, target: Path) -> None:
    """Write the ISO that boots the installer with these kernel arguments; readable by its owner alone."""
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{target.name}.", dir=target.parent) as staging:
        folder = Path(staging)  # 0700
        (folder / "grub.cfg").write_text(
            grub_config(arguments, f"search --no-floppy --file --set=root /{_KERNEL}")
        )
        (folder / "info").write_text("rackwright\n")  # GRUB finds its CD by this file
        _make_esp(files, folder / "grub.cfg", folder / _ESP)
        grafts = {
            ".disk/info": folder / "info",
            _ESP: folder / _ESP,
            _KERNEL: files.kernel,
            _INITRD: files.initrd,
            **dict.fromkeys(_SETTINGS, folder / "grub.cfg"),
        }
        argv = ["xorriso", "-as", "mkisofs", "-quiet", "-R", "-V", LABEL, "-graft-points"]
        argv += ["-e", _ESP, "-no-emul-boot", "-o", str(folder / "iso")]
        run(
            [*argv, *(f"{name}={_escaped(path)}" for name, path in grafts.items())],
            timeout=_SECONDS,
            shown=f"xorriso {target}",
        )
        (folder / "iso").chmod(0o600)
        os.replace(folder / "iso", target)


def put_netboot(files: InstallerFiles, arguments: str, folder: Path) -> None:
    """Files of one PXE machine, in a folder that is its TFTP root."""
    shutil.rmtree(folder, ignore_errors=True)
    sources = {SHIM: files.shim, GRUB_NET: files.grub, _KERNEL: files.kernel, _INITRD: files.initrd}
    for name, source in sources.items():
        _place(folder / name)
        shutil.copyfile(source, folder / name)
        (folder / name).chmod(0o644)
    for name in _SETTINGS:
        _place(folder / name)
        (folder / name).write_text(grub_config(arguments))
        (folder / name).chmod(0o644)  # regardless of the umask: TFTP servers serve what all can read


def grub_config(arguments: str, find: str = "") -> str:
    """grub.cfg of an installer. Older EL GRUBs start kernels with linuxefi (Oracle Linux 7's guide), which others lack."""
    words = arguments.split()
    if any("'" in word or not word.isprintable() for word in words):
        raise InstallError("A kernel argument of the installer contains a quote.")
    quoted = " ".join(
        f"'{word}'" for word in words
    )  # GRUB would end the command at the `;` of ds=nocloud-net;s=
    return (
        f"set default=0\nset timeout=0\n{find}\n"
        "menuentry 'rackwright: installer' {\n"
        f"\tif linux /{_KERNEL} {quoted}; then\n\t\tinitrd /{_INITRD}\n"
        f"\telse\n\t\tlinuxefi /{_KERNEL} {quoted}\n\t\tinitrdefi /{_INITRD}\n\tfi\n"
        "}\n"
    )


def _make_esp(files: InstallerFiles, settings: Path, target: Path) -> None:
    """The file system that firmware boots from a CD: the distribution's shim, and its GRUB under the name shim expects."""
    size = files.shim.stat().st_size + files.grub.stat().st_size + _SPARE
    sectors = max(16384, -(-size // 512))
    run(["mformat", "-C", "-i", str(target), "-T", str(sectors), "-v", LABEL, "::"], timeout=60)
    for name in ("EFI", "EFI/BOOT"):
        run(["mmd", "-i", str(target), f"::/{name}"], timeout=60)
    for name, source in {"BOOTX64.EFI": files.shim, "grubx64.efi": files.grub, "grub.cfg": settings}.items():
        run(["mcopy", "-i", str(target), str(source), f"::/EFI/BOOT/{name}"], timeout=60)


def _escaped(path: Path) -> str:
    """A path as xorriso's graft points have it."""
    if "\n" in str(path):
        raise ImageError(f"{str(path)!r} has a line break in its name")
    return str(path).replace("\\", "\\\\").replace("=", "\\=")


def _place(path: Path) -> None:
    path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)

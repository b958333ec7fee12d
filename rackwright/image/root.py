"""A tree as one compressed tar, which the agent of `rackwright install` unpacks onto a node's disks or into its memory.

POSIX format, since GNU tar keeps extended attributes, file capabilities among them, in no other.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rackwright.errors import LabError
from rackwright.lab.boot_disk import default_first, grub_settings, installed_kernels
from rackwright.lab.process import run
from rackwright.model.cluster import Node
from rackwright.model.install import Encryption, Volumes

NAME = "root.tar.zst"
PROGRAMS = ("tar", "zstd")
_LOADERS = ("usr/lib/shim/shimx64.efi.signed", "usr/lib/grub/x86_64-efi-signed/grubx64.efi.signed")
_NOT_IN_TREE = ("dev", "proc", "run", "sys", "tmp")
"""Folders whose content is the running system's; they stay, empty."""
_SECONDS = 1800.0


def write_root(tree: Path, target: Path) -> str:
    """Write the archive of a tree and return the release of the kernel that boots by default.

    Raises LabError where the tree has no kernel or boot loader.
    """
    kernel = default_first(installed_kernels(tree), grub_settings(tree).get("GRUB_DEFAULT", ""))[0]
    if missing := [f"/{path}" for path in _LOADERS if not (tree / path).is_file()]:
        raise LabError(
            f"{tree} has no boot loader: {', '.join(missing)}",
            hint="packages shim-signed and grub-efi-amd64-signed have them",
        )
    argv = ["tar", "--create", "--format=posix", "--pax-option=delete=atime,delete=ctime", "--numeric-owner"]
    argv += ["--sort=name", "--xattrs", "--xattrs-include=*", "--warning=no-file-ignored"]
    argv += [f"--exclude=./{name}/*" for name in _NOT_IN_TREE]
    argv += ["--use-compress-program=zstd --threads=0 -10", f"--file={target}", f"--directory={tree}", "."]
    run(argv, timeout=_SECONDS)
    return kernel


def layout_packages(nodes: Sequence[Node]) -> tuple[str, ...]:
    """Packages without which some of the nodes could not boot from the disks that they declare."""
    found: set[str] = set()
    for node in nodes:
        install = node.install
        if install is None or install.diskless:
            continue
        if install.mirror:
            found.add("mdadm")
        if install.volumes is Volumes.LVM:
            found.add("lvm2")
        if install.encryption is not Encryption.NONE:
            # Debian's initramfs-tools unlocks by clevis; it cannot use what systemd-cryptenroll enrols
            found |= {"cryptsetup-initramfs", "clevis-luks", "clevis-initramfs"}
        if install.encryption is Encryption.TPM2:
            found.add("clevis-tpm2")
    return tuple(sorted(found))


def layout_command(packages: tuple[str, ...]) -> str:
    """The command that installs them in a tree."""
    apt = "DEBIAN_FRONTEND=noninteractive apt-get -q -y --no-install-recommends"
    return f"{apt} update && {apt} install {' '.join(packages)}"

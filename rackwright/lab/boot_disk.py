"""A bootable disk out of a tree of files: UEFI, GPT, Debian's signed boot loader; without a loop device or a mount.

The EFI partition holds Debian's signed shim and grub. That grub reads EFI/debian/grub.cfg beside it, which
finds the root file system by its UUID and goes on with the root's own /boot/grub/grub.cfg, so that
update-grub on the node decides what boots from then on.
"""

import os
import re
import shlex
import tempfile
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rackwright.errors import LabError
from rackwright.lab.process import require, run

DISK, KERNEL = "disk.qcow2", "vmlinuz"
"""A boot image is a folder: the disk, its kernel to try the host's KVM with, and etc/ with the accounts."""

_MIB = 1 << 20
_ESP_START, _ESP_SIZE = 1, 64
_ROOT_START = _ESP_START + _ESP_SIZE
_GPT_END = 1
"""MiB. The second copy of the partition table is at the disk's end."""
_ROOT_TYPE = "4F68BCE3-E8CD-4DB1-96E7-FBCAF984B709"
"""Root of x86-64: the Discoverable Partitions Specification of the UAPI group, read 2026-11-23."""

PROGRAMS = ("mke2fs", "sfdisk", "mformat", "mmd", "mcopy", "qemu-img")
"""What making a disk needs of this host."""
_LOADERS = {
    "usr/lib/shim/shimx64.efi.signed": "EFI/BOOT/BOOTX64.EFI",
    "usr/lib/shim/mmx64.efi.signed": "EFI/BOOT/mmx64.efi",
    "usr/lib/grub/x86_64-efi-signed/grubx64.efi.signed": "EFI/BOOT/grubx64.efi",
}
_TIMEOUT = 600


@dataclass(frozen=True, slots=True)
class BootDisk:
    """What was made."""

    root_uuid: str
    kernel: str
    """The release of the kernel that boots by default."""


def make_boot_disk(tree: Path, target: Path, size_gib: int) -> BootDisk:
    """Make the qcow2 image `target` from a tree, which gets its fstab and its first grub.cfg.

    Raises LabError where the tree has no kernel or boot loader, or does not fit.
    """
    require(PROGRAMS)
    settings = grub_settings(tree)
    kernels = default_first(installed_kernels(tree), settings.get("GRUB_DEFAULT", ""))
    _require_loaders(tree)
    root_uuid = str(uuid.uuid4())
    _write(tree / "etc/fstab", fstab(root_uuid))
    _write(tree / "boot/grub/grub.cfg", grub_config(root_uuid, kernels, arguments_of(settings)))
    (tree / "boot/efi").mkdir(parents=True, exist_ok=True)
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{target.name}.", dir=target.parent) as staging:
        raw, unfinished = Path(staging, "disk.raw"), Path(staging, "disk.qcow2")
        _partition(raw, size_gib)
        _fill_esp(tree, raw, root_uuid, Path(staging))
        _fill_root(tree, raw, root_uuid, size_gib)
        run(["qemu-img", "convert", "-O", "qcow2", str(raw), str(unfinished)], timeout=_TIMEOUT)
        unfinished.replace(target)
    return BootDisk(root_uuid, kernels[0])


def installed_kernels(tree: Path) -> list[str]:
    """Releases of the kernels that a tree can boot, the newest first; LabError for a tree without any."""
    found = [
        path.name.removeprefix("vmlinuz-")
        for path in (tree / "boot").glob("vmlinuz-*")
        if (tree / "boot" / f"initrd.img-{path.name.removeprefix('vmlinuz-')}").is_file()
    ]
    if not found:
        raise LabError(
            f"{tree} has no kernel with an initramfs below /boot",
            hint="a boot disk is made from a tree for virtual machines or bare metal",
        )
    return sorted(found, key=_by_version, reverse=True)


def fstab(root_uuid: str) -> str:
    """/etc/fstab of the node."""
    return (
        f"UUID={root_uuid} / ext4 defaults,errors=remount-ro 0 1\n"
        "LABEL=ESP /boot/efi vfat umask=0077,nofail 0 1\n"
    )


def grub_config(root_uuid: str, kernels: Sequence[str], arguments: str) -> str:
    """The first /boot/grub/grub.cfg, with entries as update-grub words them; update-grub replaces it."""
    first = f"Debian GNU/Linux, with Linux {kernels[0]}"
    lines = ["# until update-grub runs on the node", f'set default="{first}"', "set timeout=0"]
    for kernel in kernels:
        lines += [
            f"menuentry 'Debian GNU/Linux, with Linux {kernel}' --class gnu-linux {{",
            f"\tsearch --no-floppy --fs-uuid --set=root {root_uuid}",
            f"\tlinux\t/boot/vmlinuz-{kernel} root=UUID={root_uuid} ro {arguments}".rstrip(),
            f"\tinitrd\t/boot/initrd.img-{kernel}",
            "}",
        ]
    return "\n".join(lines) + "\n"


def _by_version(release: str) -> list[tuple[int, str]]:
    return [
        (int(part), "") if part.isdigit() else (-1, part) for part in re.findall(r"\d+|[^\d.+~-]+", release)
    ]


def default_first(kernels: Sequence[str], default: str) -> list[str]:
    """Kernels with the one first that GRUB_DEFAULT names, e.g. `...>Debian GNU/Linux, with Linux 6.1.0-50-amd64`."""
    return sorted(kernels, key=lambda kernel: not default.endswith(f"with Linux {kernel}"))


def grub_settings(tree: Path) -> dict[str, str]:
    """Settings as update-grub reads them from /etc/default/grub and its folder."""
    values: dict[str, str] = {}
    for path in (tree / "etc/default/grub", *sorted((tree / "etc/default/grub.d").glob("*.cfg"))):
        if path.is_file():
            values = assignments(path.read_text(errors="replace"), values)
    return values


def arguments_of(settings: Mapping[str, str]) -> str:
    """Both lists in the order of update-grub, without what our file removes: no shell is run here."""
    names = ("GRUB_CMDLINE_LINUX", "GRUB_CMDLINE_LINUX_DEFAULT")
    words = " ".join(settings.get(name, "") for name in names).split()
    removed = settings.get("RACKWRIGHT_REMOVE", "").split()
    return " ".join(word for word in words if word.partition("=")[0] not in removed)


def assignments(text: str, before: Mapping[str, str]) -> dict[str, str]:
    """The assignments of a file of shell variables; `$NAME` and `${NAME}` in them are replaced."""
    values = dict(before)
    for line in text.splitlines():
        name, equals, value = line.strip().partition("=")
        if equals and re.fullmatch(r"[A-Z_]+", name):
            plain = " ".join(shlex.split(value, comments=True))
            values[name] = re.sub(r"\$\{?([A-Z_]+)\}?", lambda match: values.get(match[1], ""), plain).strip()
    return values


def _require_loaders(tree: Path) -> None:
    missing = [f"/{path}" for path in _LOADERS if not (tree / path).is_file()]
    if missing:
        raise LabError(
            f"{tree} has no boot loader: {', '.join(missing)}",
            hint="packages shim-signed and grub-efi-amd64-signed have them",
        )


def _partition(raw: Path, size_gib: int) -> None:
    with raw.open("wb") as disk:
        disk.truncate(size_gib * 1024 * _MIB)
    table = (
        "label: gpt\n"
        f"start={_ESP_START}MiB, size={_ESP_SIZE}MiB, type=uefi, name=esp\n"
        f"start={_ROOT_START}MiB, type={_ROOT_TYPE}, name=root\n"
    )
    run(["sfdisk", "--quiet", str(raw)], timeout=60, stdin=table)


def _fill_esp(tree: Path, raw: Path, root_uuid: str, staging: Path) -> None:
    image = f"{raw}@@{_ESP_START * _MIB}"  # mtools(1): a file system that begins inside a file
    run(["mformat", "-i", image, "-F", "-v", "ESP", "-T", str(_ESP_SIZE * _MIB // 512), "::"], timeout=60)
    for folder in ("EFI", "EFI/BOOT", "EFI/debian"):
        run(["mmd", "-i", image, f"::/{folder}"], timeout=60)
    for source, target in _LOADERS.items():
        run(["mcopy", "-i", image, str(tree / source), f"::/{target}"], timeout=60)
    config = staging / "grub.cfg"
    config.write_text(
        f"search.fs_uuid {root_uuid} root\nset prefix=($root)/boot/grub\nconfigfile $prefix/grub.cfg\n"
    )
    run(["mcopy", "-i", image, str(config), "::/EFI/debian/grub.cfg"], timeout=60)


def _fill_root(tree: Path, raw: Path, root_uuid: str, size_gib: int) -> None:
    size_kib = (size_gib * 1024 - _ROOT_START - _GPT_END) * 1024
    # grub of Debian 12 cannot read a file system with metadata_csum_seed, which newer mke2fs turn on
    options = ["-t", "ext4", "-O", "^metadata_csum_seed", "-U", root_uuid, "-L", "root"]
    options += ["-E", f"offset={_ROOT_START * _MIB},nodiscard,lazy_itable_init=1", "-d", str(tree)]
    try:
        run(["mke2fs", "-q", "-F", *options, str(raw), f"{size_kib}k"], timeout=_TIMEOUT)
    except LabError as error:
        used = sum(
            os.lstat(Path(folder, name)).st_blocks * 512
            for folder, _, files in os.walk(tree)
            for name in files
        )
        raise LabError(
            f"no file system of {size_gib} GiB could be made of {tree}, which has {used / 1024**3:.1f} GiB: {error.message}",
            hint=f"a disk of {size_gib * 2} GiB, if it does not fit",
        ) from None


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o644)

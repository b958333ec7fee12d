"""Partitions, arrays and volumes of an installation, as a readable list of commands."""

from __future__ import annotations

from dataclasses import dataclass

from rackwright.install.agent.order import Order
from rackwright.install.agent.signatures import partition

ESP_MIB, BOOT_MIB = 512, 1024
# Types: UEFI specification 2.10, Discoverable Partitions Specification of the UAPI group, Linux-specific types of sfdisk.
_ESP = "C12A7328-F81F-11D2-BA4B-00A0C93EC93B"
_ROOT = "4F68BCE3-E8CD-4DB1-96E7-FBCAF984B709"
_LINUX = "0FC63DAF-8483-4772-8E79-3D69D8477DE4"
_RAID = "A19D880F-05FC-4D3B-A006-743F0F84911E"
_LVM = "E6D6D379-F507-44C2-A23C-238F2A3DF928"
_LUKS = "CA7D7CCB-63ED-4C53-861C-1742536059CC"
_ROOT_ARRAY, _BOOT_ARRAY = "/dev/md0", "/dev/md1"
CRYPT = "root_crypt"
"""Name of the unlocked root in /etc/crypttab."""
_FORMAT_SECONDS, _ARRAY_SECONDS = 600.0, 1800.0


@dataclass(frozen=True, slots=True)
class Command:
    """One command; `otherwise` runs if it fails, and `secret` goes to its stdin."""

    argv: tuple[str, ...]
    seconds: float = 120.0
    secret: bool = False
    otherwise: tuple[str, ...] | None = None


def has_boot(order: Order) -> bool:
    """Whether /boot is a separate file system, because the boot loader may be unable to read the root."""
    return order.lvm or order.encryption is not None


def names(order: Order) -> list[str]:
    """Partition names of a finished installation, without the disk number."""
    return ["esp", "boot", "root"] if has_boot(order) else ["esp", "root"]


def table(order: Order) -> str:
    """The partition table of each disk, for sfdisk."""
    if order.mirror:
        boot = root = _RAID
    else:
        boot, root = _LINUX, _LUKS if order.encryption else _LVM if order.lvm else _ROOT
    name = order.unfinished
    lines = ["label: gpt", f"size={ESP_MIB}MiB, type={_ESP}, name={name}"]
    if has_boot(order):
        lines.append(f"size={BOOT_MIB}MiB, type={boot}, name={name}")
    return "\n".join([*lines, f"type={root}, name={name}"]) + "\n"


def esps(order: Order) -> list[str]:
    """Devices of the EFI partitions, one on each disk."""
    return [partition(disk.path, 1) for disk in order.disks]


def boot_device(order: Order) -> str | None:
    """Device of the /boot file system; None: part of the root."""
    if not has_boot(order):
        return None
    return _BOOT_ARRAY if order.mirror else partition(order.disks[0].path, 2)


def crypt_device(order: Order) -> str:
    """Device that holds the root, its volume group, or its encryption."""
    return _ROOT_ARRAY if order.mirror else _parts(order, len(names(order)))[0]


def root_device(order: Order) -> str:
    """Device of the root file system."""
    if order.lvm:
        return f"/dev/mapper/{group(order)}-root"
    return f"/dev/mapper/{CRYPT}" if order.encryption else crypt_device(order)


def group(order: Order) -> str:
    """Name of the volume group: unique to this run, so that it differs from one on another disk."""
    return f"system_{order.run}"


def wipe(disk: str, partitions: list[str]) -> list[Command]:
    """Remove the approved contents: partitions first, so that the table survives an interruption."""
    return [Command(("wipefs", "--all", "--force", device)) for device in [*partitions, disk]]


def volumes(order: Order) -> list[Command]:
    """From partitions to the devices that get a file system."""
    found: list[Command] = []
    if order.mirror:
        found.append(_array(_ROOT_ARRAY, "root", _parts(order, len(names(order)))))
        if has_boot(order):
            found.append(_array(_BOOT_ARRAY, "boot", _parts(order, 2)))
    inner = crypt_device(order)
    if order.encryption:
        # the recovery key is random, so a slow derivation (a gigabyte of memory) would gain nothing
        keyed = ("--batch-mode", "--key-file=-")
        derived = ("--pbkdf", "pbkdf2")
        found.append(
            Command(("cryptsetup", "luksFormat", "--type", "luks2", *derived, *keyed, inner), secret=True)
        )
        found.append(Command(("cryptsetup", "open", *keyed, inner, CRYPT), secret=True))
        inner = f"/dev/mapper/{CRYPT}"
    if order.lvm:
        found.append(Command(("pvcreate", "--yes", "--zero", "y", "--devices", inner, inner)))
        found.append(Command(("vgcreate", "--yes", "--devices", inner, group(order), inner)))
        # keep a fifth free for snapshots and site volumes
        size = ("--extents", "80%VG", "--wipesignatures", "y", "--yes")
        found.append(Command(("lvcreate", *size, "--devices", inner, "--name", "root", group(order))))
    return found


def file_systems(order: Order) -> list[Command]:
    """A file system on each device."""
    # GRUB of Debian 12 cannot read metadata_csum_seed, which newer mke2fs enables
    ext4 = ("mkfs.ext4", "-q", "-F", "-O", "^metadata_csum_seed")
    found = [Command((*ext4, "-L", "root", root_device(order)), _FORMAT_SECONDS)]
    if (boot := boot_device(order)) is not None:
        found.append(Command((*ext4, "-L", "boot", boot), _FORMAT_SECONDS))
    return found + [Command(("mkfs.vfat", "-F", "32", "-n", "ESP", esp)) for esp in esps(order)]


def release(order: Order) -> list[Command]:
    """Release the devices, so that the tables can be written."""
    found: list[Command] = []
    if order.lvm:
        found.append(Command(("vgchange", "--activate", "n", group(order))))
    if order.encryption:
        found.append(Command(("cryptsetup", "close", CRYPT)))
    if order.mirror:
        arrays = [_ROOT_ARRAY, *([_BOOT_ARRAY] if has_boot(order) else [])]
        found += [Command(("mdadm", "--stop", array)) for array in arrays]
    return found


def rename(order: Order) -> list[Command]:
    """The last step: give the partitions their final names."""
    return [
        Command(("sfdisk", "--part-label", disk.path, str(place + 1), f"{name}{number}"))
        for number, disk in enumerate(order.disks)
        for place, name in enumerate(names(order))
    ]


def _parts(order: Order, number: int) -> list[str]:
    return [partition(disk.path, number) for disk in order.disks]


def _array(device: str, name: str, members: list[str]) -> Command:
    argv: tuple[str, ...] = (
        "mdadm",
        "--create",
        device,
        "--run",
        "--level=1",
        "--metadata=1.2",
        "--homehost=any",
    )
    argv = (*argv, f"--name={name}", "--bitmap=internal", f"--raid-devices={len(members)}")
    # drives that support discard need no initial sync, which takes hours
    return Command((*argv, "--write-zeroes", *members), _ARRAY_SECONDS, otherwise=(*argv, *members))

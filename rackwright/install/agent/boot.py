"""Makes the installed disk bootable: the image's signed boot loader as plain files, and its configuration."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rackwright.errors import LabError
from rackwright.install.agent import layout, tree
from rackwright.install.agent.disks import TARGET
from rackwright.install.agent.order import Order
from rackwright.install.agent.programs import AgentError, log, run
from rackwright.lab.boot_disk import arguments_of, default_first, grub_settings, installed_kernels

_SHIM = "/usr/lib/shim/shimx64.efi.signed"
_KEY_MANAGER = "/usr/lib/shim/mmx64.efi.signed"
_GRUB = "/usr/lib/grub/x86_64-efi-signed/grubx64.efi.signed"
_FOLDERS = {"EFI/BOOT": "BOOTX64.EFI", "EFI/debian": "shimx64.efi"}
"""EFI folder -> name of shim in it: the fallback path on any disk, and the path of the firmware's boot entry."""
ENTRY = "rackwright"
"""Label of the firmware's boot entries."""
_SETTINGS = "/etc/default/grub.d/05-rackwright-install.cfg"


@dataclass(frozen=True, slots=True)
class Places:
    """File systems by UUID, and the kernel's root= argument."""

    root: str
    boot: str | None
    esp: str
    root_argument: str


def places(order: Order) -> Places:
    """Reads the UUIDs of the new file systems."""
    boot, device = layout.boot_device(order), layout.root_device(order)
    root = uuid_of(device)
    # initramfs-tools activates a logical volume or an encrypted device that root= names by its device alone
    argument = device if device.startswith("/dev/mapper/") else f"UUID={root}"
    return Places(root, uuid_of(boot) if boot else None, uuid_of(layout.esps(order)[0]), argument)


def uuid_of(device: str) -> str:
    """UUID of a file system or its container; AgentError if there is none."""
    found = run(["blkid", "--probe", "--match-tag", "UUID", "--output", "value", device]).strip()
    if not found:
        raise AgentError(f"{device} has no UUID")
    return found


def fstab(where: Places) -> str:
    """/etc/fstab: a node boots without its EFI partition, which a mirror's second disk replaces."""
    lines = [f"UUID={where.root} / ext4 defaults,errors=remount-ro 0 1"]
    if where.boot is not None:
        lines.append(f"UUID={where.boot} /boot ext4 defaults 0 2")
    lines.append(f"UUID={where.esp} /boot/efi vfat umask=0077,nofail 0 1")
    return "\n".join(lines) + "\n"


def arrays(scanned: str) -> str:
    """/etc/mdadm/mdadm.conf; `scanned` as mdadm --detail --scan prints it."""
    return f"HOMEHOST <ignore>\nMAILADDR root\n{scanned.strip()}\n"


def arguments(image: str, ordered: str) -> str:
    """The kernel's command line: the image's arguments, then those of the order; the last duplicate wins."""
    words = [*image.split(), *ordered.split()]
    return " ".join(word for place, word in enumerate(words) if word not in words[place + 1 :])


def grub_config(where: Places, kernels: Sequence[str], command_line: str) -> str:
    """The first grub.cfg, with entries named as update-grub names them; update-grub replaces it."""
    folder = "/boot" if where.boot is None else ""
    first = f"Debian GNU/Linux, with Linux {kernels[0]}"
    lines = ["# until update-grub runs on the node", f'set default="{first}"', "set timeout=0"]
    for kernel in kernels:
        lines += [
            f"menuentry 'Debian GNU/Linux, with Linux {kernel}' --class gnu-linux {{",
            f"\tsearch --no-floppy --fs-uuid --set=root {where.boot or where.root}",
            f"\tlinux\t{folder}/vmlinuz-{kernel} root={where.root_argument} ro {command_line}".rstrip(),
            f"\tinitrd\t{folder}/initrd.img-{kernel}",
            "}",
        ]
    return "\n".join(lines) + "\n"


def esp_config(where: Places) -> str:
    """grub.cfg of an EFI partition: loads the one that update-grub writes."""
    folder = "/boot/grub" if where.boot is None else "/grub"
    uuid = where.boot or where.root
    return f"search.fs_uuid {uuid} root\nset prefix=($root){folder}\nconfigfile $prefix/grub.cfg\n"


def write_texts(order: Order, where: Places) -> None:
    """Writes fstab, arrays, and the boot loader's configuration in /boot."""
    tree.put(TARGET, "/etc/fstab", fstab(where))
    if order.mirror:
        tree.put(TARGET, "/etc/mdadm/mdadm.conf", arrays(run(["mdadm", "--detail", "--scan"])))
    # update-grub on the node keeps what was ordered
    tree.put(TARGET, _SETTINGS, f'GRUB_CMDLINE_LINUX="$GRUB_CMDLINE_LINUX {order.kernel_arguments}"\n')
    try:
        settings = grub_settings(Path(TARGET))
        kernels = default_first(installed_kernels(Path(TARGET)), settings.get("GRUB_DEFAULT", ""))
    except LabError as error:
        raise AgentError(f"the image is not bootable: {error.message}") from None
    line = arguments(arguments_of(settings), order.kernel_arguments)
    tree.put(TARGET, "/boot/grub/grub.cfg", grub_config(where, kernels, line))


def write_loaders(order: Order, where: Places) -> None:
    """Install the signed boot loader on each disk's EFI partition, and add boot entries to the firmware."""
    for path in (_SHIM, _GRUB):
        if not os.path.isfile(TARGET + path):
            raise AgentError(f"the image lacks {path}: build it with shim-signed and grub-efi-amd64-signed")
    os.makedirs(f"{TARGET}/boot/efi", exist_ok=True)
    for esp in layout.esps(order):
        run(["mount", esp, f"{TARGET}/boot/efi"])
        for folder, shim in _FOLDERS.items():
            place = f"{TARGET}/boot/efi/{folder}"
            os.makedirs(place, exist_ok=True)
            shutil.copyfile(TARGET + _SHIM, f"{place}/{shim}")
            shutil.copyfile(TARGET + _GRUB, f"{place}/grubx64.efi")
            if os.path.isfile(TARGET + _KEY_MANAGER):
                shutil.copyfile(TARGET + _KEY_MANAGER, f"{place}/mmx64.efi")
            Path(place, "grub.cfg").write_text(esp_config(where))
        run(["umount", f"{TARGET}/boot/efi"])
    _entries(order)


def old_entries(text: str) -> list[str]:
    """Numbers of boot entries from earlier installations, in the output of efibootmgr."""
    found = []
    for line in text.splitlines():
        number, _, rest = line.partition(" ")
        label = rest.split("\t")[0].strip()
        if number.startswith("Boot") and label in (ENTRY, f"{ENTRY} 2"):
            found.append(number[4:8])
    return found


def _entries(order: Order) -> None:
    # Best effort: without a boot entry, the firmware falls back to EFI/BOOT on the disk.
    try:
        for number in old_entries(run(["efibootmgr"])):
            run(["efibootmgr", "--quiet", "--delete-bootnum", "--bootnum", number])
        labels = [ENTRY, f"{ENTRY} 2"]
        for label, disk in reversed(list(zip(labels, order.disks, strict=False))):  # each becomes the first
            where = ["--disk", disk.path, "--part", "1", "--loader", r"\EFI\debian\shimx64.efi"]
            run(["efibootmgr", "--quiet", "--create", "--label", label, *where])
    except AgentError as error:
        log(f"cannot add a boot entry to the firmware: {error}")

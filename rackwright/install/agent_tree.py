"""Contents of the agent's initramfs: packages, the parts of them to keep, kernel modules, and its init."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path

from rackwright.errors import ImageError
from rackwright.install.agent.guard import CONFIG
from rackwright.install.agent.network import LEASE, LEASE_SCRIPT
from rackwright.install.cpio import Entry
from rackwright.node_programs import package_files

PACKAGES = (
    "busybox-static",  # udhcpc and switch_root
    "cryptsetup-bin",
    "dosfstools",
    "e2fsprogs",
    "efibootmgr",
    "fdisk",
    "grub-efi-amd64-signed",
    "iproute2",
    "kmod",
    "linux-image-amd64",
    "lvm2",
    "mdadm",
    "mount",
    "nvme-cli",
    "python3",
    "shim-signed",
    "udev",
    "zstd",
)
DPKG_OPTIONS = (
    "force-unsafe-io",
    *(f"path-exclude=/usr/share/{name}/*" for name in ("doc", "locale", "man")),
)
ENTRY = "rackwright.install.agent.main"
_CODE = "usr/lib/rackwright"

# Arrays and volumes of other systems are not assembled, so they are not in use and nothing writes to them.
_PRUNED = (
    "usr/lib/udev/rules.d/64-md-raid-assembly.rules",
    "usr/lib/udev/rules.d/69-*.rules",
    "boot/*",
    "dev/*",
    "etc/apt",
    "etc/initramfs-tools",
    "etc/kernel",
    "etc/systemd",
    "usr/bin/apt*",
    "usr/bin/deb*",
    "usr/bin/dpkg*",
    "usr/bin/perl*",
    "usr/games",
    "usr/include",
    "usr/lib/apt",
    "usr/lib/dpkg",
    "usr/lib/grub",
    "usr/lib/linux-image-*",
    "usr/lib/python3",
    "usr/lib/shim",
    "usr/lib/systemd/system",
    "usr/lib/systemd/user",
    "usr/lib/udev/hwdb.*",
    "usr/lib/python3.*/ensurepip",
    "usr/lib/python3.*/idlelib",
    "usr/lib/python3.*/lib-dynload/_sqlite3*",
    "usr/lib/python3.*/pydoc_data",
    "usr/lib/python3.*/test",
    "usr/lib/python3.*/tkinter",
    "usr/lib/python3.*/unittest",
    "usr/lib/python3.*/_pyrepl",
    "usr/lib/python3.*/xmlrpc",
    "usr/lib/x86_64-linux-gnu/gconv",
    "usr/lib/x86_64-linux-gnu/libapt-*",
    "usr/lib/x86_64-linux-gnu/libsqlite3*",
    "usr/lib/x86_64-linux-gnu/perl*",
    "usr/share/[!b]*",
    "usr/share/bash-completion",
    "usr/share/bug",
    "var/cache/*",
    "var/lib/*",
    "var/log/*",
)

# Storage and network drivers of servers; those that need firmware from non-free-firmware are left out.
_MODULES = (
    "crypto",
    "drivers/ata",
    "drivers/block/virtio_blk",
    "drivers/char/tpm",
    "drivers/md",
    "drivers/message/fusion",
    "drivers/net/ethernet/amazon",
    "drivers/net/ethernet/aquantia",
    "drivers/net/ethernet/broadcom/bnxt",
    "drivers/net/ethernet/broadcom/tg3",
    "drivers/net/ethernet/chelsio/cxgb4/",
    "drivers/net/ethernet/emulex",
    "drivers/net/ethernet/intel",
    "drivers/net/ethernet/mellanox/mlx4",
    "drivers/net/ethernet/mellanox/mlx5",
    "drivers/net/ethernet/realtek/r8169",
    "drivers/net/virtio_net",
    "drivers/net/vmxnet3",
    "drivers/net/hyperv",
    "drivers/hv",
    "drivers/nvme/host",
    "drivers/scsi/aacraid",
    "drivers/scsi/hpsa",
    "drivers/scsi/hv_storvsc",
    "drivers/scsi/megaraid",
    "drivers/scsi/mpi3mr",
    "drivers/scsi/mpt3sas",
    "drivers/scsi/sd_mod",
    "drivers/scsi/smartpqi",
    "drivers/scsi/virtio_scsi",
    "drivers/scsi/vmw_pvscsi",
    "drivers/virtio",
    "fs/efivarfs",
    "fs/ext4",
    "fs/fat",
    "fs/nls",
    "net/8021q",
    "arch/x86/crypto",
)

INIT = f"""\
#!/bin/sh
# The first program of the agent's initramfs.
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs dev /dev
mkdir -p /dev/pts
mount -t devpts devpts /dev/pts
ln -s /proc/self/fd /dev/fd
for number in 0 1 2; do ln -s "/proc/self/fd/$number" "/dev/$(echo stdin stdout stderr | cut -d' ' -f$((number + 1)))"; done
mount -t tmpfs -o mode=755 run /run
mount -t tmpfs -o mode=1777 tmp /tmp
mkdir -p /run/rackwright
echo 3 >/proc/sys/kernel/printk
# the head has an IPv4 address: routers of other networks are not listened to
for place in all default; do echo 1 >"/proc/sys/net/ipv6/conf/$place/disable_ipv6"; done 2>/dev/null
/usr/lib/systemd/systemd-udevd --daemon
udevadm trigger --type=subsystems --action=add
udevadm trigger --type=devices --action=add
udevadm settle --timeout=60
for module in ext4 vfat nls_cp437 nls_ascii nls_iso8859-1 nls_utf8 raid1 dm-mod dm-crypt 8021q efivarfs; do
    modprobe -q "$module"
done
mount -t efivarfs efivarfs /sys/firmware/efi/efivars 2>/dev/null
python3 -I -c 'import sys; sys.path.insert(0, "/{_CODE}"); from {ENTRY} import main; main()'
if [ -e /run/rackwright/switch ]; then
    udevadm control --exit
    for place in /sys/firmware/efi/efivars /dev/pts /tmp /run /sys /proc; do
        umount "$place" 2>/dev/null || umount -l "$place" 2>/dev/null
    done
    mount --move /dev /target/dev
    exec busybox switch_root -c /dev/console /target /sbin/init
fi
# only where the agent itself could not power the machine off
sleep 5
busybox poweroff -f
"""


def contents() -> dict[str, tuple[str, ...]]:
    """Text that identifies which parts of the packages are kept."""
    return {"pruned": _PRUNED, "modules": _MODULES, "dpkg": DPKG_OPTIONS}


def prune(tree: Path) -> None:
    """Remove what the agent does not need from a tree."""
    for pattern in _PRUNED:
        for path in tree.glob(pattern):
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink()
    for name in ("proc", "sys", "dev", "run", "tmp", "target"):
        (tree / name).mkdir(exist_ok=True)


def keep_modules(modules: Path) -> None:
    """Keep only the kernel modules that servers and virtual machines need, with their dependencies."""
    dependencies = read_dependencies((modules / "modules.dep").read_text())
    kept = closure(dependencies, wanted(dependencies))
    if not kept:
        raise ImageError(f"{modules} has none of the modules that the agent needs")
    for path in sorted((modules / "kernel").rglob("*.ko*")):
        if path.relative_to(modules).as_posix() not in kept:
            path.unlink()


def read_dependencies(text: str) -> dict[str, list[str]]:
    """Module -> its dependencies, from modules.dep(5)."""
    found = {}
    for line in text.splitlines():
        name, _, others = line.partition(":")
        found[name] = others.split()
    return found


def wanted(modules: Iterable[str]) -> set[str]:
    """Modules that the agent loads by name."""
    prefixes = tuple(f"kernel/{prefix}" for prefix in _MODULES)
    return {module for module in modules if module.startswith(prefixes)}


def closure(dependencies: Mapping[str, list[str]], modules: Iterable[str]) -> set[str]:
    """Modules with all their dependencies."""
    found: set[str] = set()
    left = list(modules)
    while left:
        module = left.pop()
        if module not in found:
            found.add(module)
            left += dependencies.get(module, [])
    return found


def code() -> list[Entry]:
    """The agent's modules, as entries of an archive that is unpacked over the tree."""
    files = {f"{_CODE}/{path}": text for path, text in package_files(ENTRY).items()}
    folders = {_CODE, CONFIG.strip("/").partition("/")[0]}
    for path in files:
        parent = Path(path).parent
        while parent.as_posix() != "usr/lib":
            folders.add(parent.as_posix())
            parent = parent.parent
    return [
        *(Entry(folder, None, 0o755) for folder in sorted(folders)),
        *(Entry(path, text.encode(), 0o644) for path, text in sorted(files.items())),
        Entry(LEASE_SCRIPT.strip("/"), LEASE.encode(), 0o755),
        Entry("init", INIT.encode(), 0o755),
    ]

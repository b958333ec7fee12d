"""What a Debian tree needs beside a container's to boot by itself: kernel, boot loader, seed, console.

Packages and paths: Debian's own packages (linux-image-amd64, shim-signed, grub-efi-amd64-signed,
initramfs-tools), their files read in a tree of Debian 12 and 13 (2026-11-23).
"""

BOOT_PACKAGES = (
    "linux-image-amd64",
    "initramfs-tools",
    "busybox",
    "zstd",
    "grub-efi-amd64-bin",
    "grub2-common",
    "grub-efi-amd64-signed",
    "shim-signed",
    "e2fsprogs",
)
"""grub-efi-amd64 itself is left out: its installation would run grub-install on the machine that builds."""

VM_PACKAGES = ("qemu-guest-agent",)

SEED_SERIAL = "rackwright-seed"
"""Serial of the disk that holds a virtual machine's identity: a plain tar from its first byte on."""
SEED_ID = "var/lib/rackwright/seed"
"""The tar's last member, and the node's file, with the seed's id: a seed is unpacked once for each id."""

# initramfs-tools(7): a script of init-bottom runs after the root is mounted, read-only, and before its init.
# The kernel shows a virtio-blk disk's serial in /sys/block/*/serial, and a SATA disk's in page 0x80 of its
# vital product data (SPC; libata makes that page of what the drive identifies itself as). The id is the tar's
# last member and every write waits for the disk, so that a seed whose unpacking a power cut ended is unpacked again.
SEED_SCRIPT = rf"""#!/bin/sh
# Gives this machine its identity: unpacks the tar on the disk with the serial {SEED_SERIAL}
# onto the root file system, once for each id that a tar has.
case "$1" in prereqs) echo; exit 0 ;; esac
. /scripts/functions

have=
[ ! -e "$rootmnt/{SEED_ID}" ] || have=$(cat "$rootmnt/{SEED_ID}")

has_serial() {{
    [ -r "$1/serial" ] && [ "$(cat "$1/serial")" = {SEED_SERIAL} ] && return
    busybox grep -q {SEED_SERIAL} "$1/device/vpd_pg80" 2>/dev/null
}}

# for hypervisors that give a disk no serial number; at most 64 MiB are read
has_seed() {{
    [ "$(cat "$1/size" 2>/dev/null || echo 131073)" -le 131072 ] &&
        busybox tar -tf "$2" 2>/dev/null | busybox grep -qx {SEED_ID}
}}

# A machine that has an identity takes another by the serial number alone: what is written to a disk
# later must not become root's files.
seed_disk() {{
    for block in /sys/block/*; do
        device=/dev/${{block##*/}}
        [ -b "$device" ] && has_serial "$block" && echo "$device" && return
    done
    [ -z "$have" ] || return
    for block in /sys/block/[shv]d*; do
        device=/dev/${{block##*/}}
        [ -b "$device" ] && has_seed "$block" "$device" && echo "$device" && return
    done
}}

udevadm settle --timeout=10 2>/dev/null || true
disk=$(seed_disk)
# a machine that never had an identity waits for its disk to be found
tries=30
while [ -z "$disk" ] && [ -z "$have" ] && [ "$tries" -gt 0 ]; do
    sleep 0.1
    tries=$((tries - 1))
    disk=$(seed_disk)
done
[ -n "$disk" ] || exit 0

id=$(busybox tar -xOf "$disk" {SEED_ID})
if [ -z "$id" ]; then
    log_warning_msg "$disk is not a seed: it has no file {SEED_ID}"
    exit 0
fi
[ "$id" != "$have" ] || exit 0

umask 022
if busybox mount -o remount,rw,sync "$rootmnt" && rm -f "$rootmnt/{SEED_ID}" &&
    busybox tar --numeric-owner -xf "$disk" -C "$rootmnt"; then
    log_success_msg "seed $id unpacked"
else
    rm -f "$rootmnt/{SEED_ID}"
    log_failure_msg "the seed on $disk could not be unpacked"
fi
busybox mount -o remount,ro,async "$rootmnt"
exit 0
"""

_SEED_PATH = "etc/initramfs-tools/scripts/init-bottom/rackwright-seed"

# The firmware's console is the serial port where a machine has no screen, so grub needs no driver for either.
# The empty machine-id keeps systemd from taking the first boot for one that enables every unit (machine-id(5)).
# Runs after the kernel is there; update-grub needs a disk and is run by the node itself, later.
BOOTABLE = """\
: >"$1"/etc/machine-id
cat >"$1"/etc/default/grub <<'END'
GRUB_DEFAULT=0
GRUB_TIMEOUT=0
GRUB_DISTRIBUTOR=Debian
GRUB_CMDLINE_LINUX_DEFAULT=""
GRUB_CMDLINE_LINUX="console=tty0 console=ttyS0,115200"
GRUB_TERMINAL=console
GRUB_DISABLE_OS_PROBER=true
END
mkdir -p "$1"/boot/efi
chroot "$1" systemctl enable systemd-networkd.service
"""

# A machine whose kernel panics boots again: one of qemu 7.2's without KVM panicked at boot, on a breakpoint that its other CPU
# had already removed from the kernel's code (a race of qemu's, Red Hat bug 2216496, read 2026-11-24).
VM = f"""\
mkdir -p "$1"/etc/default/grub.d
echo 'GRUB_CMDLINE_LINUX="$GRUB_CMDLINE_LINUX panic=30"' >"$1"/etc/default/grub.d/panic.cfg
echo 'Acquire::Languages "none";' >"$1"/etc/apt/apt.conf.d/lab
mkdir -p "$1"/etc/systemd/system/serial-getty@ttyS0.service.d
cat >"$1"/etc/systemd/system/serial-getty@ttyS0.service.d/lab.conf <<'END'
[Service]
ExecStart=
ExecStart=-/sbin/agetty --autologin root --noreset --keep-baud 115200,57600,38400,9600 --noclear - $TERM
END
cat >"$1"/{_SEED_PATH} <<'END_OF_SEED'
{SEED_SCRIPT}END_OF_SEED
chmod 755 "$1"/{_SEED_PATH}
chroot "$1" update-initramfs -u -k all
"""

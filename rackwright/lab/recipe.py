"""What base images are made of: a Debian tree for containers, for virtual machines, and for bare metal."""

import hashlib
import json
from dataclasses import asdict, dataclass
from enum import StrEnum

from rackwright.lab import sources
from rackwright.lab.boot_tree import BOOT_PACKAGES, BOOTABLE, VM, VM_PACKAGES
from rackwright.lab.spec import IMAGES


class Kind(StrEnum):
    """What a base tree is to run on."""

    CONTAINER = "container"
    VM = "vm"
    BARE_METAL = "bare-metal"


_PACKAGES = (
    "systemd-sysv",
    "openssh-server",
    "python3-minimal",
    "iproute2",
    "sudo",
    "dbus",
    "ca-certificates",
    "kmod",
    "udev",
    "procps",
    "iputils-ping",
)

# Run by mmdebstrap with the tree as $1. Identity (machine id, host keys, name) belongs to a node, never
# to an image. The timers would take dpkg's lock at any moment.
_GENERAL = """\
rm -f "$1"/etc/machine-id "$1"/var/lib/dbus/machine-id "$1"/etc/ssh/ssh_host_*
rm -f "$1"/etc/hostname "$1"/etc/resolv.conf "$1"/usr/sbin/policy-rc.d
"""
_TIMERS = """\
chroot "$1" systemctl disable apt-daily.timer apt-daily-upgrade.timer
"""

# No user of a node reads package descriptions, a third of the index. The masked generators look for what
# no container has (partitions to find, a kernel command line, a TPM), again at every daemon-reload.
_CONTAINER = """\
echo force-unsafe-io >"$1"/etc/dpkg/dpkg.cfg.d/lab
echo 'Acquire::Languages "none";' >"$1"/etc/apt/apt.conf.d/lab
mkdir -p "$1"/etc/systemd/system-generators
for generator in bless-boot debug gpt-auto hibernate-resume run system-update tpm2; do
    ln -s /dev/null "$1/etc/systemd/system-generators/systemd-$generator-generator"
done
"""

_KINDS = {
    Kind.CONTAINER: ((), _GENERAL + _CONTAINER + _TIMERS),
    Kind.VM: ((*BOOT_PACKAGES, *VM_PACKAGES), _GENERAL + _TIMERS + BOOTABLE + VM),
    Kind.BARE_METAL: (BOOT_PACKAGES, _GENERAL + _TIMERS + BOOTABLE),
}


@dataclass(frozen=True, slots=True)
class Recipe:
    """Everything a base image depends on; equal recipes make the same image."""

    suite: str
    sources: tuple[str, ...]
    packages: tuple[str, ...]
    apt_options: tuple[str, ...]
    customize: str

    @property
    def key(self) -> str:
        """Short name of the recipe's content."""
        content = json.dumps(asdict(self), sort_keys=True)
        return f"{self.suite}-{hashlib.sha256(content.encode()).hexdigest()[:12]}"


def recipe(image: str, kind: Kind = Kind.CONTAINER) -> Recipe:
    """The recipe of a base image on this machine."""
    suite = IMAGES[image]
    valid = sources.apt_setting("Acquire::Check-Valid-Until")
    # A machine that uses a frozen mirror must pass this on to its nodes, or their apt rejects the old date.
    options = ('Acquire::Check-Valid-Until "false"',) if valid == "false" else ()
    lines = sources.machine_mirrors().lines(suite)
    packages, customize = _KINDS[kind]
    return Recipe(suite, tuple(lines), (*_PACKAGES, *packages), options, customize)


def every_key() -> set[str]:
    """Keys of all base images that a recipe makes today."""
    return {recipe(image, kind).key for image in IMAGES for kind in Kind}

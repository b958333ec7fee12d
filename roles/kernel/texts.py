"""Paths on the node, and what is installed there: shared by the deploy and its checks."""

from __future__ import annotations

from shlex import quote

from rackwright.lock.kernel_packages import KernelPackages
from rackwright.model.cluster import Node
from rackwright.model.platforms import Capability, has
from rackwright.osfamily.family import KERNEL_SETTINGS
from rackwright.roles.kernel.options import Modules

MODPROBE = "/etc/modprobe.d/rackwright-kernel.conf"
MODULES_LOAD = "/etc/modules-load.d/rackwright-kernel.conf"
TMPFILES = "/etc/tmpfiles.d/rackwright-kernel.conf"
ACS = "/usr/local/sbin/rackwright-acs-off"
ACS_UNIT = "rackwright-acs-off.service"


def grub(folder: str) -> str:
    """Our file of GRUB's settings."""
    return f"{folder}/{KERNEL_SETTINGS}"


def earlier(folder: str) -> tuple[str, ...]:
    """Those that the roles gpudirect and nvidia_driver wrote before there was this role."""
    return f"{folder}/90-rackwright-gpudirect.cfg", f"{folder}/rackwright-kernel.cfg"


def packages(chosen: KernelPackages, node: Node) -> tuple[str, ...]:
    """The kernel and its headers; a container has no kernel to boot, and gets headers alone."""
    return tuple(
        package
        for package in chosen.packages
        if has(node.platform, Capability.KERNEL) or "-headers-" in package or "-devel-" in package
    )


def release(chosen: KernelPackages | None) -> str:
    """The kernel whose initramfs counts, as a shell word."""
    return quote(chosen.release) if chosen is not None else "$(uname -r)"


def sets_modprobe(modules: Modules) -> bool:
    """Whether modprobe has anything to read."""
    return bool(modules.options or modules.blacklist)

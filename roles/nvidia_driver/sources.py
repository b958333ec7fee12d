"""Where NVIDIA's repositories are, the keys they are trusted by, and what modules are called."""

from __future__ import annotations

from dataclasses import dataclass

from rackwright.lock.content import GroupLock
from rackwright.lock.for_roles import component
from rackwright.model.cluster import Node
from rackwright.model.platforms import Capability, has
from rackwright.model.types import Family, OsRelease

_BASE = "https://developer.download.nvidia.com/compute/cuda/repos"


@dataclass(frozen=True)
class Origin:
    """NVIDIA's repository for one OS release, on one CPU architecture."""

    url: str
    key_url: str
    fingerprint: str


# Fingerprints as public installation scripts and notes pin them, each found in at least two places that do
# not copy each other (read 2026-11-21); key files' names as the repositories have them. Not compared
# with the repositories themselves: a machine that reaches them has to.
_APT_2022 = ("3bf863cc.pub", "EB693B3035CD5710E231E123A4B469963BF863CC")
_APT_2025 = ("8793F200.pub", "02182E60104FCDC26EAE1B8597A5D4CB8793F200")
_RPM_2022 = ("D42D0685.pub", "610C7B14E068A878070DA4E99CD0A493D42D0685")

_REPOSITORIES: dict[OsRelease, tuple[str, tuple[str, str]]] = {
    OsRelease.DEBIAN_12: ("debian12", _APT_2022),
    OsRelease.DEBIAN_13: ("debian13", _APT_2025),
    OsRelease.UBUNTU_22_04: ("ubuntu2204", _APT_2022),
    OsRelease.UBUNTU_24_04: ("ubuntu2404", _APT_2022),
    OsRelease.ROCKY_9: ("rhel9", _RPM_2022),
    OsRelease.RHEL_9: ("rhel9", _RPM_2022),
}


def origin(os: OsRelease, cpu: str = "x86_64") -> Origin:
    """NVIDIA's repository for an OS release."""
    folder, (file, fingerprint) = _REPOSITORIES[os]
    url = f"{_BASE}/{folder}/{'sbsa' if cpu == 'aarch64' else cpu}/"
    return Origin(url, url + file, fingerprint)


# Of the release's usual kernel; the lock names exact ones where the tables know the release's kernels.
_HEADERS: dict[OsRelease, tuple[str, ...]] = {
    OsRelease.DEBIAN_12: ("linux-headers-amd64",),
    OsRelease.DEBIAN_13: ("linux-headers-amd64",),
    OsRelease.UBUNTU_22_04: ("linux-headers-generic",),
    OsRelease.UBUNTU_24_04: ("linux-headers-generic",),
    OsRelease.ROCKY_9: ("kernel-devel-matched", "kernel-headers"),
    OsRelease.RHEL_9: ("kernel-devel-matched", "kernel-headers"),
}


def usual_headers(os: OsRelease, cpu: str) -> tuple[str, ...]:
    """Packages of kernel headers where no kernel is locked."""
    return tuple(name.replace("amd64", "arm64") if cpu == "aarch64" else name for name in _HEADERS[os])


def kernel_packages(group: GroupLock, node: Node) -> tuple[str, ...]:
    """The locked kernel and its headers; a container has no kernel to boot, and gets headers alone."""
    return tuple(
        package
        for package in component(group, "kernel")
        if has(node.platform, Capability.KERNEL) or not package.startswith("linux-image-")
    )


def module_name(group: GroupLock) -> str:
    """What modprobe's options call the driver: Debian's packages install it under other names."""
    if group.source != "distribution" or group.os.family is not Family.DEBIAN:
        return "nvidia"
    package = next(name for name in group.components["modules"] if name.endswith("-dkms"))
    flavour = package.removeprefix("nvidia-").removesuffix("kernel-dkms").strip("-")
    return {"": "nvidia-current", "open": "nvidia-current-open"}.get(flavour, f"nvidia-{flavour}")

"""Where NVIDIA's repositories are, the keys they are trusted by, and what modules are called."""

from __future__ import annotations

from dataclasses import dataclass

from rackwright.lock.content import GroupLock
from rackwright.osfamily.known import OsRelease


@dataclass(frozen=True)
class Origin:
    """NVIDIA's repository for one OS release, on one CPU architecture."""

    url: str
    key_url: str
    fingerprint: str


def origin(os: OsRelease, cpu: str = "x86_64") -> Origin:
    """NVIDIA's repository for an OS release."""
    url = os.nvidia.url(cpu)
    return Origin(url, url + os.nvidia.key_file, os.nvidia.fingerprint)


def usual_headers(os: OsRelease, cpu: str) -> tuple[str, ...]:
    """Packages of kernel headers where no kernel is locked; the lock names exact ones where it can."""
    return os.headers(cpu)


def module_name(group: GroupLock) -> str:
    """What modprobe's options call the driver: Debian's packages install it under other names."""
    if group.source != "distribution" or not group.os.family.nvidia_modules_renamed:
        return "nvidia"
    package = next(name for name in group.components["modules"] if name.endswith("-dkms"))
    flavour = package.removeprefix("nvidia-").removesuffix("kernel-dkms").strip("-")
    return {"": "nvidia-current", "open": "nvidia-current-open"}.get(flavour, f"nvidia-{flavour}")

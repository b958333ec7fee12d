"""What a piece of software is called on an operating-system family: packages, unit, paths."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rackwright.osfamily.family import Family


# Command-line tools of a maintained node that every family calls the same
BASE_TOOLS = (
    "ca-certificates",
    "ethtool",
    "jq",
    "less",
    "lsof",
    "numactl",
    "pciutils",
    "psmisc",
    "rsync",
    "tzdata",
)
HARDWARE_TOOLS = ("dmidecode", "ipmitool", "nvme-cli", "smartmontools")


@dataclass(frozen=True)
class Names:
    """What one piece of software is called on a family."""

    packages: tuple[str, ...]
    """Empty where the family has none."""
    unit: str | None = None
    paths: dict[str, str] = field(default_factory=dict)
    settings: dict[str, str] = field(default_factory=dict)


BEEGFS_CLIENT = Names(("beegfs-client-dkms={version}",), paths={"sources": "/usr/src/beegfs-{upstream}*"})
BEEGFS_SERVER = Names(
    (),
    settings={
        "mgmtd": "beegfs-mgmtd",
        "meta": "beegfs-meta",
        "storage": "beegfs-storage",
        "rdma": "libbeegfs-ib",
    },
)


def names(family: Family, software: str) -> Names:
    """Packages, unit and paths of a piece of software on a family; KeyError if its table has no entry."""
    try:
        return family.software[software]
    except KeyError:
        raise KeyError(f"The software table of the family {family} has no entry {software!r}.") from None

"""The field's words as enums."""

from __future__ import annotations

from enum import StrEnum


class NodeRole(StrEnum):
    """What a node is for; a node may hold several."""

    HEAD = "head"
    WORKER = "worker"
    LOGIN = "login"
    STORAGE = "storage"


class Platform(StrEnum):
    """What a node is made of; decides what is out of scope there (rackwright.model.platforms)."""

    BARE_METAL = "bare-metal"
    VM = "vm"
    CONTAINER = "container"


class OsRelease(StrEnum):
    """Operating systems the roles support."""

    DEBIAN_12 = "debian-12"
    DEBIAN_13 = "debian-13"
    UBUNTU_22_04 = "ubuntu-22.04"
    UBUNTU_24_04 = "ubuntu-24.04"
    ROCKY_9 = "rocky-9"
    RHEL_9 = "rhel-9"

    @property
    def family(self) -> Family:
        """The family whose package names and paths apply."""
        return Family.EL if self in (OsRelease.ROCKY_9, OsRelease.RHEL_9) else Family.DEBIAN


class Family(StrEnum):
    """Operating-system families (package names, paths, package tool)."""

    DEBIAN = "debian"
    EL = "el"


class NetworkPurpose(StrEnum):
    """What a network carries."""

    MANAGEMENT = "management"
    STORAGE = "storage"
    FABRIC = "fabric"


class LinkKind(StrEnum):
    """Link layer of a network."""

    ETHERNET = "ethernet"
    INFINIBAND = "infiniband"
    ROCE = "roce"


class WorkloadManager(StrEnum):
    """Workload managers that rackwright can drain nodes in and submit jobs to (rackwright.workload)."""

    SLURM = "slurm"

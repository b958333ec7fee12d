"""Enumerations of the cluster model."""

from __future__ import annotations

from enum import StrEnum


class NodeRole(StrEnum):
    """What a node is for; a node may hold several."""

    HEAD = "head"
    WORKER = "worker"
    LOGIN = "login"
    STORAGE = "storage"


class Platform(StrEnum):
    """Kind of machine a node is; decides what is out of scope on it (rackwright.model.platforms)."""

    BARE_METAL = "bare-metal"
    VM = "vm"
    CONTAINER = "container"


class NetworkPurpose(StrEnum):
    """What a network carries."""

    MANAGEMENT = "management"
    STORAGE = "storage"
    FABRIC = "fabric"
    EXTERNAL = "external"
    """Users and the world outside; heads and login nodes have a port there."""


class LinkKind(StrEnum):
    """Link layer of a network."""

    ETHERNET = "ethernet"
    INFINIBAND = "infiniband"
    ROCE = "roce"


class WorkloadManager(StrEnum):
    """Workload managers that rackwright can drain nodes in and submit jobs to (rackwright.workload)."""

    SLURM = "slurm"

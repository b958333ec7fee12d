"""Enumerations of the cluster model."""

from __future__ import annotations

from enum import StrEnum


class NodeRole(StrEnum):
    """What a node is for; a node may have several roles."""

    HEAD = "head"
    WORKER = "worker"
    LOGIN = "login"
    STORAGE = "storage"


class Platform(StrEnum):
    """Kind of node; determines what is out of scope on it (rackwright.model.platforms)."""

    BARE_METAL = "bare-metal"
    VM = "vm"
    CONTAINER = "container"


class NetworkPurpose(StrEnum):
    """What a network carries."""

    MANAGEMENT = "management"
    STORAGE = "storage"
    FABRIC = "fabric"
    EXTERNAL = "external"
    """Users and the Internet; heads and login nodes have a port there."""
    BMC = "bmc"
    """Baseboard management controllers, out of band; only heads that query them have a port there."""


INNER_PURPOSES = frozenset(NetworkPurpose) - {NetworkPurpose.EXTERNAL, NetworkPurpose.BMC}
"""Whether only nodes of the cluster are on such networks."""


class LinkKind(StrEnum):
    """Link layer of a network, and its kind of RDMA."""

    ETHERNET = "ethernet"
    """Without RDMA."""
    INFINIBAND = "infiniband"
    ROCE = "roce"
    """RDMA over Converged Ethernet, version 2."""
    SPECTRUM_X = "spectrum-x"
    """RoCE with NVIDIA's adaptive routing: Spectrum-4 switches, BlueField-3 SuperNICs or ConnectX-8."""
    IWARP = "iwarp"
    EFA = "efa"
    """Amazon's Elastic Fabric Adapter."""

    @property
    def rdma(self) -> bool:
        """Whether nodes have RDMA devices on it."""
        return self is not LinkKind.ETHERNET

    @property
    def port(self) -> LinkKind:
        """The kind of port that a SKU has for it."""
        return LinkKind.ROCE if self is LinkKind.SPECTRUM_X else self

    @property
    def converged(self) -> bool:
        """Whether it is any kind of RoCE: the settings of a RoCE port apply."""
        return self in (LinkKind.ROCE, LinkKind.SPECTRUM_X)


class WorkloadManager(StrEnum):
    """Workload managers that rackwright can drain nodes in and submit jobs to (rackwright.workload)."""

    SLURM = "slurm"
    KUBERNETES = "kubernetes"
    RAY = "ray"
    SLURM_IN_PODS = "slurm-in-pods"
    """Slurm whose daemons are pods of Kubernetes, on nodes that Kubernetes drains too."""


class Workload(StrEnum):
    """What a group's nodes run jobs with: `workload:` in the cluster file."""

    SLURM = "slurm"
    KUBERNETES = "kubernetes"
    RAY = "ray"
    SLURM_ON_KUBERNETES = "slurm-on-kubernetes"
    """Kubernetes on the nodes, and Slurm's daemons in its pods."""

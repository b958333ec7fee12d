"""Slurm's daemons in pods: what the role with Slurm's options gives to the role that runs the pods."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rackwright.model.cluster import Cluster
    from rackwright.workload.slurm.records import Records

ETC = "/etc/slurm"
"""Where each container finds Slurm's files, as on a node."""


@dataclass(frozen=True)
class PodPlaces:
    """Names and addresses of the pods, as slurm.conf has them."""

    nodes: tuple[str, ...]
    """Nodes of the cluster file with a slurmd pod: their names are Slurm's NodeName."""
    domain: str | None
    """slurmd of a node answers at `NODE.DOMAIN`; None: at the node's management address."""
    controller: str
    """Host name of slurmctld's pod."""
    controller_address: str
    """DNS name of slurmctld's service."""
    accounting: str
    """Host name of slurmdbd's pod: slurmdbd refuses to start under another."""
    accounting_address: str
    """DNS name of slurmdbd's service."""
    database: str
    """DNS name of the database that runs as a pod."""


@dataclass(frozen=True)
class PodNode:
    """What a slurmd pod offers."""

    cpus: int
    memory_mib: int
    gres: str
    """As slurm.conf has it, e.g. `gpu:h100:8`; empty without GPUs."""
    gpus: int
    simulated: bool
    """Whether its GPUs are only counted."""
    partition: str | None
    """A partition that takes jobs and has this node."""


@dataclass(frozen=True)
class PodPartition:
    """A partition of nodes with slurmd pods."""

    nodes: tuple[str, ...]
    settings: str
    """Of its line in slurm.conf, without `PartitionName` and `Nodes`."""


@dataclass(frozen=True)
class Container:
    """One container of a pod."""

    namespace: str
    pod: str
    container: str


class RunsSlurmPods:
    """Options of the role that runs Slurm's daemons as pods."""

    @property
    def controller(self) -> Container | None:
        """Where slurmctld runs; None where an operator of the site runs the pods."""
        raise NotImplementedError


class RendersSlurm:
    """Options of the role that knows Slurm's settings; with `daemons: pods` its daemons run in pods of another role."""

    uid: int
    gid: int
    slurmctld_port: int
    slurmd_port: int
    slurmdbd_port: int
    spool_dir: str
    state_dir: str
    prune: bool

    @property
    def in_pods(self) -> bool:
        """Whether the daemons run in pods; otherwise they run on the nodes themselves."""
        raise NotImplementedError

    @property
    def storage_secret(self) -> str:
        """Name of the secret with the password of the accounting database."""
        raise NotImplementedError

    @property
    def storage(self) -> tuple[str, int, str, str]:
        """Host, port, name and user of the accounting database; the host is `localhost` where it runs as a pod."""
        raise NotImplementedError

    def pod_release(self, cluster: Cluster) -> tuple[int, int]:
        """Slurm's release in the image, e.g. (24, 11)."""
        raise NotImplementedError

    def pod_packages(self, cluster: Cluster) -> tuple[str, ...]:
        """Packages with all of Slurm's daemons and clients, by the names of the primary head's system."""
        raise NotImplementedError

    def pod_files(self, cluster: Cluster, places: PodPlaces) -> Mapping[str, str]:
        """Files of /etc/slurm by name. slurmdbd.conf lacks the line `StoragePass`: no secret is in any of them."""
        raise NotImplementedError

    def pod_nodes(self, cluster: Cluster, places: PodPlaces) -> Mapping[str, PodNode]:
        """Each slurmd pod, by the name of its node."""
        raise NotImplementedError

    def pod_records(self, cluster: Cluster, places: PodPlaces) -> Records:
        """Accounts, users and QOS."""
        raise NotImplementedError

    def pod_partitions(self, cluster: Cluster, places: PodPlaces) -> Mapping[str, PodPartition]:
        """Partitions by name."""
        raise NotImplementedError


def names_of(release: tuple[int, int]) -> str:
    """`24.11`."""
    return f"{release[0]}.{release[1]:02}"

"""Which node does what for Slurm, and with which packages and release. Pure functions."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

from rackwright.errors import RackwrightError
from rackwright.model.cluster import Cluster, Node
from rackwright.model.interfaces import ChecksNodeHealth, SetsJobEnvironment
from rackwright.model.platforms import Capability, has
from rackwright.model.types import NodeRole
from rackwright.roles.slurm.options import SlurmOptions

UNKNOWN_RELEASE_HINT = "declare it: `packages: {source: schedmd, release: '26.05'}`"


def slurm_nodes(cluster: Cluster) -> tuple[Node, ...]:
    """Nodes the slurm role runs on."""
    return cluster.running("slurm")


def workers(cluster: Cluster) -> tuple[Node, ...]:
    """Nodes that run slurmd, in natural order of their names."""
    found = (node for node in slurm_nodes(cluster) if node.holds(NodeRole.WORKER))
    return tuple(sorted(found, key=lambda node: natural(node.name)))


def controllers(cluster: Cluster, options: SlurmOptions) -> tuple[Node, ...]:
    """The primary head, then the backups in their order."""
    return (cluster.primary, *(cluster.by_name[name] for name in options.backups))


def runs_slurmdbd(node: Node, options: SlurmOptions) -> bool:
    """The primary head does, or the head that dbd_host names, and dbd_backup_host."""
    return options.uses_database_on(node)


def dbd_host(cluster: Cluster, options: SlurmOptions) -> str:
    """Where slurmdbd runs: the name of a node, or a host outside of the cluster."""
    return options.accounting.dbd_host or cluster.primary.name


def declares_records(cluster: Cluster, node: Node, options: SlurmOptions) -> bool:
    """slurmdbd's own node declares the accounting records; the primary head where slurmdbd is not ours."""
    host = dbd_host(cluster, options)
    return node.name == (host if host in cluster.by_name else cluster.primary.name)


def reservations_due(options: SlurmOptions) -> bool:
    """Whether reservations are looked at: declared ones are made, others go only with prune."""
    return bool(options.reservations) or options.prune


def runs_slurmctld(node: Node, options: SlurmOptions) -> bool:
    """The primary head and the backups do."""
    return options.manages_nodes and (node.primary or node.name in options.backups)


def runs_slurmd(node: Node) -> bool:
    """Every worker does."""
    return node.holds(NodeRole.WORKER)


def daemons(cluster: Cluster, node: Node, options: SlurmOptions) -> tuple[str, ...]:
    """Slurm's daemons of a node; none on a login node."""
    found = {
        "slurmctld": runs_slurmctld(node, options),
        "slurmdbd": runs_slurmdbd(node, options),
        "slurmd": runs_slurmd(node),
    }
    return tuple(daemon for daemon, runs in found.items() if runs)


def wants_adoption(node: Node, options: SlurmOptions) -> bool:
    """Workers that are nothing else do: a head or a login node has to let users in."""
    alone = not node.holds(NodeRole.HEAD, NodeRole.LOGIN, NodeRole.STORAGE)
    return runs_slurmd(node) and alone and options.pam_adopt


def adopts_logins(node: Node, options: SlurmOptions) -> bool:
    """Those of them whose platform lets slurmd hold jobs in cgroups."""
    return wants_adoption(node, options) and has(node.platform, Capability.CGROUP_V2)


@dataclass(frozen=True)
class Software:
    """What is installed on a node, by the names of rackwright.osfamily.names."""

    slurm: tuple[str, ...]
    other: tuple[str, ...]


def software(cluster: Cluster, node: Node, options: SlurmOptions) -> Software:
    """Daemons of the node, clients everywhere."""
    slurm = ["slurm-client", *daemons(cluster, node, options)]
    slurm += ["pam-slurm-adopt"] if adopts_logins(node, options) else []
    has_gpus = node.sku.gpus is not None
    if runs_slurmd(node) and has_gpus and (options.gres_autodetect == "nvml" or node.mig):
        slurm += ["slurm-nvml"] if options.packages.source == "distribution" else []
    other = ["logrotate"] if daemons(cluster, node, options) else []
    return Software(tuple(slurm), tuple(other))


def health_program(cluster: Cluster, options: SlurmOptions) -> str | None:
    """What slurmd runs to see whether its node is well: declared, or offered by another role."""
    offers = (node.offers(ChecksNodeHealth) for node in workers(cluster))
    offered = next((offer.health_program for offer in offers if offer is not None), None)
    return options.health_check.program or offered


def release_on(node: Node, options: SlurmOptions) -> tuple[int, int]:
    """Slurm release on one node, e.g. (24, 11)."""
    release = options.packages.release or node.os.slurm
    if release is None:
        raise RackwrightError(f"The Slurm release of {node.os} is unknown.", hint=UNKNOWN_RELEASE_HINT)
    year, _, month = release.partition(".")
    return int(year), int(month)


def release(cluster: Cluster, options: SlurmOptions) -> tuple[int, int]:
    """The oldest release of the cluster: slurm.conf is one for all, so the oldest must read it."""
    return min(release_on(node, options) for node in (cluster.primary, *slurm_nodes(cluster)))


def confined(cluster: Cluster) -> bool:
    """Whether every worker can own its cgroup v2 tree; slurm.conf knows one answer for all."""
    return all(has(node.platform, Capability.CGROUP_V2) for node in workers(cluster))


def sets_environment(cluster: Cluster) -> bool:
    """Whether a role gives tasks of jobs variables on some worker; slurm.conf is the same on all nodes."""
    return any(node.offers(SetsJobEnvironment) is not None for node in workers(cluster))


@cache
def natural(name: str) -> tuple[tuple[int, int | str], ...]:
    """Sorts node2 before node10."""
    parts = re.split(r"(\d+)", name)
    return tuple((0, int(part)) if part.isdigit() else (1, part) for part in parts if part)

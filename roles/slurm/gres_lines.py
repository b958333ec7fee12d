"""The lines of gres.conf. Pure functions."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from rackwright.model.cluster import Cluster, Node
from rackwright.model.ranges import fold
from rackwright.model.types import Platform
from rackwright.roles.slurm import placement
from rackwright.roles.slurm.options import SlurmOptions
from rackwright.workload.slurm.gres import gres_types

SIMULATED_GPUS = "/run/rackwright-gpu"
"""A container has no GPU; links to /dev/null of this name let Slurm count and schedule them."""


def gres_lines(cluster: Cluster, options: SlurmOptions) -> tuple[str, ...]:
    """One for each set of nodes with equal GPUs; several where GPUs belong to different sockets."""
    kinds: dict[str, list[str]] = {}
    detect = detection(cluster, options)
    for node in placement.workers(cluster):
        for line in _node_lines(node, detect):
            kinds.setdefault(line, []).append(node.name)
    return tuple(f"NodeName={fold(names)} {line}" for line, names in kinds.items())


def detection(cluster: Cluster, options: SlurmOptions) -> str:
    """AutoDetect= of nodes without MIG."""
    found_by_slurm = placement.release(cluster, options) >= (24, 11)
    return options.gres_autodetect or ("nvidia" if found_by_slurm else "off")


def _node_lines(node: Node, detect: str) -> Iterator[str]:
    simulated = node.platform is Platform.CONTAINER
    if node.mig and not simulated:
        # Which capability files an instance has is only known once it is made; NVML alone finds them.
        yield "AutoDetect=nvml"
    elif detect != "off" and not simulated:
        if gres_types(node):
            yield f"AutoDetect={detect}"
    elif not simulated and (sockets := _sockets(node)):
        yield from _lines_by_socket(node, sockets)
    else:
        first = 0
        for kind, count in gres_types(node).items():
            path = SIMULATED_GPUS if simulated else "/dev/nvidia"
            yield f"AutoDetect=off Name=gpu Type={kind} File={path}{_numbers(first, count)}"
            first += count


def _sockets(node: Node) -> tuple[int, ...]:
    """Socket of each GPU; empty where the catalogue does not know it or there is one socket only.

    A wrong Cores= is worse than none: jobs would get the far socket's cores on purpose.
    """
    return node.sku.gpu_sockets if node.sku.sockets > 1 else ()


def _lines_by_socket(node: Node, sockets: tuple[int, ...]) -> Iterator[str]:
    """Cores= counts as Slurm does, all of socket 0 first (gres.conf(5), 22.05 to 26.05).

    All cores of the socket: Slurm places GPUs and CPUs together by socket and not more finely.
    """
    (kind,) = gres_types(node)
    first, cores = 0, node.sku.cores_per_socket
    for socket, run in itertools.groupby(sockets):
        count = len(list(run))
        yield (
            f"AutoDetect=off Name=gpu Type={kind} File=/dev/nvidia{_numbers(first, count)} "
            f"Cores={socket * cores}-{(socket + 1) * cores - 1}"
        )
        first += count


def _numbers(first: int, count: int) -> str:
    return f"[{first}-{first + count - 1}]" if count > 1 else str(first)

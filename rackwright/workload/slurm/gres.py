"""GPUs by Slurm's names: the same in slurm.conf and in what a job asks for."""

from __future__ import annotations

from collections.abc import Iterable

from rackwright.model.cluster import Node
from rackwright.workload.protocol import GpuRequest, gpus_of


def gres_types(node: Node, requests: Iterable[GpuRequest] | None = None) -> dict[str, int]:
    """Type and number of these GPUs of a node (None: all that jobs may ask for).

    A MIG instance's type is its profile alone: slurmd names it by the product and the profile
    (nvidia_h100_80gb_hbm3_1g.10gb), and a declared type has to be a substring of that name (gres.conf(5)).
    """
    gpus = node.sku.gpus
    wanted = gpus_of(node) if requests is None else requests
    if gpus is None:
        return {}
    return {one.profile or gpus.gres_type: one.count for one in wanted}


def gres(node: Node, requests: Iterable[GpuRequest] | None = None) -> str | None:
    """`Gres=` of a node or `--gres=` of a job there, e.g. `gpu:h100:8`; `gpu:1g.10gb:56` for 8 GPUs in 7 parts."""
    types = gres_types(node, requests)
    return ",".join(f"gpu:{kind}:{count}" for kind, count in types.items()) or None

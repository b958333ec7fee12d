"""Clusters for the roles of the GPU stack: one node of each kind, a lock beside the file that is not there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rackwright.catalog.read import catalogue
from rackwright.lock.content import Lock
from rackwright.lock.lock_file import lock_text
from rackwright.lock.request import shipped_tables
from rackwright.lock.solve import solve
from rackwright.model.cluster import Cluster, Node
from rackwright.model.gpu_stack import GpuStack
from rackwright.model.options import RoleOptions
from rackwright.model.types import NodeRole
from rackwright.osfamily.known import os_release
from tests.factories import make_cluster, make_node
from tests.gpu_repository import index

STACK = GpuStack(source="mirror", package_index=("Packages",), cuda="none", nccl="none")


def worker(name: str, number: int, sku: str, **changes: Any) -> Node:
    """A worker of a SKU of the catalogue, bare metal with Debian 13 by default."""
    settings: dict[str, Any] = {
        "sku": catalogue()[sku],
        "platform": "bare-metal",
        "os": os_release("debian-13"),
        **changes,
    }
    return make_node(name, number, NodeRole.WORKER, **settings)


def site(
    folder: Path, options: dict[str, RoleOptions], *workers: Node, locked: bool = True, **changes: Any
) -> Cluster:
    """A cluster whose workers carry these options, with its lock."""
    given = [node.with_options({**options, **node.options}) for node in workers]
    cluster = make_cluster(
        make_node("head1", 10, NodeRole.HEAD),
        *given,
        **{"path": folder / "demo.yaml", "gpu_stack": STACK, **changes},
    )
    if locked:
        solution = solve(cluster, shipped_tables(), index())
        assert not solution.refused, solution.refused
        cluster.lock_path.write_text(text_of(solution.lock, cluster.path.name))
    return cluster


_TEXTS: dict[tuple[str, str], str] = {}


def text_of(lock: Lock, file: str) -> str:
    """The lock file's text, made once: hundreds of tests write the same few locks."""
    key = lock.model_dump_json(), file
    if key not in _TEXTS:
        _TEXTS[key] = lock_text(lock, file)
    return _TEXTS[key]

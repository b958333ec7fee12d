"""The plan: which filesystems to measure, on which nodes, and how much to write."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from rackwright.documents.nearest import suggest
from rackwright.errors import StorageError
from rackwright.model.cluster import Cluster, Node
from rackwright.model.selection import pick
from rackwright.model.storage import Filesystem, FilesystemPurpose
from rackwright.model.storage_bench import CheckpointBench
from rackwright.workload.lookup import runs_jobs

QUICK_MIB, QUICK_FILES, QUICK_NODES = 256, 100, 2
SAVES_ON_DISK = 4
"""Saves that the checkpoint stage has on the filesystem at its end: three whole ones and the broken one."""


@dataclass(frozen=True)
class Sizes:
    """How much is written, and how."""

    size: int
    """Bytes of each job."""
    block: int
    jobs: int
    engine: str
    depth: int
    direct: bool
    files: int
    alone_nodes: int

    def settings(self) -> dict[str, Any]:
        """As plain JSON data; the number of nodes alone does not change a figure."""
        return {key: value for key, value in asdict(self).items() if key != "alone_nodes"}


def sizes_of(one: Filesystem, *, quick: bool) -> Sizes:
    """As declared; `quick` writes no more than 256 MiB a job."""
    bench = one.bench
    block, size = bench.block_kib * 1024, bench.size_mib * 2**20
    if quick:
        size = min(size, max(QUICK_MIB * 2**20 // block, 1) * block)
    return Sizes(
        size=size,
        block=block,
        jobs=bench.jobs,
        engine=bench.engine,
        depth=bench.depth,
        direct=bench.direct,
        files=min(bench.files, QUICK_FILES) if quick else bench.files,
        alone_nodes=min(bench.alone_nodes, QUICK_NODES) if quick else bench.alone_nodes,
    )


def users_of(cluster: Cluster, one: Filesystem) -> tuple[Node, ...]:
    """Nodes that use a filesystem and run jobs; its servers would measure their own drives."""
    nodes = (cluster.by_name[name] for name in one.nodes if name not in one.server_nodes)
    return tuple(node for node in nodes if runs_jobs(node))


def out_of_scope(cluster: Cluster, one: Filesystem) -> str | None:
    """Why a filesystem is not measured, or None."""
    if one.read_only:
        return "it is mounted read-only, and the bench has to write"
    if one.purpose is FilesystemPurpose.STATE:
        return "services keep their state on it, and a bench would stall them"
    if not users_of(cluster, one):
        return "no node that runs jobs uses it"
    return None


def is_benched(cluster: Cluster) -> bool:
    """Whether any declared filesystem can be measured."""
    return any(out_of_scope(cluster, one) is None for one in cluster.storage.values())


def checkpoint_of(one: Filesystem) -> CheckpointBench | None:
    """The checkpoint stage of a filesystem; None: it has none."""
    if one.bench.checkpoint is not None:
        return one.bench.checkpoint
    return CheckpointBench() if one.purpose is FilesystemPurpose.CHECKPOINT else None


def chosen(cluster: Cluster, name: str | None) -> tuple[Filesystem, ...]:
    """A filesystem by name, or all."""
    if not cluster.storage:
        raise StorageError(
            f"Cluster {cluster.name} declares no filesystem.",
            hint="declare one under `storage`: docs/storage-bench.md has an example",
        )
    if name is None:
        return tuple(cluster.storage.values())
    if name not in cluster.storage:
        hint = suggest(name, cluster.storage, what="filesystems")
        raise StorageError(f"There is no filesystem {name} in cluster {cluster.name}.", hint=hint)
    return (cluster.storage[name],)


def limited(cluster: Cluster, nodes: tuple[Node, ...], limit: str | None) -> tuple[Node, ...]:
    """Those of some nodes that a NodeSet names."""
    if limit is None:
        return nodes
    wanted = {node.name for node in pick(cluster, limit)}
    return tuple(node for node in nodes if node.name in wanted)


def spread(nodes: tuple[Node, ...], count: int) -> tuple[Node, ...]:
    """At most this number of nodes, spread evenly so that they come from different racks."""
    if len(nodes) <= count:
        return nodes
    return tuple(nodes[number * len(nodes) // count] for number in range(count))

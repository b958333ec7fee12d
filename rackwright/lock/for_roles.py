"""What a role uses from the lock, and the problems it reports before the first connection."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from rackwright.catalog.table_files import pair_table
from rackwright.catalog.tables import Pair
from rackwright.errors import RackwrightError
from rackwright.lock.content import GroupLock, Lock
from rackwright.lock.lock_file import read_lock, requested_stack
from rackwright.lock.words import listed
from rackwright.model.cluster import Cluster, Node
from rackwright.model.sku import Architecture

if TYPE_CHECKING:  # options are read by processes that never load pyinfra
    from rackwright.data import Site

Trouble = tuple[str, str, str | None]
"""Path below the role's section, a full sentence, a hint: as RoleOptions.problems yields them."""


def has_stack(node: Node) -> bool:
    """Whether a node is declared to have NVIDIA's GPUs."""
    return node.sku.gpus is not None and node.sku.gpus.architecture is not Architecture.CDNA3


def group_of(cluster: Cluster, node: Node) -> GroupLock:
    """What is locked for a node. Raises RackwrightError if the lock is missing or does not cover the node."""
    group = read_lock(cluster).group_of(node)
    if group is None:
        raise RackwrightError(
            f"The lock {cluster.lock_path.name} has no entry for {node.name} ({node.sku.name} on {node.os}).",
            hint=_again(cluster),
        )
    return group


def group_for(site: Site) -> GroupLock:
    """What is locked for the node a deploy is on; raises RackwrightError as group_of does."""
    return group_of(site.cluster, site.node)


def locked(group: GroupLock, names: Iterable[str]) -> tuple[str, ...]:
    """`name=version` for packages.installed(hold=True). Raises RackwrightError for a name not locked."""
    wanted = tuple(names)
    unknown = [name for name in wanted if name not in group.packages]
    if unknown:
        raise RackwrightError(
            f"The lock of {group.sku} on {group.os} has no {listed(unknown)}.",
            hint="lock again with this version of rackwright",
        )
    return tuple(f"{name}={group.packages[name]}" for name in wanted)


def component(group: GroupLock, *parts: str) -> tuple[str, ...]:
    """`name=version` of every package of these parts of the stack; () where the lock leaves them out.

    Parts are the components of rackwright/catalog/tables/packages.yaml: pin, modules, driver,
    persistenced, kernel, fabricmanager, nvlsm, imex, cuda, dcgm, container_toolkit, nccl, ofed.
    """
    return locked(group, [name for part in parts for name in group.components.get(part, ())])


def known_bad(group: GroupLock) -> Pair | None:
    """The driver package and kernel of a lock, where the table lists that they do not build."""
    kernel = group.packages.get(f"linux-headers-{group.kernel}", "").split("-")[0]
    return next(
        (
            pair
            for pair in pair_table().rows
            if not pair.builds
            and (pair.os, pair.kernel) == (group.os, kernel)
            and group.packages.get(pair.package) == pair.revision
        ),
        None,
    )


def lock_problems(cluster: Cluster, role: str) -> Iterator[Trouble]:
    """Why a role that installs what is locked cannot run: no lock, an old one, an incomplete one.

    For RoleOptions.lock_problems; only the kinds of node that the role runs on are checked.
    """
    nodes = [node for node in cluster.running(role) if has_stack(node)]
    if not nodes:
        return
    if cluster.gpu_stack is None:
        yield (
            "",
            f"The role {role} installs locked versions, but the cluster file has no section gpu_stack.",
            None,
        )
        return
    try:
        lock = read_lock(cluster)
    except RackwrightError as error:
        yield "", error.message, error.hint
        return
    name = cluster.lock_path.name
    if lock.cluster != cluster.name:
        yield "", f"The lock {name} belongs to the cluster {lock.cluster}.", _again(cluster)
    elif (lock.gpu_stack, lock.index) != requested_stack(cluster):
        yield (
            "",
            f"The lock {name} was solved for a different gpu_stack section.",
            _again(cluster),
        )
    else:
        yield from _gaps(cluster, lock, nodes)


def _gaps(cluster: Cluster, lock: Lock, nodes: list[Node]) -> Iterator[Trouble]:
    kinds = {(node.sku.name, node.os): node for node in reversed(nodes)}
    for (sku, os), node in sorted(kinds.items(), key=lambda kind: (kind[0][0], kind[0][1].id)):
        if lock.group_of(node) is None:
            yield (
                "",
                f"The lock {cluster.lock_path.name} has no entry for {sku} on {os}, e.g. {node.name}.",
                _again(cluster),
            )


def loose_versions(cluster: Cluster, role: str) -> Iterator[Trouble]:
    """Kinds of node whose lock has versions that end in `*`: two nodes may get different revisions of them.

    For RoleOptions.warnings; the same sentence for every role, so that it is printed once.
    """
    nodes = [node for node in cluster.running(role) if has_stack(node)]
    if not nodes or any(True for _ in lock_problems(cluster, role)):
        return
    lock = read_lock(cluster)
    kinds = {(node.sku.name, node.os): node for node in reversed(nodes)}
    for (sku, os), node in sorted(kinds.items(), key=lambda kind: (kind[0][0], kind[0][1].id)):
        group = lock.group_of(node)
        loose = [] if group is None else [name for name, version in group.packages.items() if "*" in version]
        if group is None or not loose:
            continue
        more = f" and {len(loose) - 1} more" if len(loose) > 1 else ""
        indexes = listed(group.needs_index) if group.needs_index else "the source's indexes"
        first = f"{loose[0]} {group.packages[loose[0]]}{more}"
        yield (
            "",
            f"The lock has no revision of {first} for {sku} on {os}: two nodes could get different ones.",
            f"add {indexes} to `gpu_stack.package_index`, then {_again(cluster)}",
        )


def _again(cluster: Cluster) -> str:
    return f"run: rackwright lock {cluster.path.name}"

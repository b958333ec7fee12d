"""Mistakes about where slurmctld's state is: a folder that only one controller has, or that another filesystem covers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from rackwright.model.cluster import Cluster, Node
from rackwright.model.ranges import fold
from rackwright.model.storage import Filesystem, FilesystemPurpose, ServesFilesystems
from rackwright.model.types import Platform
from rackwright.roles.slurm.services import SHARED_FILE_SYSTEMS, StateMount
from rackwright.roles.slurm.state import declared_for, holder, is_below, state_on

if TYPE_CHECKING:
    from rackwright.roles.slurm.options import SlurmOptions

Problem = tuple[str, str, str | None]
"""(path below the section, a full sentence, a hint)."""
_MOUNT_HINT = "e.g. `state_mount: {path: /shared, source: 'nfs1:/export/slurm', fstype: nfs4}`"
_SOFT = frozenset({"soft", "softerr"})


def state_problems(options: SlurmOptions, cluster: Cluster) -> Iterator[Problem]:
    """What `storage:` declares of state_dir, what state_mount does, and where they contradict each other."""
    names = dict.fromkeys((cluster.primary.name, *options.backups))
    nodes = [cluster.by_name[name] for name in names if name in cluster.by_name]
    held = {node.name: one for node in nodes if (one := holder(node, options)) is not None}
    if options.state_mount is not None:
        yield from _mount_problems(options, options.state_mount, cluster)
        yield from _contradictions(options, options.state_mount, nodes)
    elif options.backups and not held:
        yield (
            "state_mount",
            "With backups, state_dir has to be on a file system that all controllers mount; declare which.",
            _hint(cluster),
        )
    if held:
        yield from _placement(options, cluster, nodes, held)
        yield from _access(options, cluster, nodes, held)
        yield from _behaviour(options, nodes)
    yield from _archive(options, cluster)


def _hint(cluster: Cluster) -> str:
    """A filesystem of that purpose is what is meant, where there is one."""
    meant = [one for one in cluster.storage.values() if one.purpose is FilesystemPurpose.STATE]
    return f"e.g. `state_dir: {meant[0].path}/slurmctld`" if meant else _MOUNT_HINT


def _mount_problems(options: SlurmOptions, mount: StateMount, cluster: Cluster) -> Iterator[Problem]:
    if not is_below(options.state_dir, mount.path):
        yield (
            "state_dir",
            f"state_dir is {options.state_dir}, which is not below state_mount.path, {mount.path}.",
            f"e.g. `state_dir: {mount.path}/slurmctld`",
        )
    # In containers of one machine any folder of that machine can be shared.
    machines = [name for name in options.backups if _is_machine(cluster, name)]
    if machines and mount.fstype not in SHARED_FILE_SYSTEMS:
        yield (
            "state_mount.fstype",
            f"{mount.fstype} is not a file system that several controllers share.",
            f"one of: {', '.join(sorted(SHARED_FILE_SYSTEMS))}",
        )


def _is_machine(cluster: Cluster, name: str) -> bool:
    node = cluster.by_name.get(name)
    return node is not None and node.platform is not Platform.CONTAINER


def _contradictions(options: SlurmOptions, given: StateMount, nodes: list[Node]) -> Iterator[Problem]:
    """Once for all controllers: one of them mounts something else than state_mount declares."""
    for node in nodes:
        state = state_on(node, options)
        if state is None:
            continue
        name, path = state.filesystem.name, state.filesystem.path
        hint = f"leave `state_mount` out: storage.{name} declares the mount"
        if path != given.path:
            yield "state_mount.path", f"state_mount is on {given.path}, and storage.{name} on {path}.", hint
            return
        place = next((one for one in state.places if one.path == path and one.sources), None)
        if place is not None and (given.fstype not in place.types or given.source not in place.sources):
            mounted = f"{' or '.join(place.types)} from {' or '.join(place.sources)}"
            yield (
                "state_mount.source",
                f"state_mount is {given.fstype} from {given.source}, and {node.name} mounts storage.{name}, {mounted}.",
                hint,
            )
            return


def _placement(
    options: SlurmOptions, cluster: Cluster, nodes: list[Node], held: dict[str, Filesystem]
) -> Iterator[Problem]:
    """All controllers have the same filesystem there, and one that can be shared."""
    if not options.backups:
        return
    found = {one.name: one for one in held.values()}
    one = next(iter(found.values()))
    if len(found) > 1:
        where = ", ".join(f"{given.name} on {name}" for name, given in held.items())
        yield (
            "state_dir",
            f"{options.state_dir} is on different filesystems: {where}.",
            "give all controllers the same one",
        )
        return
    if not one.kind.shared:
        yield (
            "state_dir",
            f"{options.state_dir} is on {one.name}, which each controller has on its own drives.",
            _hint(cluster),
        )
    without = [node.name for node in nodes if node.name not in held]
    if without:
        widen = (
            f"add them to `storage.{one.name}.nodes`"
            if not set(without) & set(one.server_nodes)
            else f"servers too: add them to `storage.{one.name}.nodes`, so that {one.path} is there"
        )
        yield (
            "state_dir",
            f"{options.state_dir} is on {one.name}, which {fold(without)} does not use at {one.path}.",
            widen,
        )


def _access(
    options: SlurmOptions, cluster: Cluster, nodes: list[Node], held: dict[str, Filesystem]
) -> Iterator[Problem]:
    """Controllers are applied together, and whichever comes first makes the folder."""
    one = next(iter(held.values()))
    users = [node for node in nodes if held.get(node.name) == one]
    if (wrong := _squashed(cluster, one, users, options.state_dir)) is not None:
        yield "state_dir", *wrong


def _squashed(cluster: Cluster, one: Filesystem, nodes: list[Node], folder: str) -> tuple[str, str] | None:
    """Nodes whose root is squashed on the filesystem, and so cannot create a folder owned by slurm."""
    clients = [node.name for node in nodes if node.name not in one.server_nodes]
    for name in one.server_nodes:
        for given in cluster.by_name[name].options.values():
            if not isinstance(given, ServesFilesystems) or one.kind not in given.serves_kinds:
                continue
            roots = given.roots(one)
            if squashed := [client for client in clients if client not in roots]:
                allowed = fold(dict.fromkeys((*roots, *clients)))
                return (
                    f"{folder} is on {one.name}, where the root of {fold(squashed)} is squashed and cannot make the folder.",
                    f"e.g. `nfs_server: {{root_access: {{{one.name}: '{allowed}'}}}}`",
                )
    return None


def _archive(options: SlurmOptions, cluster: Cluster) -> Iterator[Problem]:
    """Every node that runs slurmdbd makes the folder of purged records, and writes there."""
    folder = options.accounting.archived.get("ArchiveDir")
    if folder is None:
        return
    nodes = [node for node in cluster.nodes if options.accounting.runs_slurmdbd(node)]
    held = {node.name: one for node in nodes if (one := declared_for(node, folder)) is not None}
    for one in {given.name: given for given in held.values()}.values():
        if one.read_only:
            yield (
                "accounting.archive_dir",
                f"{folder} is on {one.name}, which is read-only.",
                "e.g. `archive_dir: /var/lib/slurm/archive`",
            )
            continue
        users = [node for node in nodes if held.get(node.name) == one]
        if (wrong := _squashed(cluster, one, users, folder)) is not None:
            yield "accounting.archive_dir", *wrong


def _behaviour(options: SlurmOptions, nodes: list[Node]) -> Iterator[Problem]:
    """A filesystem that returns errors while its server is away, or takes no writes."""
    for node in nodes:
        state = state_on(node, options)
        if state is None:
            continue
        one = state.filesystem
        if one.read_only:
            yield "state_dir", f"{options.state_dir} is on {one.name}, which is read-only.", None
            return
        soft = sorted(_SOFT & set(state.mount.options if state.mount is not None else ()))
        if soft:
            why = "while the server is away, writes are lost, and a backup reads errors instead of waiting"
            yield (
                "state_dir",
                f"{options.state_dir} is on {one.name}, which {node.name} mounts {soft[0]}: {why}.",
                f"declare `options: [hard]` for storage.{one.name}",
            )
            return


def state_warnings(options: SlurmOptions, cluster: Cluster) -> Iterator[Problem]:
    """A pair of controllers that has one server after all."""
    names = (cluster.primary.name, *options.backups)
    held = [holder(cluster.by_name[name], options) for name in names if name in cluster.by_name]
    one = next((found for found in held if found is not None), None)
    servers = [name for name in names if one is not None and name in one.server_nodes]
    if options.backups and one is not None and servers:
        lost = "while it is away, no other controller can take over"
        yield (
            "backups",
            f"{fold(servers)} serves storage.{one.name}, which holds slurmctld's state: {lost}.",
            "serve it from a node that is not a controller",
        )

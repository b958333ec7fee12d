"""Conflicts between filesystems, and between filesystems and the roles that mount, serve and create them."""

from __future__ import annotations

from collections.abc import Mapping

from rackwright.clusterfile.report import Report
from rackwright.model.cluster import Cluster, Node
from rackwright.model.mount_points import belongs_to_system, is_absolute
from rackwright.model.ranges import fold
from rackwright.model.storage import (
    Filesystem,
    FilesystemKind,
    MakesFilesystems,
    MountsFilesystems,
    ServesFilesystems,
)


def path_mistake(path: str, *, mounted: bool = True) -> tuple[str, str | None] | None:
    """What is wrong with a mount point or an exported folder; None if it is valid."""
    if path == "/" and not mounted:
        return None
    if not is_absolute(path):
        return f"{path[:60]!r} is not a valid absolute path.", "e.g. `/home`: no slash at the end, no `..`"
    if mounted and belongs_to_system(path):
        return f"Cannot mount over {path}.", "e.g. `/home`"
    return None


def check_paths(report: Report, filesystems: Mapping[str, Filesystem]) -> None:
    """Report filesystems with equal or nested paths on the same node."""
    checked: list[Filesystem] = []
    for one in filesystems.values():
        path = ("storage", one.name, "path")
        if not report.clean(path):
            continue
        for other in checked:
            both = set(one.nodes) & set(other.nodes)
            if not both:
                continue
            line, _ = report.document.position(("storage", other.name, "path"))
            where = f"{other.name} (line {line}) on {fold(both)}"
            if one.path == other.path:
                report.add(path, f"{one.path} is also the path of {where}.", "use a separate path for each")
            elif one.path.startswith(f"{other.path}/") or other.path.startswith(f"{one.path}/"):
                report.add(
                    path,
                    f"{one.path} is nested with {other.path} of {where}: while the outer one is unmounted, the inner one is "
                    "too.",
                    "mount each on a separate path, and use a symlink",
                )
        checked.append(one)


def check_storage(report: Report, cluster: Cluster) -> None:
    """Report filesystems that no role mounts or serves, and paths that conflict with a node's local drives."""
    for one in cluster.storage.values():
        if not report.clean(("storage", one.name)):
            continue
        if one.kind is FilesystemKind.LOCAL:
            _check_local(report, cluster, one)
            continue
        clients = [cluster.by_name[name] for name in one.nodes if name not in one.server_nodes]
        _check_roles(report, one, clients, MountsFilesystems, "mounts_kinds", "mounts")
        servers = [cluster.by_name[name] for name in one.server_nodes if name in cluster.by_name]
        _check_roles(report, one, servers, ServesFilesystems, "serves_kinds", "serves")
        _check_own_drives(report, cluster, one)


def _check_roles(
    report: Report, one: Filesystem, nodes: list[Node], interface: type, kinds: str, verb: str
) -> None:
    without = [
        node.name
        for node in nodes
        if not any(
            isinstance(given, interface) and one.kind in getattr(given, kinds)
            for given in node.options.values()
        )
    ]
    if not without:
        return
    known = [
        role
        for role, kind in ((name, report.roles.options_class(name)) for name in report.roles.names)
        if issubclass(kind, interface) and one.kind in getattr(kind, kinds)
    ]
    if not all(report.clean(("roles", role)) for role in known):
        return  # declared, and its mistakes are reported separately
    added = " or ".join(f"`{role}: {{}}`" for role in known)
    hint = f"add {added} under `roles`" if known else "name servers outside the cluster by address"
    key = "kind" if verb == "mounts" else "servers"
    report.add(("storage", one.name, key), f"No role {verb} {one.kind.value} on {fold(without)}.", hint)


def _made(node: Node) -> Mapping[str, str]:
    makes = node.offers(MakesFilesystems)
    return makes.made_filesystems(node) if makes is not None else {}


def _check_local(report: Report, cluster: Cluster, one: Filesystem) -> None:
    without = [name for name in one.nodes if one.path not in _made(cluster.by_name[name])]
    if without:
        report.add(
            ("storage", one.name, "path"),
            f"No role creates a filesystem on {one.path} of {fold(without)}.",
            f"declare it under `roles.storage_layout.filesystems`, e.g. `{one.path}: {{on: scratch}}`",
        )


def _check_own_drives(report: Report, cluster: Cluster, one: Filesystem) -> None:
    for name in one.nodes:
        serves = name in one.server_nodes
        if serves and one.export in (None, one.path):
            continue  # nothing is mounted at its path there; an export from another path has its own mount unit
        for path in _made(cluster.by_name[name]):
            if path == one.path or one.path.startswith(f"{path}/") or path.startswith(f"{one.path}/"):
                apart = "mount each on a separate path"
                in_place = serves and path == one.path
                report.add(
                    ("storage", one.name, "path"),
                    f"{one.path} conflicts with {path}, which {name} mounts from its local drives.",
                    f"export it in place, `export: {path}`, or {apart}" if in_place else apart,
                )
                return

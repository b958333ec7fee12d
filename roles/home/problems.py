"""Mistakes about homes that need the resolved cluster to be found."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from difflib import get_close_matches

from rackwright.model.cluster import Cluster, Node
from rackwright.model.interfaces import DeclaresUsers
from rackwright.model.ranges import fold
from rackwright.model.storage import Filesystem, FilesystemPurpose, MakesFilesystems
from rackwright.roles.home import layout
from rackwright.roles.home.options import HomeOptions

Problem = tuple[str, str, str | None]
"""(path below the section, a full sentence, a hint)."""
_COUNTS = frozenset({"uquota", "usrquota", "quota"})
"""Mount options with which XFS counts and enforces quotas of users (xfs(5), xfs_quota(8), read 2026-11-26)."""
_WRITABLE_BY_OTHERS = 0o022


def problems_of(options: HomeOptions, cluster: Cluster) -> Iterator[Problem]:
    """All of them, in the order of the file."""
    if options.mode[0] != "7":
        yield "mode", f"{options.mode} locks users out of their homes.", "e.g. `mode: '700'`"
    declared = [one for one in cluster.storage.values() if one.purpose is FilesystemPurpose.HOME]
    yield from _made_on(options, cluster, declared)
    for one in declared:
        yield from _numbers(cluster, one)
        yield from _quota(options, cluster, one)
        yield from _access(options, cluster, one)
    yield from _one_xfs(options, cluster, declared)


def _made_on(options: HomeOptions, cluster: Cluster, declared: list[Filesystem]) -> Iterator[Problem]:
    name = options.made_on
    if name is None:
        return
    if name not in cluster.by_name:
        near = get_close_matches(name, cluster.by_name, n=1)
        yield (
            "made_on",
            f"{name} is not a node of this cluster.",
            f"did you mean `{near[0]}`?" if near else None,
        )
        return
    node = cluster.by_name[name]
    if not any(layout.folder(node, one, options) == one.path for one in declared):
        yield (
            "made_on",
            f"{name} mounts no filesystem of purpose `home` whose server is outside of the cluster.",
            "leave it out: nodes that serve homes create them",
        )


def _numbers(cluster: Cluster, one: Filesystem) -> Iterator[Problem]:
    """A home has one owner: users that have different numbers on nodes cannot share it."""
    seen: dict[str, tuple[str, int]] = {}
    for node, user, uid in layout.accounts(cluster, one):
        name, other = seen.setdefault(user, (node.name, uid))
        if other != uid:
            yield (
                "",
                f"{user} has uid {other} on {name} and {uid} on {node.name}, and one home on {one.name}.",
                "declare the user once for all groups",
            )
            return


def _quota(options: HomeOptions, cluster: Cluster, one: Filesystem) -> Iterator[Problem]:
    if one.quota is None:
        return
    unknown = sorted(set(one.quota.users) - set(layout.users(cluster, one)))
    if unknown:
        yield (
            "",
            f"storage.{one.name}.quota.users names {', '.join(unknown)}, and no role declares such a user.",
            "declare the user under `roles.access.users`: a quota is set by number",
        )
    for node in cluster.nodes:
        given = layout.folder(node, one, options)
        if given is None or not layout.on_own_drives(node, one):
            continue
        if (wrong := _cannot_have_quotas(node, given, one)) is not None:
            yield "", *wrong
            return


def _cannot_have_quotas(node: Node, folder: str, one: Filesystem) -> tuple[str, str] | None:
    makes, path = node.offers(MakesFilesystems), layout.quota_on(node, one, HomeOptions())
    if makes is None or path is None:
        return (
            f"storage.{one.name} has a quota, but no role makes the filesystem of {folder} on {node.name}.",
            f"declare it under `roles.storage_layout.filesystems`, e.g. `{folder}: {{on: data, mount_options: [uquota]}}`",
        )
    if (kind := makes.made_filesystems(node)[path]) != "xfs":
        return (
            f"storage.{one.name} has a quota, but {path} on {node.name} is {kind}: quotas are set only on xfs.",
            "its quota files would have to be made while it is not mounted; declare `type: xfs`, or remove the quota",
        )
    if _COUNTS.isdisjoint(makes.made_options(node)[path]):
        return (
            f"storage.{one.name} has a quota, but {path} on {node.name} is mounted without `uquota`.",
            "add it to `mount_options` under `roles.storage_layout.filesystems`, and unmount it once: a remount is too late",
        )
    return None


def _access(options: HomeOptions, cluster: Cluster, one: Filesystem) -> Iterator[Problem]:
    """The program on the node makes no home in a folder that other users own or write (node.check_folder)."""
    for node in cluster.nodes:
        given = layout.folder(node, one, options)
        if given is None or not layout.on_own_drives(node, one):
            continue
        found = layout.access(node, one, given)
        if found is None or (found[0] == "root" and not int(found[1], 8) & _WRITABLE_BY_OTHERS):
            continue
        state = f"The folder of homes {given} on {node.name} has owner {found[0]} and mode {found[1]}"
        declare = (
            f"storage_layout: {{filesystems: {{{given}: {{owner: root, mode: '755'}}}}}}"
            if given in _made(node)
            else f"nfs_server: {{modes: {{{one.name}: '755'}}}}"
        )
        yield (
            "",
            f"{state}: homes are created only in a folder that root alone owns and can write.",
            f"e.g. `{declare}`",
        )
        return


def _made(node: Node) -> Collection[str]:
    makes = node.offers(MakesFilesystems)
    return makes.made_filesystems(node) if makes is not None else ()


def _one_xfs(options: HomeOptions, cluster: Cluster, declared: list[Filesystem]) -> Iterator[Problem]:
    """XFS has one set of limits: each of two filesystems of homes would overwrite those of the other at every apply."""
    for node in cluster.nodes:
        first: dict[str, Filesystem] = {}
        for one in declared:
            path = layout.quota_on(node, one, options)
            if path is None:
                continue
            other = first.setdefault(path, one)
            if layout.enforced(cluster, one) != layout.enforced(cluster, other):
                both = f"storage.{other.name} and storage.{one.name}"
                yield (
                    "",
                    f"{both} have different quotas, but XFS has one limit for each user on {path} of {node.name}.",
                    "give both the same limits, or each a separate filesystem under `roles.storage_layout.filesystems`",
                )
                return


def warnings_of(options: HomeOptions, cluster: Cluster) -> Iterator[Problem]:
    """Allowed, but rarely intended."""
    waits: dict[str, list[str]] = {}
    for node in cluster.running("home", options):
        several = [one.name for one in node.filesystems if one.purpose is FilesystemPurpose.HOME]
        if len(several) > 1:
            yield (
                "",
                f"{node.name} has several filesystems of homes: declared users are on {several[0]}.",
                None,
            )
        for one in node.filesystems:
            if (
                one.purpose is FilesystemPurpose.HOME
                and one.kind.shared
                and node.name not in one.server_nodes
            ):
                home = _login_home(cluster, node)
                if home.startswith(f"{one.path}/"):
                    waits.setdefault(home, []).append(node.name)
    for home, nodes in waits.items():
        who = f"rackwright logs in to {fold(nodes)} as {cluster.ssh.user}, whose home {home} is on a server"
        local = "give this user one on the node's disk when nodes are installed, and declare it, e.g. `home: /var/lib/admin`"
        yield (
            "",
            f"{who}: while that is away, no login works.",
            f"mount homes elsewhere, e.g. `path: /shared/home`, or {local}",
        )


def _login_home(cluster: Cluster, node: Node) -> str:
    """Home of ssh.user: as declared, or where installers put it."""
    declares = node.offers(DeclaresUsers)
    for account in declares.accounts if declares is not None else ():
        if declares is not None and account.name == cluster.ssh.user:
            return declares.home_folder(cluster, node, account)
    return f"/home/{cluster.ssh.user}"

"""Whose homes are on a filesystem, which node makes them, and what limits they have. Pure functions."""

from __future__ import annotations

import json
from collections.abc import Iterator

from rackwright.model.cluster import Cluster, Node
from rackwright.model.interfaces import DeclaresUsers
from rackwright.model.mount_names import unit_name
from rackwright.model.storage import (
    Filesystem,
    FilesystemKind,
    FilesystemPurpose,
    MakesFilesystems,
    Quota,
    ServesFilesystems,
    made_below,
)
from rackwright.render import render
from rackwright.roles.home import paths
from rackwright.roles.home.options import HomeOptions


def filesystems(node: Node) -> tuple[Filesystem, ...]:
    """Filesystems of homes that a node uses or serves, in file order."""
    both = {one.name: one for one in (*node.filesystems, *node.served)}
    return tuple(one for one in both.values() if one.purpose is FilesystemPurpose.HOME)


def accounts(cluster: Cluster, one: Filesystem) -> Iterator[tuple[Node, str, int]]:
    """(node, user, uid) of every declared user whose home is on a filesystem, on every node."""
    for name in one.nodes:
        node = cluster.by_name[name]
        declares = node.offers(DeclaresUsers)
        for account in declares.accounts if declares is not None else ():
            if declares is not None and declares.home_folder(cluster, node, account) == home(
                one, account.name
            ):
                yield node, account.name, account.uid


def users(cluster: Cluster, one: Filesystem) -> dict[str, int]:
    """Their uids by name."""
    return {user: uid for _, user, uid in accounts(cluster, one)}


def home(one: Filesystem, user: str) -> str:
    """Where a client has a user's home."""
    return f"{one.path}/{user}"


def folder(node: Node, one: Filesystem, options: HomeOptions) -> str | None:
    """The folder below which a node makes the homes; None: another one does, or the site."""
    if one.kind is FilesystemKind.LOCAL:
        return one.path if node.name in one.nodes else None
    if one.kind is FilesystemKind.NFS and one.server_nodes:
        return one.export if node.name in one.server_nodes else None
    return one.path if node.name == options.made_on else None


def on_own_drives(node: Node, one: Filesystem) -> bool:
    """Whether the folder is on the node's own drives, and not on what it mounts from a server."""
    return not one.kind.shared or node.name in one.server_nodes


def access(node: Node, one: Filesystem, folder: str) -> tuple[str, str] | None:
    """(owner, octal mode) that roles give the folder on a node's own drives; None: no role sets them."""
    makes = node.offers(MakesFilesystems)
    if makes is not None and folder in makes.made_filesystems(node):
        return makes.made_access(node).get(folder)
    for given in node.options.values():
        if isinstance(given, ServesFilesystems) and one.kind in given.serves_kinds:
            mode = given.mode(one)
            return ("root", mode) if mode is not None else None
    return None


def mount(node: Node, one: Filesystem, options: HomeOptions) -> str | None:
    """What has to be mounted before a node makes homes; None: no role mounts what the folder is on."""
    given = folder(node, one, options)
    if given is None:
        return None
    served = one.kind is FilesystemKind.NFS and bool(one.server_nodes)
    return given if one.kind.shared and not served else made_below(node, given)


def mounts(cluster: Cluster, node: Node, options: HomeOptions) -> tuple[str, ...]:
    """All of them."""
    found = (mount(node, one, options) for one, _ in made_by(cluster, node, options))
    return tuple(dict.fromkeys(path for path in found if path is not None))


def quota_on(node: Node, one: Filesystem, options: HomeOptions) -> str | None:
    """Where the filesystem is mounted that a node sets the quotas of; None: it sets none."""
    given = folder(node, one, options)
    if one.quota is None or given is None or (given == one.path and one.kind.shared and not one.server_nodes):
        return None
    return made_below(node, given)


def limit(quota: Quota, user: str | None = None) -> tuple[int, int]:
    """(KiB, files) of a user; None: of those that are not named."""
    own = quota if user is None else quota.of(user)
    return (own.gib or 0) * 2**20, own.files or 0


def limits(cluster: Cluster, one: Filesystem) -> dict[int, tuple[int, int]]:
    """By uid, of declared users."""
    quota = one.quota
    if quota is None:
        return {}
    return {uid: limit(quota, user) for user, uid in users(cluster, one).items()}


def enforced(cluster: Cluster, one: Filesystem) -> tuple[tuple[int, int], dict[int, tuple[int, int]]] | None:
    """The default, and by uid the limits that differ from it; None: no quota."""
    if one.quota is None:
        return None
    default = limit(one.quota)
    return default, {uid: given for uid, given in limits(cluster, one).items() if given != default}


def made_by(cluster: Cluster, node: Node, options: HomeOptions) -> tuple[tuple[Filesystem, str], ...]:
    """The filesystems that a node makes homes on, each with the folder above them."""
    given = ((one, folder(node, one, options)) for one in filesystems(node))
    return tuple((one, path) for one, path in given if path is not None)


def settings(cluster: Cluster, node: Node, options: HomeOptions) -> str:
    """What the program on the node reads."""
    folders = [
        {
            "folder": path,
            "mount": mount(node, one, options),
            "path": one.path,
            "groups": list(options.groups),
            "skeleton": options.skeleton,
            "mode": options.mode,
            "users": dict(sorted(users(cluster, one).items())),
        }
        for one, path in made_by(cluster, node, options)
    ]
    return json.dumps({"folders": folders}, indent=2) + "\n"


def units(options: HomeOptions, mounts: tuple[str, ...] = ()) -> dict[str, str | None]:
    """What makes homes of new members of groups, by path; None: there are no groups."""
    if not options.groups:
        return {paths.SERVICE_PATH: None, paths.TIMER_PATH: None}
    return {
        paths.SERVICE_PATH: render(
            "home/homes.service.j2",
            run=f"/usr/bin/python3 -IS {paths.PROGRAM} members",
            mounts=[unit_name(path) for path in mounts],
        ),
        paths.TIMER_PATH: render("home/homes.timer.j2", minutes=options.every_minutes),
    }

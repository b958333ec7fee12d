"""podman's files and packages."""

from __future__ import annotations

from rackwright.model.cluster import Cluster, Node
from rackwright.osfamily.known import OsRelease
from rackwright.render import render
from rackwright.roles.podman.options import SUBIDS, PodmanOptions, users
from rackwright.workload.user_folders import UserFolders

STORAGE = "/etc/containers/storage.conf"
CONTAINERS = "/etc/containers/containers.conf"
REGISTRIES = "/etc/containers/registries.conf.d/50-rackwright.conf"
LOGINS = "/root/.config/containers/auth.json"
"""containers-auth.json(5), read 2026-11-23: read after what `podman login` wrote, and never written by it."""
SUBUID, SUBGID = "/etc/subuid", "/etc/subgid"


def packages(os: OsRelease) -> tuple[str, ...]:
    """podman, its runtime, and what it creates networks with."""
    return os.podman


def has_netavark(os: OsRelease) -> bool:
    """podman 3.4 has CNI only, and knows neither backends nor pools."""
    return "netavark" in os.podman


def subids(node: Node) -> str:
    """/etc/subuid and /etc/subgid: a range per declared user that follows from the uid."""
    lines = [f"{name}:{uid * SUBIDS}:{SUBIDS}\n" for name, uid in users(node)]
    return "".join(lines)


def folders(options: PodmanOptions) -> UserFolders:
    """Where users keep their images and containers."""
    return UserFolders("podman", (options.rootless_root,) if options.rootless_root is not None else ())


def declared(cluster: Cluster, node: Node, options: PodmanOptions) -> dict[str, str]:
    """Every file of the role, by path."""
    return {
        STORAGE: render("podman/storage.conf.j2", options=options),
        CONTAINERS: render("podman/containers.conf.j2", options=options, netavark=has_netavark(node.os)),
        REGISTRIES: render(
            "podman/registries.conf.j2",
            mirror=cluster.mirrors.containers,
            insecure=options.plain_http,
        ),
        SUBUID: subids(node),
        SUBGID: subids(node),
    }

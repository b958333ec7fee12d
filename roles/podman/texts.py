"""podman's files and packages."""

from __future__ import annotations

from rackwright.model.cluster import Cluster, Node
from rackwright.model.types import OsRelease
from rackwright.render import render
from rackwright.roles.podman.options import SUBIDS, PodmanOptions, users

STORAGE = "/etc/containers/storage.conf"
CONTAINERS = "/etc/containers/containers.conf"
REGISTRIES = "/etc/containers/registries.conf.d/50-rackwright.conf"
SUBUID, SUBGID = "/etc/subuid", "/etc/subgid"

_NETAVARK = ("netavark", "aardvark-dns")
# nftables and iptables: netavark up to 1.9 asks for iptables, later ones for nft
_PACKAGES: dict[OsRelease, tuple[str, ...]] = {
    OsRelease.DEBIAN_12: ("podman", "crun", *_NETAVARK, "iptables", "slirp4netns", "uidmap"),
    OsRelease.DEBIAN_13: ("podman", "crun", *_NETAVARK, "nftables", "passt", "uidmap"),
    OsRelease.UBUNTU_22_04: (
        "podman",
        "crun",
        "containernetworking-plugins",
        "iptables",
        "slirp4netns",
        "uidmap",
    ),
    OsRelease.UBUNTU_24_04: ("podman", "crun", *_NETAVARK, "iptables", "passt", "slirp4netns", "uidmap"),
    OsRelease.ROCKY_9: ("podman", "crun", *_NETAVARK, "passt", "shadow-utils-subid"),
    OsRelease.RHEL_9: ("podman", "crun", *_NETAVARK, "passt", "shadow-utils-subid"),
}


def packages(os: OsRelease) -> tuple[str, ...]:
    """podman, its runtime, and what it creates networks with."""
    return _PACKAGES[os]


def has_netavark(os: OsRelease) -> bool:
    """podman 3.4 of Ubuntu 22.04 has CNI only, and knows neither backends nor pools."""
    return "netavark" in _PACKAGES[os]


def subids(node: Node) -> str:
    """/etc/subuid and /etc/subgid: a range per declared user that follows from the uid."""
    lines = [f"{name}:{uid * SUBIDS}:{SUBIDS}\n" for name, uid in users(node)]
    return "".join(lines)


def declared(cluster: Cluster, node: Node, options: PodmanOptions) -> dict[str, str]:
    """Every file of the role, by path."""
    return {
        STORAGE: render("podman/storage.conf.j2", options=options),
        CONTAINERS: render("podman/containers.conf.j2", options=options, netavark=has_netavark(node.os)),
        REGISTRIES: render(
            "podman/registries.conf.j2",
            mirror=cluster.mirrors.containers,
            insecure=options.insecure_registries,
        ),
        SUBUID: subids(node),
        SUBGID: subids(node),
    }

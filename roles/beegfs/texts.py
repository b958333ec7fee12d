"""Files of the beegfs role, by path: shared by the deploy and its checks."""

from __future__ import annotations

from shlex import quote
from typing import NamedTuple

from rackwright.model.cluster import Cluster, Node
from rackwright.model.storage import Filesystem
from rackwright.mount_roles import rails
from rackwright.render import render
from rackwright.roles.beegfs.options import (
    AUTH,
    FOLDER,
    GRPC_PORT,
    META_PORT,
    MGMTD_PORT,
    STORAGE_PORT,
    BeegfsOptions,
    drop_in,
    made_below,
)

BUILD = f"{FOLDER}/beegfs-client-build.mk"
"""Read by the DKMS build: client_module/build/dist/etc of BeeGFS 8.3.1, read 2026-11-26."""
MGMTD = f"{FOLDER}/beegfs-mgmtd.toml"
DATABASE = "/var/lib/beegfs/mgmtd.sqlite"
INIT = "/opt/beegfs/sbin/beegfs-mgmtd --init"
"""Makes the database and fails where there is one (mgmtd/src/main.rs of beegfs-rust 8.3.1, init_db)."""


class Target(NamedTuple):
    """A folder of a server, to be prepared once."""

    folder: str
    disk: str
    """The filesystem that it is on, by its mount point."""
    words: str
    """Arguments of the program that prepares it."""


def client_files(cluster: Cluster, node: Node, options: BeegfsOptions) -> dict[str, str]:
    """The settings of each mount's client, and of the module's build."""
    mounted = options.mounted(node)
    found = {BUILD: render("beegfs/build.mk.j2", ofed_include=options.ofed_include)} if mounted else {}
    for one in mounted:
        interfaces = interfaces_of(cluster, node, one)
        path = f"{FOLDER}/rackwright-{one.name}.interfaces"
        if interfaces:
            found[path] = render("beegfs/interfaces.j2", interfaces=interfaces)
        found[options.conf_file(one)] = render(
            "beegfs/client.conf.j2",
            host=one.servers[0].address,
            auth=AUTH,
            major=options.major,
            port=options.client_port(node, one),
            mgmtd_port=MGMTD_PORT,
            rdma=one.rdma,
            interfaces_file=path if interfaces else None,
            settings=options.settings,
        )
    return found


def interfaces_of(cluster: Cluster, node: Node, filesystem: Filesystem) -> tuple[str, ...]:
    """Interfaces that have the node's addresses on the filesystem's network, where all are declared."""
    found = tuple(rail.interface for rail in rails(cluster, node, filesystem.network))
    return tuple(name for name in found if name is not None) if None not in found else ()


def server_files(cluster: Cluster, node: Node, options: BeegfsOptions) -> dict[str, str]:
    """The settings of each server of the node, and the drop-in that waits for its disks."""
    server, found = options.server, {}
    services = options.services(node)
    if server is None:
        return {}
    if "mgmtd" in services:
        found[MGMTD] = render(
            "beegfs/mgmtd.toml.j2",
            mgmtd_port=MGMTD_PORT,
            grpc_port=GRPC_PORT,
            auth=AUTH,
            certificate=next(iter(options.certificates(cluster, node)), None),
        )
    host = next(
        one.servers[0].address
        for one in cluster.storage.values()
        if one.kind in options.serves_kinds and one.server_nodes
    )
    for service, group, folders, port in (
        ("meta", server.meta, (server.meta.folder,), META_PORT),
        ("storage", server.storage, server.storage.folders, STORAGE_PORT),
    ):
        if service in services:
            found[f"{FOLDER}/beegfs-{service}.conf"] = render(
                "beegfs/server.conf.j2",
                host=host,
                auth=AUTH,
                mgmtd_port=MGMTD_PORT,
                service=service,
                port=port,
                folders=folders,
                rdma=group.rdma,
            )
            found[drop_in(service)] = render("beegfs/drop-in.conf.j2", folders=folders)
    return found


def targets(node: Node, options: BeegfsOptions) -> dict[str, tuple[Target, ...]]:
    """Folders of the node's servers, by server."""
    server, services = options.server, options.services(node)
    found: dict[str, tuple[Target, ...]] = {}
    if server is None:
        return found
    if "meta" in services:
        folder = server.meta.folder
        words = f"-C -p {quote(folder)} -s {server.meta.number(node.name)}"
        found["meta"] = (Target(folder, made_below(node, folder) or folder, words),)
    if "storage" in services:
        group = server.storage
        found["storage"] = tuple(
            Target(
                folder,
                made_below(node, folder) or folder,
                f"-C -p {quote(folder)} -s {group.number(node.name)} -i {group.target(node.name, folder)}",
            )
            for folder in group.folders
        )
    return found


def prepared(target: Target) -> str:
    """Shell: prints `prepared` where the folder is."""
    return f"[ -s {quote(f'{target.folder}/format.conf')} ] && echo prepared"


def prepare(service: str, target: Target) -> str:
    """Shell: prepares an empty folder on its mounted disk; the program refuses one that is not empty."""
    disk = quote(target.disk)
    return (
        f'mountpoint -q {disk} || {{ echo {disk}" is not mounted: "{quote(target.folder)}" would be on another disk" >&2; '
        f"exit 1; }}\n/opt/beegfs/sbin/beegfs-setup-{service} {target.words}"
    )

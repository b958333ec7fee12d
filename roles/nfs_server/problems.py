"""Mistakes of the nfs_server role's section that only the whole cluster shows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from rackwright.documents.nearest import suggest
from rackwright.model.cluster import Cluster, Node
from rackwright.model.platforms import Capability, why_lacking
from rackwright.model.ranges import expand, fold
from rackwright.model.storage import Filesystem, FilesystemPurpose, MakesFilesystems

if TYPE_CHECKING:
    from rackwright.roles.nfs_server.options import NfsServerOptions

Trouble = tuple[str, str, str | None]
PORT = 2049
RDMA_PORT = 20049
"""IANA: nfsrdma."""


def problems(options: NfsServerOptions, cluster: Cluster) -> Iterator[Trouble]:
    """(path, sentence, hint) of each."""
    served: dict[str, Filesystem] = {}
    for node in cluster.running("nfs_server", options):
        if (why := why_lacking(node.platform, Capability.NETWORK_FILESYSTEMS)) is not None:
            yield "", f"nfs_server cannot run on {node.name}: {why}.", "remove the role from such nodes"
            return
        yield from _folders(options, node)
        served |= {one.name: one for one in options.exported(node)}
    for one in served.values():
        yield from _clients(cluster, one)
        yield from _options(one)
        if one.quota is not None and one.purpose is not FilesystemPurpose.HOME:
            yield (
                "",
                f"{one.name} has a user quota, which is set only on filesystems of purpose home.",
                "remove `quota`, or limit its size by a volume of `storage_layout`",
            )
    for name, nodes in options.root_access.items():
        yield from _roots(cluster, name, nodes, served)
    for name in options.modes:
        if name not in served:
            yield f"modes.{name}", f"No node serves {name} with these options.", suggest(name, served)


def _folders(options: NfsServerOptions, node: Node) -> Iterator[Trouble]:
    """Folders that are exported twice, or mounted over each other."""
    makes = node.offers(MakesFilesystems)
    made = makes.made_filesystems(node) if makes is not None else {}
    seen: dict[str, str] = {}
    for one in options.exported(node):
        export = one.export or ""
        if export == "/":
            yield "", f"{one.name} exports the whole disk of {node.name}.", "e.g. `export: /srv/home`"
        first = seen.setdefault(export, one.name)
        if first != one.name:
            yield (
                "",
                f"{first} and {one.name} export the same folder of {node.name}, {export}.",
                "export each from a separate folder",
            )
        if one.name in options.modes and export in made:
            yield (
                f"modes.{one.name}",
                f"The role that makes the filesystem of {export} decides its mode.",
                "declare `mode` there, e.g. under `roles.storage_layout.filesystems`",
            )
    for one in options.bound(node):
        export = one.export or ""
        if export.startswith(f"{one.path}/") or one.path.startswith(f"{export}/"):
            yield (
                "",
                f"{node.name} uses {one.name} at {one.path}, but {export} is in its way.",
                f"export it from elsewhere, e.g. /srv/{one.name}, or from {one.path} itself",
            )


def _options(one: Filesystem) -> Iterator[Trouble]:
    """Mount options that this server does not answer."""
    declared = dict(option.partition("=")[::2] for option in one.options)
    version = declared.get("vers") or declared.get("nfsvers") or ""
    if version.startswith("3"):
        yield (
            "",
            f"{one.name} is mounted with NFSv3, but nfs_server serves only 4.1 and 4.2.",
            f"remove it from `storage.{one.name}.options`, or declare e.g. `vers=4.2`",
        )
    port, usual = declared.get("port"), str(RDMA_PORT if one.rdma else PORT)
    if port not in (None, usual):
        yield (
            "",
            f"{one.name} is mounted from port {port}, but nfs_server listens on {usual}.",
            f"remove `port={port}` from `storage.{one.name}.options`",
        )


def _clients(cluster: Cluster, one: Filesystem) -> Iterator[Trouble]:
    """An export is for its network: a node with no address there is refused."""
    without = [
        name
        for name in one.nodes
        if name not in one.server_nodes and cluster.by_name[name].address_on(one.network) is None
    ]
    if without:
        yield (
            "",
            f"{one.name} is exported to {one.network}, where {fold(without)} has no address.",
            f"declare another `network` of {one.name}, or addresses, or fewer `nodes`",
        )


def _roots(cluster: Cluster, name: str, nodes: str, served: dict[str, Filesystem]) -> Iterator[Trouble]:
    if name not in served:
        yield f"root_access.{name}", f"No node serves {name} with these options.", suggest(name, served)
        return
    one = served[name]
    for node in expand(nodes):
        if node not in cluster.by_name:
            yield (
                f"root_access.{name}",
                f"There is no node {node}.",
                suggest(node, cluster.by_name, what="nodes"),
            )
        elif cluster.by_name[node].address_on(one.network) is None:
            yield f"root_access.{name}", f"{node} has no address on {one.network}.", None

"""Declared filesystems on clusters made by hand, and roles that mount and make them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from pydantic import Field

from rackwright.model.cluster import Cluster, Node
from rackwright.model.options import RoleOptions
from rackwright.model.storage import (
    Filesystem,
    FilesystemKind,
    FilesystemPurpose,
    MakesFilesystems,
    Mount,
    MountsFilesystems,
    Server,
    ServesFilesystems,
)


class Mounts(RoleOptions, MountsFilesystems):
    """Mounts NFS; stands for nfs_client."""

    mounts_kinds: ClassVar[frozenset[FilesystemKind]] = frozenset({FilesystemKind.NFS})
    soft: bool = False

    def mount_of(self, node: Node, filesystem: Filesystem) -> Mount:
        what = f"{filesystem.servers[0].address}:{filesystem.export}"
        return Mount(filesystem, what, "nfs4", options=("soft" if self.soft else "hard",))


class Serves(RoleOptions, ServesFilesystems):
    """Serves NFS; stands for nfs_server."""

    serves_kinds: ClassVar[frozenset[FilesystemKind]] = frozenset({FilesystemKind.NFS})
    root_of: tuple[str, ...] = ()

    def roots(self, filesystem: Filesystem) -> tuple[str, ...]:
        return self.root_of


class Makes(RoleOptions, MakesFilesystems):
    """Makes filesystems on a node's own drives; stands for storage_layout."""

    made: dict[str, str]
    options: dict[str, tuple[str, ...]] = Field(default_factory=dict)

    def made_filesystems(self, node: Node) -> Mapping[str, str]:
        return self.made

    def made_options(self, node: Node) -> Mapping[str, tuple[str, ...]]:
        return {path: self.options.get(path, ()) for path in self.made}


def nfs(name: str, path: str, server: str = "h1", **changes: Any) -> Filesystem:
    """A filesystem of a server: the name of a node at 10.0.0.1, or an address."""
    is_node = not server[0].isdigit()
    fields: dict[str, Any] = {
        "name": name,
        "kind": FilesystemKind.NFS,
        "purpose": FilesystemPurpose.STATE,
        "path": path,
        "servers": (Server(name=server, address="10.0.0.1" if is_node else server, node=is_node),),
        "export": f"/srv/{name}",
        "network": "management",
    }
    return Filesystem(**{**fields, **changes})


def with_storage(
    cluster: Cluster, *filesystems: Filesystem, options: Mapping[str, RoleOptions] | None = None
) -> Cluster:
    """The cluster with these filesystems declared, used by the nodes that each names; `options` as the loader gives them."""
    nodes = tuple(
        node.model_copy(
            update={
                "filesystems": tuple(one for one in filesystems if node.name in one.nodes),
                "served": tuple(one for one in filesystems if node.name in one.server_nodes),
            }
        )
        for node in cluster.nodes
    )
    if options is not None:
        nodes = tuple(node.with_options(options) for node in nodes)
    return Cluster.model_validate(
        {
            **{name: getattr(cluster, name) for name in Cluster.model_fields},
            "nodes": nodes,
            "storage": {one.name: one for one in filesystems},
        }
    )

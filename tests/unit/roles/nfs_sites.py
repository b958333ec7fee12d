"""The small site of `sites` with filesystems that head1 serves, or that a server outside has."""

from __future__ import annotations

from typing import Any

from rackwright.model.cluster import Cluster, NodeAddress
from rackwright.model.options import RoleOptions
from rackwright.model.storage import Filesystem, Server
from rackwright.roles.nfs_client.options import NfsClientOptions
from rackwright.roles.nfs_server.options import NfsServerOptions
from rackwright.roles.storage_layout.options import StorageLayoutOptions
from tests.factories import make_address, make_cluster
from tests.unit.roles.sites import NETWORKS, site

HEAD = Server(name="head1", address="10.9.0.10", node=True)
OUTSIDE = Server(name="nas.example.com", address="nas.example.com", node=False)
EVERYWHERE = ("head1", "gpu1", "gpu2")
ARRAY = StorageLayoutOptions.model_validate(
    {
        "disks": {"a": {"slot": "0000:01:00.0"}, "b": {"slot": "0000:02:00.0"}},
        "arrays": {"store": {"level": 1, "disks": ["a", "b"]}},
        "filesystems": {"/srv": {"on": "store"}},
    }
)


def nfs(**changes: Any) -> Filesystem:
    """`home` of head1, used by every node."""
    fields: dict[str, Any] = {
        "name": "home",
        "kind": "nfs",
        "purpose": "home",
        "path": "/home",
        "servers": (HEAD,),
        "export": "/srv/home",
        "network": "management",
        "nodes": EVERYWHERE,
    }
    return Filesystem.model_validate(fields | changes)


def served(
    *filesystems: Filesystem,
    client: NfsClientOptions | None = None,
    server: NfsServerOptions | None = None,
    others: dict[str, RoleOptions] | None = None,
    extra: dict[str, tuple[NodeAddress, ...]] | None = None,
    **changes: Any,
) -> Cluster:
    """The site with these filesystems; roles run where they have something to do."""
    options: dict[str, RoleOptions] = {
        "nfs_client": client or NfsClientOptions(),
        "nfs_server": server or NfsServerOptions(),
        **(others or {}),
    }
    bare = site({}, **changes)
    nodes = [
        node.model_copy(
            update={
                "filesystems": tuple(one for one in filesystems if node.name in one.nodes),
                "served": tuple(one for one in filesystems if node.name in one.server_nodes),
                "addresses": (*node.addresses, *(extra or {}).get(node.name, ())),
            }
        ).with_options(options)
        for node in bare.nodes
    ]
    return make_cluster(
        *nodes, networks=NETWORKS, storage={one.name: one for one in filesystems}, ssh=bare.ssh
    )


def on_storage(name: str, number: int) -> dict[str, tuple[NodeAddress, ...]]:
    """An address on the storage network, for head1, which has none."""
    return {name: (make_address("storage", f"10.10.0.{number}"),)}

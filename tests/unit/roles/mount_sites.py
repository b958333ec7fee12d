"""Sites that mount filesystems, for the tests of the roles that do: head1, gpu1 and gpu2, the workers on two rails."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rackwright.model.cluster import Cluster, Node
from rackwright.model.interfaces import DeclaresKernel
from rackwright.model.options import RoleOptions
from rackwright.model.storage import Filesystem, FilesystemKind, FilesystemPurpose, Server
from rackwright.model.types import LinkKind, Platform
from tests.unit.roles.fake_host import FakeHost, judged
from tests.unit.roles.rail_sites import Interfaces, fabric_site

KERNEL = "6.8.0-139-generic"


class Kernel(RoleOptions, DeclaresKernel):
    """Stands for the role that installs a declared kernel."""

    release: str | None = KERNEL

    def turns_acs_off(self, node: Node) -> bool:
        """Never."""
        return False

    def kernel_release(self, cluster: Cluster, node: Node) -> str | None:
        """The one given."""
        return self.release


def server(address: str) -> Server:
    """A server outside the cluster."""
    return Server(name=address, address=address, node=False)


def filesystem(kind: FilesystemKind, *servers: str, **changes: Any) -> Filesystem:
    """A filesystem of this kind on /scratch, which all workers use over the fabric."""
    fields: dict[str, Any] = {
        "name": "scratch",
        "kind": kind,
        "purpose": FilesystemPurpose.SCRATCH,
        "path": "/scratch",
        "servers": tuple(server(one) for one in servers),
        "network": "fabric",
        "nodes": ("gpu1", "gpu2"),
    }
    return Filesystem(**{**fields, **changes})


def mounting_site(
    options: Mapping[str, RoleOptions],
    *filesystems: Filesystem,
    kernel: str | None = KERNEL,
    named: bool = True,
    kind: LinkKind = LinkKind.ROCE,
    platform: Platform = Platform.BARE_METAL,
    **changes: Any,
) -> Cluster:
    """A cluster that declares these filesystems, a kernel and interfaces."""
    bare = fabric_site({}, kind=kind, platform=platform, cabled=False, **changes)
    every = {**options, "kernel_stand_in": Kernel(release=kernel), "naming": Interfaces(named=named)}
    nodes = tuple(
        node.model_copy(
            update={
                "filesystems": tuple(one for one in filesystems if node.name in one.nodes),
                "served": tuple(one for one in filesystems if node.name in one.server_nodes),
            }
        ).with_options(every)
        for node in bare.nodes
    )
    return bare.model_copy(update={"nodes": nodes, "storage": {one.name: one for one in filesystems}})


def verdict(
    role: str, checks: Any, name: str, cluster: Cluster, replies: Mapping[str, Any], **host: Any
) -> Any:
    """The judged result of one check of gpu1."""
    return judged(role, checks, name, cluster, cluster.by_name["gpu1"], FakeHost(replies, **host))

"""Options of the podman role."""

from __future__ import annotations

from collections.abc import Iterable
from ipaddress import IPv4Network
from typing import ClassVar, Literal, Self

from pydantic import Field, model_validator

from rackwright.containers import AddressPool, PullingOptions, pool_problems, registry_problems
from rackwright.model.cluster import Cluster, Node
from rackwright.model.interfaces import DeclaresUsers, NeedsForwarding
from rackwright.model.strings import NodePath
from rackwright.model.types import NodeRole
from rackwright.model.written_folders import WritesBelow, WrittenFolder

SUBIDS = 65536
"""Subordinate ids of one user: as many as an image may use."""
HIGHEST_UID = (1 << 32) // SUBIDS - 2
"""The range of a higher uid would not end below 2^32 - 1."""


class PodmanOptions(PullingOptions, NeedsForwarding, WritesBelow):
    """podman for root and, with subordinate ids, for every user of the access role."""

    applies_to: ClassVar[frozenset[NodeRole]] = frozenset({NodeRole.HEAD, NodeRole.WORKER, NodeRole.LOGIN})

    certificates: ClassVar[str] = "/etc/containers/certs.d"

    graph_root: NodePath = Field(
        default="/var/lib/containers/storage",
        description="root's images and containers, best on local scratch.",
    )
    rootless_root: NodePath | None = Field(
        default=None,
        description="Folder owned by root for users' images, with a folder for each uid, on local scratch (root makes "
        "them, before a user's first job or login). None: in their "
        "homes, which does not work where homes are on NFS (no overlay, no subordinate ids there).",
    )
    storage_driver: Literal["overlay", "btrfs", "vfs"] = Field(
        default="overlay", description="For users without root, overlay needs kernel 5.13 or later."
    )
    cgroup_manager: Literal["systemd", "cgroupfs"] = Field(
        default="systemd", description="What creates cgroups."
    )
    pids_limit: int = Field(
        default=2048,
        ge=0,
        description="Processes and threads in one container (2048 is podman's own); 0: no limit, and no need of "
        "the pids controller.",
    )
    subnet: IPv4Network = Field(
        default=IPv4Network("10.88.0.0/16"),
        description="The default network of root's containers (podman's own).",
    )
    subnet_pools: tuple[AddressPool, ...] = Field(
        default=(AddressPool(base=IPv4Network("10.89.0.0/16")),),
        min_length=1,
        description="Ranges for further networks.",
    )

    @model_validator(mode="after")
    def _pools_are_pools(self) -> Self:
        for pool in self.subnet_pools:
            if pool.size < pool.base.prefixlen:
                raise ValueError(f"No subnet of /{pool.size} fits into the subnet pool {pool.base}.")
        return self

    def written_folders(self, node: Node) -> tuple[WrittenFolder, ...]:
        """root's images, and users' where they are not in their homes."""
        roots = [WrittenFolder(self.graph_root, "podman's images", "podman.graph_root")]
        if self.rootless_root is not None:
            roots.append(WrittenFolder(self.rootless_root, "users' images", "podman.rootless_root"))
        return tuple(roots)

    def problems(self, cluster: Cluster) -> Iterable[tuple[str, str, str | None]]:
        """Overlapping ranges, certificates, and users whose subordinate ids would not fit into 32 bits."""
        yield from registry_problems(self, cluster)
        yield from pool_problems(
            cluster,
            [
                ("subnet", self.subnet),
                *((f"subnet_pools[{index}].base", pool.base) for index, pool in enumerate(self.subnet_pools)),
            ],
        )
        for node in cluster.running("podman", self):
            for name, uid in users(node):
                if uid > HIGHEST_UID:
                    yield (
                        "",
                        (
                            f"User {name} has uid {uid}, and subordinate ids are only there for uids up to "
                            f"{HIGHEST_UID}."
                        ),
                        "give users of podman lower uids, or keep the role off these nodes (`on`)",
                    )
                    return


def users(node: Node) -> list[tuple[str, int]]:
    """Name and uid of every declared user of a node, ordered by uid."""
    declared = node.offers(DeclaresUsers)
    accounts = declared.accounts if declared is not None else ()
    return sorted(((account.name, account.uid) for account in accounts), key=lambda user: user[1])

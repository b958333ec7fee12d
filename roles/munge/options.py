"""Options of the munge role."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, ClassVar

from pydantic import Field

from rackwright.model.interfaces import ProvesUsers, SharedKey, SharesKey
from rackwright.model.options import RoleOptions
from rackwright.model.types import NodeRole, Workload
from rackwright.osfamily.names import names

if TYPE_CHECKING:
    from rackwright.model.cluster import Node


class MungeOptions(ProvesUsers, SharesKey, RoleOptions):
    """MUNGE on every node that runs a Slurm daemon or client."""

    applies_to: ClassVar[frozenset[NodeRole]] = frozenset({NodeRole.HEAD, NodeRole.WORKER, NodeRole.LOGIN})
    workloads: ClassVar[frozenset[Workload]] = frozenset({Workload.SLURM})
    secrets: ClassVar[tuple[str, ...]] = ("munge_key",)
    shared_secret: ClassVar[str] = "munge_key"

    uid: int = Field(
        default=440,
        ge=1,
        lt=65534,
        description="User id of munge, the same on every node. The default lies between the ids that "
        "adduser (100 upwards) and useradd -r (999 downwards) give away.",
    )
    gid: int = Field(default=440, ge=1, lt=65534, description="Group id of munge, the same on every node.")
    threads: int = Field(
        default=2,
        ge=1,
        le=256,
        description="munged threads on workers and login nodes (munged's own default).",
    )
    head_threads: int = Field(
        default=10,
        ge=1,
        le=256,
        description="munged threads on heads, where every RPC of the cluster is decoded "
        "(Slurm's high throughput guide recommends 10).",
    )
    all_pairs_nodes_max: int = Field(
        default=16,
        ge=2,
        le=256,
        description="Up to this many nodes verify decodes from every node to every node; above it, "
        "along a ring and to and from the primary head.",
    )
    clock_skew_seconds_max: float = Field(
        default=60,
        gt=0,
        le=300,
        description="verify warns when a credential's encode time is further than this from the clock "
        "of the node that decodes it. MUNGE itself refuses credentials after 300 s.",
    )

    def shared_key(self, node: Node, secret: str) -> SharedKey:
        """The key that munged reads when it starts; it holds no other (munged(8), read 2026-11-23)."""
        software = names(node.family, "munge")
        content = base64.b64decode(secret, validate=True)
        return SharedKey(software.paths["key"], "munge", "400", software.unit or "", content)

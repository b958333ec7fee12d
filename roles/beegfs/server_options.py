"""Options of BeeGFS' servers."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, field_validator

from rackwright.model.options import Frozen
from rackwright.model.package_archive import PackageVersion
from rackwright.model.ranges import RangeMistake, expand
from rackwright.model.strings import NodePath
from rackwright.model.text import mistake

_FIRST_TARGET = 100
Folders = Annotated[tuple[NodePath, ...], Field(min_length=1, max_length=99)]


class ServerGroup(Frozen):
    """Nodes that run one kind of server."""

    nodes: str = Field(
        description="NodeSet; numeric IDs follow its order from 1 on, so add new nodes at the end."
    )
    rdma: bool = Field(default=True, description="Whether clients may use RDMA; TCP is always offered.")

    @field_validator("nodes")
    @classmethod
    def _is_a_range(cls, nodes: str) -> str:
        try:
            expand(nodes)
        except RangeMistake as error:
            raise mistake(error.message, error.hint) from error
        return nodes

    @property
    def names(self) -> tuple[str, ...]:
        """The nodes, in order."""
        return expand(self.nodes)

    def number(self, node: str) -> int:
        """Numeric ID of a node's server."""
        return self.names.index(node) + 1


class MetaServers(ServerGroup):
    """Servers of metadata, one on each node."""

    folder: NodePath = Field(
        description="Where it keeps metadata: a folder on a filesystem of `storage_layout`."
    )


class StorageServers(ServerGroup):
    """Servers of data, one on each node, with a target for each folder."""

    folders: Folders = Field(description="Its targets: folders on filesystems of `storage_layout`.")

    def target(self, node: str, folder: str) -> int:
        """Numeric ID of a target, e.g. 402: the second of the fourth node (beegfs-setup-storage's own example)."""
        return self.number(node) * _FIRST_TARGET + self.folders.index(folder) + 1


class Servers(Frozen):
    """The servers of one filesystem, whose management daemon runs on the node that `storage` names as its server."""

    meta: MetaServers
    storage: StorageServers
    mgmtd_version: PackageVersion | None = Field(
        default=None,
        description="Exact version of the package beegfs-mgmtd, where it is not `version`.",
    )
    tls: bool = Field(
        default=True,
        description="TLS on the management daemon's gRPC port, with a certificate of the role site_ca. Data and metadata "
        "are never encrypted by BeeGFS.",
    )

"""The `storage:` section as written: filesystems by name."""

from __future__ import annotations

from pydantic import Field

from rackwright.model.options import Frozen
from rackwright.model.storage import FilesystemKind, FilesystemPurpose, Quota, StorageFloor
from rackwright.model.storage_bench import StorageBench
from rackwright.model.types import NodeRole


class FilesystemSection(Frozen):
    """One filesystem."""

    kind: FilesystemKind = Field(description="Kind of filesystem; `local`: each node's own drives.")
    purpose: FilesystemPurpose = Field(description="Purpose; determines mount options and checks.")
    path: str = Field(description="Mount point, the same on every node, e.g. /home.")
    servers: tuple[str, ...] = Field(
        default=(),
        description="Servers: nodes of the cluster, addresses, or DNS names with a dot. lustre: NIDs of the MGS "
        "(10.0.0.5@o2ib); cephfs: monitors; beegfs: management daemon; weka: backends.",
    )
    export: str | None = Field(
        default=None,
        description="nfs, vast: folder that the servers export. cephfs: folder inside the filesystem.",
    )
    fsname: str | None = Field(
        default=None,
        pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$",
        description="lustre, weka, cephfs, gpfs: name of the filesystem on the servers.",
    )
    network: str | None = Field(
        default=None,
        description="Network over which clients reach servers that are cluster nodes. None: the management network.",
    )
    rdma: bool = Field(default=False, description="Use RDMA; the network must support it.")
    options: tuple[str, ...] = Field(
        default=(),
        description="Mount options; they override those of kind and purpose, e.g. [nconnect=8, noatime].",
    )
    read_only: bool = Field(default=False, description="Mount read-only.")
    automount: bool = Field(
        default=True,
        description="Mount on first access, so that nodes and servers can boot in any order. false: mount at boot.",
    )
    nodes: str | None = Field(
        default=None, description="NodeSet of the nodes that mount it. None: see `roles`."
    )
    roles: tuple[NodeRole, ...] | None = Field(
        default=None,
        min_length=1,
        description="Node roles whose nodes mount it. Without `nodes` and `roles`: every node.",
    )
    quota: Quota | None = Field(default=None, description="Limits per user.")
    floor: StorageFloor | None = Field(
        default=None, description="Minimum rates; below them `rackwright storage bench` fails."
    )
    bench: StorageBench = Field(
        default_factory=StorageBench, description="What `rackwright storage bench` writes, and how."
    )
    min_free_percent: float | None = Field(
        default=None,
        ge=0,
        le=90,
        description="Free space in percent below which verify warns; below half of it, verify fails. None: by purpose.",
    )
    min_free_files_percent: float = Field(
        default=5.0,
        ge=0,
        le=90,
        description="Free inodes, as above; not checked if the filesystem has no inode limit.",
    )
    stat_seconds: float = Field(
        default=5.0, gt=0, le=60, description="Longest time that a stat of the mount point may take."
    )

"""The `storage:` section as written: filesystems by name."""

from __future__ import annotations

from pydantic import Field

from rackwright.model.options import Frozen
from rackwright.model.storage import FilesystemKind, FilesystemPurpose, Quota, StorageFloor
from rackwright.model.storage_bench import StorageBench
from rackwright.model.types import NodeRole


class FilesystemSection(Frozen):
    """One filesystem."""

    kind: FilesystemKind = Field(description="Kind of filesystem; `local`: on each node's own drives.")
    purpose: FilesystemPurpose = Field(description="Purpose; decides how it is mounted and checked.")
    path: str = Field(description="Folder it is mounted on, the same on every node, e.g. /home.")
    servers: tuple[str, ...] = Field(
        default=(),
        description="Servers: nodes of the cluster, addresses, or DNS names with a dot; of lustre the NIDs of the MGS "
        "(10.0.0.5@o2ib), of cephfs its monitors, of beegfs the management daemon, of weka its backends.",
    )
    export: str | None = Field(
        default=None,
        description="nfs, vast: the folder that the servers export. cephfs: the folder inside the filesystem.",
    )
    fsname: str | None = Field(
        default=None,
        pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$",
        description="lustre, weka, cephfs, gpfs: its name on the servers.",
    )
    network: str | None = Field(
        default=None,
        description="Network over which clients reach servers that are nodes. None: the management network.",
    )
    rdma: bool = Field(default=False, description="Over RDMA, on a network that has it.")
    options: tuple[str, ...] = Field(
        default=(),
        description="Mount options, overriding those of kind and purpose, e.g. [nconnect=8, noatime].",
    )
    read_only: bool = Field(default=False, description="Mounted read-only.")
    automount: bool = Field(
        default=True,
        description="Mount on first access, so that nodes and servers boot in any order. false: at boot.",
    )
    nodes: str | None = Field(
        default=None, description="NodeSet of the nodes that use it. None: see `roles`."
    )
    roles: tuple[NodeRole, ...] | None = Field(
        default=None,
        min_length=1,
        description="Node roles whose nodes use it. Without `nodes` and `roles`: every node.",
    )
    quota: Quota | None = Field(default=None, description="Limits for each user.")
    floor: StorageFloor | None = Field(
        default=None, description="Rates below which `rackwright storage bench` fails."
    )
    bench: StorageBench = Field(
        default_factory=StorageBench, description="What `rackwright storage bench` writes and how."
    )
    min_free_percent: float | None = Field(
        default=None,
        ge=0,
        le=90,
        description="Free space below which verify warns; half of it fails. None: by purpose.",
    )
    min_free_files_percent: float = Field(
        default=5.0,
        ge=0,
        le=90,
        description="Free inodes, likewise; not checked where the filesystem has no limit.",
    )
    stat_seconds: float = Field(
        default=5.0, gt=0, le=60, description="How long a stat of the mount point may take."
    )

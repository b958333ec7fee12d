"""Declared filesystems: what is mounted where, from which server, and for what purpose.

A role that mounts a kind of filesystem implements `MountsFilesystems`, one that serves it `ServesFilesystems`, and one
that creates filesystems on a node's local disks `MakesFilesystems`; no role refers to another.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, ClassVar

from pydantic import Field, model_validator

from rackwright.model.disks import Selector
from rackwright.model.options import Frozen
from rackwright.model.sku import Source
from rackwright.model.storage_bench import StorageBench
from rackwright.model.text import mistake
from rackwright.model.types import NetworkPurpose

if TYPE_CHECKING:
    from rackwright.model.cluster import Node


class FilesystemKind(StrEnum):
    """Kinds of filesystems that the cluster file can declare."""

    NFS = "nfs"
    VAST = "vast"
    """NFS with VAST's multipath client."""
    LUSTRE = "lustre"
    BEEGFS = "beegfs"
    WEKA = "weka"
    CEPHFS = "cephfs"
    GPFS = "gpfs"
    """IBM Storage Scale."""
    LOCAL = "local"
    """On a node's local drives, created by the role storage_layout."""

    @property
    def shared(self) -> bool:
        """Whether several nodes see the same files."""
        return self is not FilesystemKind.LOCAL


class FilesystemPurpose(StrEnum):
    """What a filesystem is for; determines how it is mounted and checked."""

    HOME = "home"
    DATA = "data"
    CHECKPOINT = "checkpoint"
    SOFTWARE = "software"
    SCRATCH = "scratch"
    STATE = "state"
    """State of services such as slurmctld, shared by a pair of heads."""


class Quota(Frozen):
    """Hard limits per user on a filesystem."""

    gib: int | None = Field(default=None, ge=1, le=2**32, description="GiB per user.")
    files: int | None = Field(default=None, ge=1, le=2**40, description="Files and folders per user.")
    users: dict[str, Quota] = Field(default_factory=dict, description="Limits for individual users, by name.")

    @model_validator(mode="after")
    def _limits_something(self) -> Quota:
        if self.gib is None and self.files is None and not self.users:
            raise mistake("A quota needs `gib`, `files` or both.", "e.g. `quota: {gib: 100, files: 1000000}`")
        if any(one.users for one in self.users.values()):
            raise mistake("The limits of one user cannot contain `users`.")
        return self

    def of(self, user: str) -> Quota:
        """The limits of a user. XFS enforces the default for a limit that the user's entry leaves out, and so do we."""
        own = self.users.get(user, self)
        return own.model_copy(update={"gib": own.gib or self.gib, "files": own.files or self.files})


class StorageFloor(Frozen):
    """Rates below which `rackwright storage bench` fails. GB/s are 10^9 bytes per second."""

    read_gbs: float | None = Field(default=None, gt=0, description="Read rate of one node alone, in GB/s.")
    write_gbs: float | None = Field(default=None, gt=0, description="Write rate of one node alone, in GB/s.")
    together_read_gbs: float | None = Field(
        default=None, gt=0, description="Read rate of all nodes together, in GB/s."
    )
    together_write_gbs: float | None = Field(
        default=None, gt=0, description="Write rate of all nodes together, in GB/s."
    )
    metadata_ops: float | None = Field(
        default=None,
        gt=0,
        description="Files created, looked up and removed per second by all nodes together.",
    )
    source: Source | None = Field(default=None, description="Source of the figures.")

    @model_validator(mode="after")
    def _is_cited(self) -> StorageFloor:
        if all(getattr(self, name) is None for name in FLOORS):
            raise mistake("A floor needs at least one rate.", "e.g. `floor: {read_gbs: 4, write_gbs: 2}`")
        if self.source is None:
            raise mistake(
                "A floor needs a `source`.",
                "e.g. `source: {text: DGX SuperPOD H100 RA, table 6, read: 2026-11-20}`",
            )
        return self


FLOORS = ("read_gbs", "write_gbs", "together_read_gbs", "together_write_gbs", "metadata_ops")


class Server(Frozen):
    """One server of a filesystem."""

    name: str
    """A node of the cluster, or as declared: an address, a DNS name, a Lustre NID."""
    address: str
    """What clients connect to; for a node, its address on the filesystem's network."""
    node: bool
    """Whether it is a node of the cluster."""


class Filesystem(Frozen):
    """A filesystem and the nodes that mount it."""

    name: str
    kind: FilesystemKind
    purpose: FilesystemPurpose
    path: str
    """Mount point, the same on every node."""
    servers: tuple[Server, ...] = ()
    export: str | None = None
    """Exported folder (nfs, vast), or folder inside the filesystem (cephfs)."""
    fsname: str | None = None
    """Name of the filesystem on its servers (lustre, weka, cephfs, gpfs)."""
    network: str = ""
    """Network over which clients reach the servers."""
    network_purpose: NetworkPurpose = NetworkPurpose.MANAGEMENT
    """Purpose of that network."""
    rdma: bool = False
    options: tuple[str, ...] = ()
    """Declared mount options, which override those that the role sets by kind and purpose."""
    read_only: bool = False
    automount: bool = True
    """Mounted on first access, and again after a server outage; not for `local`."""
    nodes: tuple[str, ...] = ()
    """Nodes that mount it at `path`, in file order, including servers."""
    quota: Quota | None = None
    floor: StorageFloor | None = None
    min_free_percent: float = 5.0
    min_free_files_percent: float = 5.0
    stat_seconds: float = 5.0
    """Longest time that a stat of `path` may take."""
    bench: StorageBench = StorageBench()

    @property
    def server_nodes(self) -> tuple[str, ...]:
        """Nodes of the cluster that serve it."""
        return tuple(server.name for server in self.servers if server.node)


@dataclass(frozen=True)
class Mount:
    """How one node mounts a filesystem: arguments of mount(8), and what the kernel shows afterwards."""

    filesystem: Filesystem
    what: str
    """What= of the mount unit, e.g. `10.0.0.10:/srv/home`."""
    type: str
    """Type= of the mount unit, e.g. `nfs4`."""
    options: tuple[str, ...] = ()
    """Options for mount(8)."""
    sources: tuple[str, ...] = ()
    """Sources that /proc/self/mountinfo may show, e.g. `10.0.0.10:/srv/home`; empty: only `what`."""
    types: tuple[str, ...] = ()
    """Types that it may show; empty: only `type`."""
    shown: Mapping[str, str | None] = field(default_factory=dict)
    """Options that it must show, with their values; None: a flag."""
    first_decides: frozenset[str] = frozenset()
    """Options of `shown` that the first mount from a server sets for all mounts on its connections, e.g. `nconnect`."""
    requires: tuple[str, ...] = ()
    """Units that must run first, e.g. `lnet.service`."""
    timeout_seconds: int = 90
    """Longest time that mounting may take."""


class MountsFilesystems:
    """Options of a role that mounts some kinds of filesystems."""

    mounts_kinds: ClassVar[frozenset[FilesystemKind]]

    def mount_of(self, node: Node, filesystem: Filesystem) -> Mount:
        """How this node mounts a filesystem of such a kind that is in `node.filesystems`."""
        raise NotImplementedError


class ServesFilesystems:
    """Options of a role that serves some kinds of filesystems from nodes of the cluster."""

    serves_kinds: ClassVar[frozenset[FilesystemKind]]
    exports_file: ClassVar[str | None] = None
    """The file in /etc/exports.d that the role writes; None: none is written."""

    def roots(self, filesystem: Filesystem) -> tuple[str, ...]:
        """Nodes whose root is not squashed on a filesystem of this role: all, unless the role squashes."""
        return filesystem.nodes

    def mode(self, filesystem: Filesystem) -> str | None:
        """Octal mode that this role sets on the served folder; None: it sets none."""
        return None


class MakesFilesystems:
    """Options of the role that creates filesystems on a node's local drives."""

    def made_filesystems(self, node: Node) -> Mapping[str, str]:
        """Filesystem type by mount point."""
        raise NotImplementedError

    def made_options(self, node: Node) -> Mapping[str, tuple[str, ...]]:
        """Mount options by mount point."""
        raise NotImplementedError

    def made_access(self, node: Node) -> Mapping[str, tuple[str, str]]:
        """(owner, octal mode) of the root folder by mount point; left out: unknown."""
        return {}

    def data_disks(self, node: Node) -> Sequence[Selector]:
        """The disks that it may use on a node, so that nothing else is placed on them."""
        return ()


def mount_of(node: Node, filesystem: Filesystem) -> Mount | None:
    """How a node mounts a filesystem; None if the node serves it, or no role mounts it."""
    if node.name in filesystem.server_nodes:
        return None
    for given in node.options.values():
        if isinstance(given, MountsFilesystems) and filesystem.kind in given.mounts_kinds:
            return given.mount_of(node, filesystem)
    return None


def made_below(node: Node, folder: str) -> str | None:
    """Mount point of the local filesystem that holds a folder; None: no role creates one."""
    makes = node.offers(MakesFilesystems)
    made = makes.made_filesystems(node) if makes is not None else {}
    above = [path for path in made if folder == path or folder.startswith(f"{path}/")]
    return max(above, key=len, default=None)


def home_of(node: Node) -> Filesystem | None:
    """The declared filesystem that holds homes on a node."""
    return next((one for one in node.filesystems if one.purpose is FilesystemPurpose.HOME), None)


def scratch_of(node: Node, name: str | None = None) -> tuple[Filesystem, ...]:
    """Local scratch filesystems that a node mounts, or the one with this name."""
    return tuple(
        one
        for one in node.filesystems
        if one.kind is FilesystemKind.LOCAL
        and one.purpose is FilesystemPurpose.SCRATCH
        and name in (None, one.name)
    )


def on_a_filesystem(node: Node, path: str) -> bool:
    """Whether a folder is on a declared filesystem or one that a role creates, so not on the boot disk."""
    makes = node.offers(MakesFilesystems)
    made = makes.made_filesystems(node) if makes is not None else {}
    roots = {one.path for one in node.filesystems} | set(made)
    return any(path == root or path.startswith(f"{root}/") for root in roots)

"""Options of the nfs_server role."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, ClassVar

from pydantic import Field, StringConstraints, field_validator, model_validator

from rackwright.model.cluster import Cluster, Node
from rackwright.model.interfaces import GoesFirst, WritesUnitFiles
from rackwright.model.mount_names import unit_name
from rackwright.model.options import RoleOptions
from rackwright.model.ranges import RangeMistake, expand
from rackwright.model.services import Listener, Listens
from rackwright.model.storage import (
    Filesystem,
    FilesystemKind,
    FilesystemPurpose,
    MakesFilesystems,
    ServesFilesystems,
)
from rackwright.model.text import mistake
from rackwright.model.types import Platform
from rackwright.roles.nfs_server import problems
from rackwright.roles.nfs_server.problems import PORT, Trouble

DROP_IN = "/etc/systemd/system/nfs-server.service.d/order-with-mounts.conf"
"""Named as the drop-in that nfs-utils' generator makes, which requires the mount of each export: one array that does not
start would end the server, and so all other exports. Ours takes its place (systemd.unit(5): /etc before generators)."""
EXPORTS = "/etc/exports.d/rackwright.exports"
_OPEN_TO_USERS = frozenset({FilesystemPurpose.DATA, FilesystemPurpose.SCRATCH, FilesystemPurpose.CHECKPOINT})
_LEAST_THREADS, _THREADS_PER_CORE = 64, 8
_THREAD_MIB = 32
"""Memory of the node for each thread: a thread holds the pages of one request, a little over 1 MiB (svc_alloc_arg and
RPCSVC_MAXPAYLOAD of Linux 6.12), so that all of them together take some 3 % of it."""
_KERNEL_SECONDS = 90
"""The kernel's own lease and grace; each stays as it is where only the other is set."""
_FEWEST = 8
"""rpc.nfsd's own number, nfsd(8) of nfs-utils 2.6.2."""


class NfsServerOptions(RoleOptions, ServesFilesystems, GoesFirst, Listens, WritesUnitFiles):
    """How nodes serve what `storage:` declares with `kind: nfs` and one of them as its server."""

    serves_kinds: ClassVar[frozenset[FilesystemKind]] = frozenset({FilesystemKind.NFS})
    exports_file: ClassVar[str] = EXPORTS

    threads: int | None = Field(
        default=None,
        ge=1,
        le=4096,
        description="Threads of the kernel's server. None: 8 per core, at least 64, but at most one per 32 MiB of "
        "memory.",
    )
    root_access: dict[str, str] = Field(
        default_factory=dict,
        description="Nodes (NodeSet) by filesystem whose root is not squashed on it (`no_root_squash`). On all others "
        "root is squashed.",
    )
    modes: dict[str, Annotated[str, StringConstraints(pattern=r"^[0-7]{3,4}$")]] = Field(
        default_factory=dict,
        description="Octal mode of a filesystem's folder. Default: 1777 for data, scratch and checkpoint, 755 for others.",
    )
    groups_of_server: bool = Field(
        default=True,
        description="The server looks up a user's groups itself (`manage-gids`), which requires that it knows them; a "
        "request with `sec=sys` carries 16 groups at most (RFC 5531).",
    )
    lease_seconds: int | None = Field(
        default=None,
        ge=10,
        le=3600,
        description="Lease of a client that does not respond. None: the kernel's 90.",
    )
    grace_seconds: int | None = Field(
        default=None,
        ge=10,
        le=3600,
        description="How long a restarted server waits for clients that had locks. None: the kernel's 90.",
    )

    @field_validator("root_access")
    @classmethod
    def _are_node_sets(cls, given: dict[str, str]) -> dict[str, str]:
        for name, nodes in given.items():
            try:
                expand(nodes)
            except RangeMistake as error:
                raise mistake(f"{name}: {error.message}", error.hint) from error
        return given

    @model_validator(mode="after")
    def _grace_is_long_enough(self) -> NfsServerOptions:
        lease, grace = self.lease_seconds or _KERNEL_SECONDS, self.grace_seconds or _KERNEL_SECONDS
        if grace < lease:
            default = " by default" if self.grace_seconds is None else ""
            raise mistake(
                f"`grace_seconds` is {grace}{default}, less than a lease of {lease} s: a client may not have noticed that "
                "the server was away.",
                f"declare `grace_seconds: {lease}`, or a shorter lease, e.g. `lease_seconds: {grace}`",
            )
        return self

    def runs_on(self, node: Node) -> bool:
        """Where such a filesystem is served."""
        return super().runs_on(node) and bool(self.exported(node))

    def goes_first(self, node: Node) -> bool:
        """Clients mount what it serves."""
        return bool(self.exported(node))

    def exported(self, node: Node) -> tuple[Filesystem, ...]:
        """What a node serves by this role."""
        return tuple(one for one in node.served if one.kind in self.serves_kinds and one.export is not None)

    def bound(self, node: Node) -> tuple[Filesystem, ...]:
        """What a node serves and uses at another path."""
        return tuple(one for one in self.exported(node) if node.name in one.nodes and one.path != one.export)

    def listeners(self, node: Node) -> tuple[Listener, ...]:
        """The kernel's port. RDMA's 20049 belongs to the RDMA connection manager: no socket has it, and no rule filters it."""
        purposes = frozenset(one.network_purpose for one in self.exported(node))
        return (Listener("kernel", (PORT, PORT), purposes=purposes),)

    def unit_files(self, node: Node) -> tuple[str, ...]:
        """What the server waits for, and the mounts of what it uses itself."""
        return (DROP_IN, *(f"/etc/systemd/system/{unit_name(one.path)}" for one in self.bound(node)))

    def mode(self, filesystem: Filesystem) -> str:
        """Octal mode of its folder."""
        usual = "1777" if filesystem.purpose in _OPEN_TO_USERS else "755"
        return self.modes.get(filesystem.name, usual)

    def thread_count(self, node: Node) -> int:
        """Threads on a node."""
        if self.threads is not None:
            return self.threads
        cores, memory = node.sku.sockets * node.sku.cores_per_socket, node.sku.memory_mib
        if node.platform is not Platform.BARE_METAL and node.lab is not None:
            cores, memory = node.lab.cpus, node.lab.memory_mib
        return max(_FEWEST, min(max(_LEAST_THREADS, _THREADS_PER_CORE * cores), memory // _THREAD_MIB))

    def roots(self, filesystem: Filesystem) -> tuple[str, ...]:
        """Nodes whose root keeps its rights on it."""
        nodes = self.root_access.get(filesystem.name)
        return tuple(expand(nodes)) if nodes is not None else ()

    def problems(self, cluster: Cluster) -> Iterator[Trouble]:
        """Platforms that cannot serve, clients without an address, conflicting folders."""
        return problems.problems(self, cluster)


def filesystem_below(node: Node, folder: str) -> str | None:
    """The declared mount point that a folder is on, of the node's own drives; None: the system disk."""
    makes = node.offers(MakesFilesystems)
    made = makes.made_filesystems(node) if makes is not None else {}
    return max((one for one in made if folder == one or folder.startswith(f"{one}/")), key=len, default=None)

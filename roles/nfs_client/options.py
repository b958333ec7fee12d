"""Options of the nfs_client role."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import ClassVar

from pydantic import Field

from rackwright.model.cluster import Cluster, Node
from rackwright.model.interfaces import HoldsPackages
from rackwright.model.storage import Filesystem, FilesystemKind, Mount
from rackwright.model.strings import PackageName, Version
from rackwright.mount_roles import MountingOptions
from rackwright.roles.nfs_client.mount_options import (
    DECIDED_BY_FIRST,
    FIRST_DECIDES,
    MOST_CONNECTIONS,
    connection,
    options,
    shown,
    values,
    version,
)

Trouble = tuple[str, str, str | None]


class NfsClientOptions(MountingOptions, HoldsPackages):
    """How nodes mount what `storage:` declares with `kind: nfs` or `kind: vast`. Options of one filesystem are there."""

    role: ClassVar[str] = "nfs_client"
    mounts_kinds: ClassVar[frozenset[FilesystemKind]] = frozenset({FilesystemKind.NFS, FilesystemKind.VAST})

    connections: int = Field(
        default=8,
        ge=1,
        le=MOST_CONNECTIONS,
        description="TCP connections to each server, shared by its mounts (`nconnect`, nfs(5); Linux 5.3). One connection "
        "uses one queue of one port and cannot fill 100 Gb/s; Oracle's oci-hpc uses 16.",
    )
    transfer_kib: int = Field(
        default=1024,
        ge=4,
        le=16384,
        description="Maximum KiB per read or write (`rsize`, `wsize`); a server may allow less.",
    )
    slots: int = Field(
        default=128,
        ge=2,
        le=1024,
        description="Requests in flight to a server: sunrpc's `tcp_max_slot_table_entries` and nfs's "
        "`max_session_slots`, whose default is 64 (kernel-parameters.txt of Linux 6.12). Azure's HPC images use 128.",
    )

    vast_packages: dict[PackageName, Version] = Field(
        default_factory=dict,
        description="Packages of VAST's client (vastnfs) in a mirror of the site, with their versions, e.g. {vastnfs-dkms: "
        "4.0.34}; held. A filesystem of kind `vast` with several servers needs them: the kernel's own client does not "
        "support `remoteports`.",
    )

    def mount_of(self, node: Node, filesystem: Filesystem) -> Mount:
        """One server, or with VAST several that the first one stands for."""
        given = options(filesystem, self.connections, self.transfer_kib)
        return Mount(
            filesystem=filesystem,
            what=f"{filesystem.servers[0].address}:{filesystem.export}",
            type="nfs" if version(values(given)).startswith("3") else "nfs4",
            options=given,
            shown=shown(filesystem, given),
            first_decides=FIRST_DECIDES,
        )

    def held_packages(self, node: Node) -> tuple[str, ...]:
        """VAST's client."""
        return tuple(self.vast_packages) if self.uses_vast(node) else ()

    def uses_vast(self, node: Node) -> bool:
        """Whether it mounts anything that takes VAST's client."""
        return any(_takes_vastnfs(one) for one in self.mounted(node))

    def uses_rdma(self, node: Node) -> bool:
        """Whether it mounts anything by RDMA."""
        return any(one.rdma for one in self.mounted(node))

    def problems(self, cluster: Cluster) -> Iterator[Trouble]:
        """Those of every such role, versions that need rpcbind, mounts of one server that contradict each other."""
        yield from super().problems(cluster)
        together = {
            tuple(one.name for one in mounted): mounted
            for mounted in (self.mounted(node) for node in cluster.running(self.role, self))
        }
        for one in {one.name: one for mounted in together.values() for one in mounted}.values():
            yield from self._version(one)
            if _takes_vastnfs(one) and not self.vast_packages:
                yield (
                    "vast_packages",
                    f"{one.name} has {len(one.servers)} servers, but the kernel's own client mounts from one.",
                    "e.g. `vast_packages: {vastnfs-dkms: 4.0.34}`, from a mirror of the site",
                )
        yield from self._shared_connections(together.values())

    def _given(self, one: Filesystem) -> Mapping[str, str]:
        return values(options(one, self.connections, self.transfer_kib))

    def _version(self, one: Filesystem) -> Iterator[Trouble]:
        given = self._given(one)
        if (found := version(given)) == "3" and "nolock" not in given:
            yield (
                "",
                f"{one.name} is mounted with NFSv3, whose locks need rpcbind and rpc.statd; both are masked.",
                "use `vers=4.1` or `vers=4.2`, or declare `nolock`: locks are then local to each node",
            )
        elif found in ("2", "4.0"):
            yield (
                "",
                f"{one.name} is mounted with NFSv{found}, for which clients open a listening port.",
                "use `vers=4.1` or `vers=4.2`",
            )

    def _shared_connections(self, together: Iterable[tuple[Filesystem, ...]]) -> Iterator[Trouble]:
        """On each node, mounts that share connections declare the same of them; each pair is reported once."""
        reported: set[tuple[str, str]] = set()
        for mounted in together:
            seen: dict[tuple[str, ...], Filesystem] = {}
            for one in mounted:
                address, given = one.servers[0].address, self._given(one)
                first = seen.setdefault((address, *connection(given)), one)
                wrong = _difference(self._given(first), given)
                if wrong is None or (first.name, one.name) in reported:
                    continue
                reported.add((first.name, one.name))
                difference, hint = wrong
                yield (
                    "",
                    (
                        f"{first.name} and {one.name} share the connections to {address}, {difference}: the one mounted "
                        "first decides for both."
                    ),
                    hint,
                )


def _difference(first: Mapping[str, str], second: Mapping[str, str]) -> tuple[str, str] | None:
    """What two mounts with the same connections declare of them differently, and a hint."""
    for name in DECIDED_BY_FIRST:
        one, other = (None if value == "1" else value for value in (first.get(name), second.get(name)))
        if one == other:
            continue
        if one is None or other is None:
            return f"with and without {name}", f"declare the same `{name}` for both, or for neither"
        return f"with {name}={one} and {name}={other}", f"declare the same `{name}` for both"
    return None


def _takes_vastnfs(one: Filesystem) -> bool:
    return one.kind is FilesystemKind.VAST and len(one.servers) > 1

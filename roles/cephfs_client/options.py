"""Options of the cephfs_client role."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import ClassVar, Literal

from pydantic import Field

from rackwright.model.cluster import Cluster, Node
from rackwright.model.interfaces import HoldsPackages
from rackwright.model.options import Frozen
from rackwright.model.package_archive import PackageArchive, PackageVersion
from rackwright.model.storage import Filesystem, FilesystemKind, Mount
from rackwright.model.strings import SecretName
from rackwright.mount_roles import MountingOptions, Problem, options_of, shown_of
from rackwright.osfamily.names import names

FOLDER = "/etc/ceph"
_ADDRESS = re.compile(r"[0-9]{1,3}(\.[0-9]{1,3}){3}")
_NEW_SYNTAX = 17
"""Release from which mount.ceph takes `user@fsid.name=/path`; 16 refuses it: "source mount path was not specified"."""
_OWN = frozenset(
    {"name", "secretfile", "fs", "mds_namespace", "mon_addr", "ms_mode", "recover_session", "fsid", "conf"}
)


class CephAccess(Frozen):
    """How a filesystem is reached."""

    user: str = Field(
        pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$", description="CephX user, without `client.`."
    )
    stored_as: SecretName = Field(
        description="Secret with the user's key, supplied by the site: `ceph auth get-key`."
    )
    fsid: str | None = Field(
        default=None,
        pattern=r"^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$",
        description="The Ceph cluster's fsid. With it the source is `user@fsid.name=/path` (mount.ceph of Ceph 17 and Linux "
        "5.17 on), which stays the same when monitors move; without it the source names the monitors.",
    )
    ms_mode: Literal["legacy", "crc", "secure", "prefer-crc", "prefer-secure"] = Field(
        default="prefer-crc",
        description="Protocol to the servers, mount.ceph(8): `legacy` is messenger v1 (port 6789), others v2 (port 3300); "
        "`secure` encrypts.",
    )
    recover_session: Literal["no", "clean"] = Field(
        default="no",
        description="What a client does after the servers have evicted it. `no`: its files give errors until it is mounted "
        "again. `clean`: it reconnects and drops unwritten data and file locks.",
    )

    @property
    def port(self) -> int:
        """Of the monitors."""
        return 6789 if self.ms_mode == "legacy" else 3300


class CephfsClientOptions(MountingOptions, HoldsPackages):
    """CephFS, on nodes that mount a filesystem of the kind cephfs."""

    role: ClassVar[str] = "cephfs_client"
    mounts_kinds: ClassVar[frozenset[FilesystemKind]] = frozenset({FilesystemKind.CEPHFS})

    access: dict[str, CephAccess] = Field(
        min_length=1,
        description="By name of the filesystem, e.g. `{home: {user: hpc, stored_as: cephfs_hpc}}`.",
    )
    version: PackageVersion | None = Field(
        default=None,
        description="Exact version of ceph-common; held. None: the archive's.",
    )
    archive: PackageArchive | None = Field(
        default=None,
        description="Source of ceph-common. None: an archive that the nodes already have, e.g. the distribution's.",
    )

    @property
    def supplied_secrets(self) -> tuple[str, ...]:
        """The users' keys."""
        return tuple(dict.fromkeys(one.stored_as for one in self.access.values()))

    def packages(self, node: Node) -> tuple[str, ...]:
        """Names, with the version where it is declared."""
        version = "" if self.version is None else f"={self.version}"
        return tuple(f"{name}{version}" for name in names(node.family, "ceph").packages)

    def held_packages(self, node: Node) -> tuple[str, ...]:
        """Those with a version."""
        return () if self.version is None else names(node.family, "ceph").packages

    def key_file(self, filesystem: Filesystem) -> str:
        """The file with the user's key."""
        return f"{FOLDER}/rackwright-{filesystem.name}.secret"

    def mount_of(self, node: Node, filesystem: Filesystem) -> Mount:
        """By its monitors, or by the cluster's fsid where it is declared."""
        access = self.access[filesystem.name]
        path, name = filesystem.export or "/", filesystem.fsname or ""
        which: tuple[str, ...]
        monitors = [f"{one.address}:{access.port}" for one in filesystem.servers]
        shown: dict[str, str | None] = {"name": access.user}
        if access.fsid is None:
            what = f"{','.join(monitors)}:{path}"
            which = (f"name={access.user}", f"fs={name}")
            shown["mds_namespace"] = name  # what mount.ceph 16 makes of `fs=`
        else:
            what = f"{access.user}@{access.fsid}.{name}={path}"
            which = (f"mon_addr={'/'.join(monitors)}",)
        options = options_of(filesystem, ("noatime",))
        own = (*which, f"secretfile={self.key_file(filesystem)}", f"recover_session={access.recover_session}")
        mode = () if access.ms_mode == "legacy" else (f"ms_mode={access.ms_mode}",)
        if access.recover_session == "clean":
            shown["recover_session"] = "clean"
        return Mount(
            filesystem,
            what=what,
            type="ceph",
            options=(*options, *own, *mode),
            shown={**shown, **shown_of(options)},
        )

    def problems(self, cluster: Cluster) -> Iterator[Problem]:
        """As every role that mounts; filesystems without a user, and options that the node's mount.ceph lacks."""
        yield from super().problems(cluster)
        known = {one.name for one in cluster.storage.values() if one.kind in self.mounts_kinds}
        for name in self.access:
            if name not in known:
                yield f"access.{name}", f"There is no filesystem {name} of the kind cephfs.", None
        seen: set[str] = set()
        for node in cluster.running(self.role, self):
            for one in self.mounted(node):
                if one.name not in seen:
                    seen.add(one.name)
                    yield from self._of_filesystem(node, one)

    def _of_filesystem(self, node: Node, one: Filesystem) -> Iterator[Problem]:
        access = self.access.get(one.name)
        if access is None:
            yield (
                "access",
                f"{one.name} has no user.",
                f"e.g. `access: {{{one.name}: {{user: hpc, stored_as: cephfs_hpc}}}}`",
            )
            return
        for option in one.options:
            if (name := option.partition("=")[0]) in _OWN:
                yield "", f"`{name}` of {one.name} is set by this role.", f"declare it in `access.{one.name}`"
        if access.fsid is None:
            for server in one.servers:
                if not _ADDRESS.fullmatch(server.address):
                    yield (
                        "",
                        f"{server.name} of {one.name} is a DNS name, but the kernel shows the address instead.",
                        f"write its address, or declare `access.{one.name}.fsid`",
                    )
        elif self.archive is None and node.os.ceph is not None and node.os.ceph < _NEW_SYNTAX:
            yield (
                f"access.{one.name}.fsid",
                f"ceph-common {node.os.ceph} of {node.os}, which {node.name} runs, mounts by monitors only.",
                "leave `fsid` out, or declare `archive`",
            )
        if self.archive is None and node.os.ceph is None:
            yield (
                "archive",
                f"The archives of {node.os}, which {node.name} runs, have no known ceph-common.",
                "declare the site's copy of Ceph's own",
            )

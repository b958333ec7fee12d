"""Options of the gpfs_client role."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from pydantic import Field

from rackwright.model.cluster import Cluster, Node
from rackwright.model.interfaces import HoldsPackages, ReservesMemory
from rackwright.model.options import Frozen
from rackwright.model.package_archive import PackageVersion
from rackwright.model.services import Listener, Listens
from rackwright.model.storage import Filesystem, FilesystemKind, Mount
from rackwright.model.strings import PackageFile, PackageName, Sha256
from rackwright.model.types import INNER_PURPOSES
from rackwright.mount_roles import MountingOptions, Problem, options_of, shown_of

UNIT = "gpfs.service"
_PORT = 1191
"""Of mmfsd, TCP: "Firewall recommendations" of Storage Scale's manual; unconfirmed: from memory, no text was at hand."""


class ScalePackage(Frozen):
    """One package file of IBM's."""

    package: PackageName = Field(description="Its name, e.g. `gpfs.base`.")
    version: PackageVersion = Field(
        description="Its version, as the package tool prints it, e.g. 5.2.3-1.",
    )
    sha256: Sha256 = Field(description="SHA-256 of the file.")


class GpfsClientOptions(MountingOptions, HoldsPackages, ReservesMemory, Listens):
    """Storage Scale, on nodes that mount a filesystem of the kind gpfs."""

    role: ClassVar[str] = "gpfs_client"
    mounts_kinds: ClassVar[frozenset[FilesystemKind]] = frozenset({FilesystemKind.GPFS})

    packages: dict[PackageFile, ScalePackage] = Field(
        min_length=1,
        description="By file, in the order they are installed: gpfs.gskit, gpfs.base, gpfs.gpl, gpfs.msg.en_US, the "
        "license's. Groups with another OS or CPU name theirs below their `options`.",
    )
    cluster_name: str | None = Field(
        default=None,
        pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$",
        description="Storage Scale cluster that the node must belong to, as mmlscluster prints it. None: any.",
    )
    pagepool_mib: int | None = Field(
        default=None,
        ge=64,
        description="Its cache in pinned memory, MiB, as the cluster sets it for the node (mmchconfig pagepool=): "
        "compared, and subtracted from the memory that Slurm gives to jobs. None: neither.",
    )
    build_minutes: int = Field(
        default=20, ge=1, le=240, description="Time limit for building the kernel layer, in minutes."
    )

    def held_packages(self, node: Node) -> tuple[str, ...]:
        """All of them."""
        return tuple(one.package for one in self.packages.values())

    def versions(self) -> tuple[str, ...]:
        """`name=version` of each."""
        return tuple(f"{one.package}={one.version}" for one in self.packages.values())

    def reserved_mib(self, node: Node) -> int:
        """The page pool, where it is declared."""
        return self.pagepool_mib or 0

    def listeners(self, node: Node) -> tuple[Listener, ...]:
        """The daemon: every node of a Storage Scale cluster talks to every other one."""
        return (Listener("mmfsd", (_PORT, _PORT), "tcp", INNER_PURPOSES),)

    def mount_of(self, node: Node, filesystem: Filesystem) -> Mount:
        """By the filesystem's name, not by /dev/NAME: systemd would wait for that device."""
        name = filesystem.fsname or ""
        options = options_of(filesystem)
        return Mount(
            filesystem,
            what=name,
            type="gpfs",
            options=(*options, f"dev={name}"),
            sources=(name, f"/dev/{name}"),
            shown=shown_of(options),
            requires=(UNIT,),
            timeout_seconds=180,
        )

    def problems(self, cluster: Cluster) -> Iterator[Problem]:
        """As every role that mounts; no mirror for the packages, and files of another family."""
        yield from super().problems(cluster)
        if cluster.mirrors.files is None:
            yield (
                "packages",
                "IBM's packages come from the site's mirror, but `mirrors.files` is not declared.",
                "put them there, e.g. `mirrors: {files: http://mirror.example.com/files}`",
            )
        if "gpfs.base" not in self.held_packages(cluster.primary):
            yield "packages", "gpfs.base is not among the packages.", None
        for node in cluster.running(self.role, self):
            ending = node.family.package_file("x", "1", node.sku.cpu_architecture).rpartition(".")[2]
            if wrong := [file for file in self.packages if not file.endswith(f".{ending}")]:
                yield (
                    "packages",
                    f"{node.name} is {node.os}, which cannot install {wrong[0]}.",
                    f"name .{ending} files below the group's `options`",
                )
                return

"""Options of the apptainer role."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar, Literal, Self

from pydantic import Field, model_validator

from rackwright.containers import RuntimeOptions
from rackwright.model.cluster import Cluster, Node
from rackwright.model.strings import NodePath, PackageFile, Sha256
from rackwright.model.types import NodeRole
from rackwright.model.written_folders import WritesBelow, WrittenFolder


class ApptainerOptions(RuntimeOptions, WritesBelow):
    """Apptainer, for users with their own images."""

    applies_to: ClassVar[frozenset[NodeRole]] = frozenset({NodeRole.HEAD, NodeRole.WORKER, NodeRole.LOGIN})

    source: Literal["release", "epel", "ppa"] = Field(
        default="release",
        description="`release`: the packages of the project's GitHub releases, or of `mirrors.files`, on Debian and "
        "Ubuntu. `epel`: EL, whose repositories must have EPEL. `ppa`: Ubuntu.",
    )
    version: str | None = Field(
        default=None, pattern=r"^[0-9]+\.[0-9]+\.[0-9]+$", description="Release, for `source: release`."
    )
    sha256: dict[PackageFile, Sha256] = Field(
        default_factory=dict,
        description="SHA-256 by package file, for `source: release`, e.g. {apptainer_1.4.5_amd64.deb: ...}; the "
        "project publishes them in sha256sums of each release.",
    )
    ppa_fingerprint: str | None = Field(
        default=None,
        pattern=r"^[0-9A-F]{40}$",
        description="Of the key of ppa:apptainer/ppa, as its page on Launchpad shows it.",
    )
    setuid: bool = Field(default=False, description="Install and allow the setuid starter.")
    bind_paths: tuple[NodePath, ...] = Field(
        default=(), description="Folders of the node that every container sees, e.g. /scratch."
    )
    mount_home: bool = Field(default=True, description="Containers see the user's home.")
    user_bind_control: bool = Field(default=True, description="Users may bind further folders.")
    always_nv: bool = Field(default=False, description="Every container gets the GPUs, as with --nv.")
    sessiondir_max_mib: int = Field(
        default=64,
        ge=16,
        description="tmpfs behind --contain and --writable-tmpfs, MiB (64 is its own default).",
    )
    cache_root: NodePath | None = Field(
        default=None,
        description="Folder owned by root with an image cache and a build folder for each user, on local scratch (root "
        "makes them, before a user's first job or login). None: in homes and /tmp. Set for login shells and the jobs "
        "that start from them.",
    )

    @model_validator(mode="after")
    def _says_what_its_source_needs(self) -> Self:
        if self.source == "release" and self.version is None:
            raise ValueError("Packages of a release need its version, e.g. 1.4.5.")
        if self.source == "ppa" and self.ppa_fingerprint is None:
            raise ValueError("The PPA needs the fingerprint of its key, as its page on Launchpad shows it.")
        return self

    def written_folders(self, node: Node) -> tuple[WrittenFolder, ...]:
        """Users' images, where they are not in their homes."""
        if self.cache_root is None:
            return ()
        return (WrittenFolder(self.cache_root, "users' images", "apptainer.cache_root"),)

    @property
    def packages(self) -> tuple[str, ...]:
        """Package names; the setuid starter is a separate package."""
        return ("apptainer", "apptainer-suid") if self.setuid else ("apptainer",)

    def package_files(self, node: Node) -> tuple[str, ...]:
        """Files of a release that a node installs; none from other sources."""
        if self.source != "release":
            return ()
        cpu, version = node.sku.cpu_architecture, self.version or ""
        return tuple(node.family.package_file(name, version, cpu) for name in self.packages)

    def problems(self, cluster: Cluster) -> Iterable[tuple[str, str, str | None]]:
        """A source that the node's distribution lacks, and packages without a digest."""
        for node in cluster.running("apptainer", self):
            fits = node.family.apptainer_source
            if (self.source == "epel") is not (fits == "epel"):
                yield "source", f"{node.name} is {node.os}, which has no source {self.source}.", f"use {fits}"
                return
            if self.source == "ppa" and not node.os.has_ppas:
                yield "source", f"{node.name} is {node.os}, and a PPA is for Ubuntu.", "use release"
                return
            for file in self.package_files(node):
                if file not in self.sha256:
                    yield "sha256", f"{node.name} needs {file}, whose SHA-256 is not declared.", None
                    return

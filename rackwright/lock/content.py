"""The content of a lock file."""

from __future__ import annotations

from datetime import date
from typing import Any, Literal

from pydantic import AliasChoices, Field

from rackwright.model.cluster import Node
from rackwright.model.options import Frozen
from rackwright.osfamily.known import OsRelease


class GroupLock(Frozen):
    """The stack of one kind of node: equal SKU, OS and package source."""

    sku: str
    os: OsRelease
    source: Literal["nvidia", "distribution", "mirror"]
    kernel: str | None = Field(
        default=None,
        description="As uname -r prints it. None: not locked, because neither the tables nor an index list one.",
    )
    driver_branch: str
    driver_version: str
    open_modules: bool
    cuda: str | None = Field(default=None, description="Toolkit release; None: no toolkit.")
    fabricmanager: bool = Field(description="Install fabricmanager and nscq at the driver's version.")
    nvlsm: bool = False
    imex: bool = False
    ofed: Literal["inbox", "doca"] = "inbox"
    packages: dict[str, str] = Field(
        description="Name to version, all held: only a new lock may change them. `*` in a "
        "version: revision unknown without a package index."
    )
    components: dict[str, tuple[str, ...]] = Field(
        description="Packages by part of the stack, e.g. `modules`, `driver`, `dcgm`."
    )
    sha256: dict[str, str] = Field(
        default_factory=dict, description="SHA-256 of package files that an index lists."
    )
    needs_index: tuple[str, ...] = Field(
        default=(),
        description="Package indexes needed for exact revisions, for `gpu_stack.package_index`; empty: already exact.",
    )
    notes: tuple[str, ...] = Field(
        default=(), description="Notes for the reader; they do not prevent the lock."
    )

    @property
    def exact(self) -> bool:
        """Whether every version is known to the last revision."""
        return not any("*" in version for version in self.packages.values())


class Lock(Frozen):
    """A whole lock file."""

    version: Literal[1] = 1
    cluster: str
    tables: dict[str, date] = Field(description="The day each table was last read from its sources.")
    index: tuple[str, ...] = Field(default=(), description="Package indexes that were read.")
    index_sha256: dict[str, str] = Field(
        default_factory=dict, description="SHA-256 of each index file as it was read."
    )
    gpu_stack: dict[str, Any] = Field(
        default_factory=dict,
        validation_alias=AliasChoices("gpu_stack", "wish"),  # its name in locks written before 2026-11-22
        description="The solved gpu_stack section; if it changes, lock again.",
    )
    groups: tuple[GroupLock, ...] = ()
    images: dict[str, str] = Field(
        default_factory=dict,
        description="Digest of each image by its reference, as `rackwright bundle --resolve` read it from a registry.",
    )

    def group_of(self, node: Node) -> GroupLock | None:
        """The group a node belongs to; None for nodes without GPUs that the lock covers."""
        return next(
            (group for group in self.groups if (group.sku, group.os) == (node.sku.name, node.os)), None
        )

"""The document of `bundle`."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from rackwright.schemas.base import ClusterName, Document, Part
from rackwright.status import Status


class BundleItem(Part):
    """One thing to mirror."""

    kind: Literal["package", "image", "chart", "manifest", "file", "wheel"]
    name: str = Field(description="Package, whole image reference, or file name.")
    package_version: str | None = Field(description="Version; null: any, or part of the name.")
    source: str | None = Field(description="URL of a file; null: an image's registry, or the OS's archive.")
    sha256: str | None = Field(description="Of a file or package, as declared or locked.")
    digest: str | None = Field(description="Of an image, as locked: `sha256:...`.")
    platform: str | None = Field(description="OS release of a package; null: any.")
    roles: tuple[str, ...] = Field(description="Roles that need it.")
    status: Status | None = Field(
        description="Of --resolve, --pack or --check; null: nothing was done with it."
    )
    evidence: str | None


class Bundle(Document):
    """`bundle`: everything that a site without access to the Internet mirrors."""

    kind: Literal["rackwright.bundle"]
    cluster: str = ClusterName
    lock: Literal["written", "unchanged"] | None = Field(description="Of --resolve; null otherwise.")
    items: tuple[BundleItem, ...]
    unknown: tuple[str, ...] = Field(
        description="Nodes whose needs could not be listed, each a full sentence."
    )

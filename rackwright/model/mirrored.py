"""What a site without access to the Internet mirrors for a cluster: items that roles name, found by `rackwright bundle`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from rackwright.model.cluster import Cluster, Node

Kind = Literal["package", "image", "chart", "manifest", "file", "wheel"]


@dataclass(frozen=True, order=True)
class MirrorItem:
    """One thing to mirror."""

    kind: Kind
    name: str
    """A package's name, an image's whole reference (`registry.k8s.io/pause:3.10`), a file's name."""
    version: str | None = None
    """None: any, or part of the name."""
    source: str | None = None
    """URL of a file or chart; base URL of a package archive. None: an image's registry, or the OS's own archive."""
    sha256: str | None = None
    """Of a file, as its lock or its catalogue has it. None: not known yet."""
    platform: str | None = None
    """OS release of a package (`debian-13`), architecture of an image (`linux/amd64`); None: any."""
    role: str = ""
    """The role that needs it."""


class NeedsMirrored:
    """Options of a role whose nodes fetch something besides packages of their lock."""

    def mirrored(self, cluster: Cluster, node: Node) -> Iterable[MirrorItem]:
        """What this node fetches; equal items of several nodes count once."""
        raise NotImplementedError

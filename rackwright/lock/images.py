"""Images by the digests that the cluster's lock has."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rackwright.lock.lock_file import read_lock
from rackwright.lock.references import parse

if TYPE_CHECKING:
    from rackwright.model.cluster import Cluster


def pinned(cluster: Cluster, image: str) -> str:
    """The image with its locked digest, so that a moved tag changes no node; without one as it is."""
    if "@" in image or not cluster.lock_path.exists():
        return image
    digest = read_lock(cluster).images.get(str(parse(image)))
    return image if digest is None else f"{image}@{digest}"

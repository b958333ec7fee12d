"""Boot images for virtual machines of a lab cluster file: built if missing, cached in the lab's folder."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path

from rackwright.errors import LabError
from rackwright.image.build import build, order
from rackwright.image.choice import groups
from rackwright.lab import image, names
from rackwright.model.cluster import Cluster
from rackwright.model.types import Platform

DISK_GIB = 16
_KEPT_DAYS = 14


def ensure(cluster: Cluster, log: Callable[[str], None]) -> dict[str, Path]:
    """Node name -> folder of its boot image, for every virtual machine of the cluster.

    The file is evaluated once for each group; an image that is there is not built again.
    """
    found: dict[str, Path] = {}
    booted = (node for node in cluster.nodes if node.platform is Platform.VM and node.bmc is None)
    for nodes in groups(booted):
        wanted = order(cluster, nodes, "disk", DISK_GIB)
        folder = _folder() / wanted.key
        if not folder.is_dir():
            log(f"building the image of {', '.join(node.name for node in nodes)} (once, some minutes)")
        build(wanted, folder, log)
        os.utime(folder)  # its age shows when it was last used
        found |= {node.name: folder for node in nodes}
    sweep()
    return found


def sweep() -> None:
    """Remove images that no node uses and no rack has wanted for two weeks."""
    if not _folder().is_dir():
        return
    try:
        used = image.in_use()
    except LabError:
        return  # unreadable state may belong to a running rack: what it uses is unknown
    oldest = time.time() - _KEPT_DAYS * 86400
    for folder in sorted(_folder().glob("[!.]*")):
        if folder.stat().st_mtime < oldest and not any(
            path == str(folder) or path.startswith(f"{folder}/") for path in used
        ):
            shutil.rmtree(folder, ignore_errors=True)


def _folder() -> Path:
    return names.lab_dir() / "boot-images"

"""The example cluster files of this repository, and the files each of them names beside itself."""

from __future__ import annotations

import shutil
from pathlib import Path

INVENTORY = Path(__file__).resolve().parents[1] / "inventory"

_ON_ALL = {
    "access",
    "base",
    "enroot_pyxis",
    "firewall",
    "health",
    "integrity",
    "kernel",
    "munge",
    "slurm",
    "time",
    "tuning",
}
DGX_ON_GPUS = {
    "cuda", "dcgm", "docker", "fabricmanager", "gdrcopy", "gpudirect", "hpc_stack", "nvidia_container_toolkit",
    "nvidia_driver", "persistence",
}  # fmt: skip
DGX = {
    "head1": _ON_ALL | {"mariadb", "registry_cache"},
    "head2": _ON_ALL,
    "login1": _ON_ALL | {"hpc_stack"},
    "gpu001": _ON_ALL | DGX_ON_GPUS | {"nccl", "rdma"},
}
"""Roles of a node of each kind of the DGX example."""


def cluster_files(pattern: str = "*.yaml") -> list[Path]:
    """Cluster files in inventory/; the locks beside them are none."""
    return sorted(path for path in INVENTORY.glob(pattern) if not path.name.endswith(".lock.yaml"))


def copied(file: Path, folder: Path) -> Path:
    """A copy of a cluster file with its lock, its package index and its keys."""
    for path in file.parent.glob(f"{file.stem}.*"):
        shutil.copy(path, folder)
    return folder / file.name

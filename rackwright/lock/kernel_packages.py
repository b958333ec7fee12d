"""Packages of the kernel that a node is declared to have: the lock's, or one that the cluster file names."""

from __future__ import annotations

from dataclasses import dataclass

from rackwright.catalog.table_files import kernel_table, package_table
from rackwright.lock.content import GroupLock
from rackwright.lock.for_roles import component, has_stack
from rackwright.lock.lock_file import read_lock
from rackwright.model.cluster import Cluster, Node


@dataclass(frozen=True)
class KernelPackages:
    """A kernel as uname -r prints it, and its packages with its headers, `name=version`."""

    release: str
    packages: tuple[str, ...]
    locked: bool = False


def group_with_kernel(cluster: Cluster, node: Node) -> GroupLock | None:
    """What is locked for a node, where that has a kernel. Raises RackwrightError for a damaged lock."""
    if cluster.gpu_stack is None or not has_stack(node) or not cluster.lock_path.is_file():
        return None
    group = read_lock(cluster).group_of(node)
    return group if group is not None and group.kernel is not None else None


def locked_kernel(cluster: Cluster, node: Node) -> KernelPackages | None:
    """The kernel that the lock has for a node; None where it has none, or there is no lock yet."""
    group = group_with_kernel(cluster, node)
    if group is None or group.kernel is None:
        return None
    return KernelPackages(group.kernel, component(group, "kernel"), locked=True)


def named_kernel(node: Node, release: str, version: str) -> KernelPackages:
    """A kernel of the distribution's archive; packages that not every kernel has are left out."""
    pages = "-64k" if release.endswith("+64k") else ""
    names = [
        name.format(kernel=release, pages=pages)
        for row in package_table().rows
        if (row.component, row.family, row.source) == ("kernel", node.family, "distribution")
        and row.cpu in (None, node.sku.cpu_architecture)
        and (not row.os or node.os in row.os)
        and not row.optional
        for name in row.packages
    ]
    return KernelPackages(release, tuple(f"{name}={version}" for name in names))


def known_version(node: Node, release: str) -> str | None:
    """The package version of a kernel: in its own name (EL), or in our table; None: not known."""
    cpu = node.sku.cpu_architecture
    if f".{cpu}" in release:
        return release.split(f".{cpu}")[0]
    return next(
        (
            kernel.version
            for archive in kernel_table().rows
            if node.os in archive.os and archive.cpu == cpu
            for kernel in archive.kernels
            if kernel.release == release and "*" not in kernel.version
        ),
        None,
    )

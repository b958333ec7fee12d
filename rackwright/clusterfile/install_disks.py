"""Disks that would get both the operating system and a role's data."""

from __future__ import annotations

from rackwright.clusterfile.groups import Group
from rackwright.clusterfile.report import Report
from rackwright.model.cluster import Cluster, Node
from rackwright.model.disks import Selector
from rackwright.model.install import DiskRule
from rackwright.model.storage import MakesFilesystems


def check_install_disks(report: Report, cluster: Cluster, groups: list[Group]) -> None:
    """Report groups that would install the operating system on a role's data disk."""
    for group in groups:
        path = (*group.path, "install", "disk")
        shared = next(filter(None, (_shared(cluster.by_name[name]) for name in group.names)), None)
        if shared is not None and report.clean(path):
            node, disk, role = shared
            report.add(
                path,
                f"{node} would get its operating system on {disk}, which the role {role} uses for data.",
                "declare another disk, here or for the role",
            )


def _shared(node: Node) -> tuple[str, Selector, str] | None:
    """Node, disk and role if the rule names a role's disk; a rule by model is compared on the node."""
    if node.install is None or node.install.diskless:
        return None
    for role, given in node.options.items():
        if isinstance(given, MakesFilesystems):
            for disk in given.data_disks(node):
                if _names(node.install.disk, disk):
                    return node.name, disk, role
    return None


def _names(rule: DiskRule, disk: Selector) -> bool:
    if disk.slot is None:
        return disk.serial is not None and disk.serial in rule.serials
    # a slot is the drive's PCI address or its by-path name
    return any(disk.slot == name or f"pci-{disk.slot}-" in f"{name}-" for name in rule.by_path)

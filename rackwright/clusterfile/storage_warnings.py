"""Filesystem settings that are valid but rarely intended."""

from __future__ import annotations

from rackwright.clusterfile.report import Report
from rackwright.model.cluster import Cluster
from rackwright.model.ranges import fold
from rackwright.model.storage import on_a_filesystem, scratch_of
from rackwright.model.written_folders import written_on


def warn_about_boot_disks(report: Report, cluster: Cluster) -> None:
    """Warn about large folders on the boot disk of nodes that have local scratch."""
    found: dict[tuple[str, str, str, str, str], list[str]] = {}
    for node in cluster.nodes:
        for scratch in scratch_of(node)[:1]:
            for one in written_on(node):
                if one.large and not on_a_filesystem(node, one.path):
                    key = (scratch.name, scratch.path, one.option, one.path, one.what)
                    found.setdefault(key, []).append(node.name)
    for (name, path, option, where, what), names in found.items():
        role, _, key_of_role = option.partition(".")
        folder = path if key_of_role == "scratch" else f"{path}/{role}"
        report.warn(
            ("storage", name),
            f"{where} of {fold(names)} is on the boot disk, with {what}, although the node has scratch at {path}.",
            f"e.g. `{role}: {{{key_of_role}: {folder}}}`",
        )

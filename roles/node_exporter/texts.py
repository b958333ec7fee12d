"""The command line of node_exporter.

Flags: `--help` of 1.9.0 in Debian 13 (read 2026-11-26); all of them exist since 1.3.
"""

from __future__ import annotations

import re

from rackwright.model.cluster import Cluster, Node
from rackwright.model.types import Platform
from rackwright.roles.node_exporter.options import NodeExporterOptions
from rackwright.textfiles import TEXTFILES

_ADDED = ("ethtool", "mountstats", "processes", "systemd")
"""Collectors that are off by default; timex goes where a container may not ask for the kernel's clock."""
_ETHTOOL = "(pause|discard|drop|err|out_of_buffer|cnp|ecn|link_down|timeout)"
"""A ConnectX port has some 1,500 counters; these show congestion and bad links."""
_VIRTUAL = "^(br-|cali|cni|docker|flannel|lo$|tap|veth|virbr|vnet)"
"""Interfaces of containers and virtual machines, which come and go."""
_PSEUDO = (
    "^(autofs|binfmt_misc|bpf|cgroup2?|configfs|debugfs|devpts|devtmpfs|efivarfs|fusectl|hugetlbfs|iso9660|mqueue|nsfs|"
    "proc|pstore|ramfs|rpc_pipefs|securityfs|selinuxfs|squashfs|sysfs|tracefs)$"
)
"""overlay and tmpfs are not among them: a diskless node's root is one of the two."""
_OTHERS = "dev|proc|run|sys|var/lib/(containers|containerd|docker|kubelet)/.+"
_BOUND_IN = "usr/.+"
"""Files that the host binds over those of a container."""


def arguments(cluster: Cluster, node: Node, options: NodeExporterOptions) -> tuple[str, ...]:
    """Its flags besides address and users."""
    contained = node.platform is Platform.CONTAINER
    chosen = {**dict.fromkeys(_ADDED, True), **({"timex": False} if contained else {}), **options.collectors}
    others = f"{_OTHERS}|{_BOUND_IN}" if contained else _OTHERS
    units = "|".join(re.escape(unit) for unit in options.units)
    return (
        *(f"--{'' if on else 'no-'}collector.{name}" for name, on in sorted(chosen.items())),
        f"--collector.ethtool.metrics-include={_ETHTOOL}",
        f"--collector.filesystem.fs-types-exclude={_PSEUDO}",
        f"--collector.filesystem.mount-points-exclude=^/({others})($|/)",
        f"--collector.netclass.ignored-devices={_VIRTUAL}",
        f"--collector.netdev.device-exclude={_VIRTUAL}",
        f"--collector.systemd.unit-include=^({units})$",
        f"--collector.textfile.directory={TEXTFILES}",
    )

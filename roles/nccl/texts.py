"""Files of the nccl role, as text: shared by the deploy and its checks."""

from __future__ import annotations

from rackwright.model.cluster import Cluster, Node
from rackwright.render import render
from rackwright.roles.nccl.derived import TOPOLOGY, settings
from rackwright.roles.nccl.options import NcclOptions
from rackwright.roles.nccl.topology import topology

CONFIGURATION = "/etc/nccl.conf"


def configuration(cluster: Cluster, node: Node, options: NcclOptions) -> str:
    """/etc/nccl.conf of a node."""
    return render("nccl/nccl.conf.j2", settings=settings(cluster, node, options))


def files(cluster: Cluster, node: Node, options: NcclOptions) -> dict[str, str]:
    """Every file of a node, by path."""
    derived = {TOPOLOGY: topology(cluster, node, options)} if options.topology_file else {}
    return {**derived, CONFIGURATION: configuration(cluster, node, options)}

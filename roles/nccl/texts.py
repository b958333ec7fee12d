"""What the nccl role writes, as text: shared by the deploy and its checks."""

from __future__ import annotations

from rackwright.model.cluster import Cluster, Node
from rackwright.render import render
from rackwright.roles.nccl.derived import settings
from rackwright.roles.nccl.options import NcclOptions

CONFIGURATION = "/etc/nccl.conf"


def configuration(cluster: Cluster, node: Node, options: NcclOptions) -> str:
    """/etc/nccl.conf of a node."""
    return render("nccl/nccl.conf.j2", settings=settings(cluster, node, options))

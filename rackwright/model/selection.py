"""Choosing nodes by NodeSet."""

from __future__ import annotations

from ClusterShell.NodeSet import NodeSet, NodeSetException

from rackwright.errors import RackwrightError
from rackwright.model.cluster import Cluster, Node
from rackwright.model.ranges import fold


def pick(cluster: Cluster, nodeset: str | None) -> tuple[Node, ...]:
    """Nodes of a NodeSet expression in file order (None: all); an unknown name is an error."""
    if nodeset is None:
        return cluster.nodes
    try:
        wanted = set(NodeSet(nodeset))
    except NodeSetException as error:
        raise RackwrightError(
            f"`{nodeset}` is not a NodeSet: {error}.", hint="write it like gpu[001-016],login1"
        ) from error
    if unknown := wanted - set(cluster.by_name):
        raise RackwrightError(
            f"{fold(unknown)} is not in cluster {cluster.name} ({cluster.path}).",
            hint=f"its nodes are {fold(cluster.by_name)}",
        )
    return tuple(node for node in cluster.nodes if node.name in wanted)

"""Selects nodes by NodeSet."""

from __future__ import annotations

from ClusterShell.NodeSet import RESOLVER_NOGROUP, NodeSet, NodeSetException

from rackwright.errors import RackwrightError
from rackwright.model.cluster import Cluster, Node
from rackwright.model.ranges import fold


def pick(cluster: Cluster, nodeset: str | None) -> tuple[Node, ...]:
    """Nodes of a NodeSet expression in file order (None: all); unknown names and an empty selection are errors.

    Groups (`@gpu`) and `*` are refused: ClusterShell would expand them with this control node's group configuration.
    """
    if nodeset is None:
        return cluster.nodes
    if "@" in nodeset or "*" in nodeset:
        raise RackwrightError(
            f"`{nodeset}`: node groups and wildcards are not supported; name the nodes.",
            hint=f"nodes of the cluster: {fold(cluster.by_name)}",
        )
    try:
        wanted = set(NodeSet(nodeset, resolver=RESOLVER_NOGROUP))
    except NodeSetException as error:
        raise RackwrightError(
            f"`{nodeset}` is not a valid NodeSet: {error}.", hint="e.g. gpu[001-016],login1"
        ) from error
    if not wanted:
        raise RackwrightError(
            f"`{nodeset}` selects no nodes.",
            hint=f"nodes of the cluster: {fold(cluster.by_name)}; omit the selection to use all of them",
        )
    if unknown := wanted - set(cluster.by_name):
        raise RackwrightError(
            f"{fold(unknown)} is not in cluster {cluster.name} ({cluster.path}).",
            hint=f"nodes of the cluster: {fold(cluster.by_name)}",
        )
    return tuple(node for node in cluster.nodes if node.name in wanted)

"""The nodes whose host-based logins a node accepts, and the users it never accepts that way."""

from __future__ import annotations

from rackwright.model.cluster import Cluster, Node
from rackwright.model.types import NodeRole
from rackwright.roles.access.options import AccessOptions

UNPRIVILEGED = "nobody"
"""An ordinary user that every node has, with the same name, to try a login with."""


def lets_in(target: Node, source: Node) -> bool:
    """Whether a node lets root of another node log in as any ordinary user, which is what host-based logins mean.

    Root of a worker is one kernel bug away from any job, so workers let in all nodes and are let in by
    workers alone. A node that holds several roles is as strict as the strictest.
    """
    if target.holds(NodeRole.HEAD, NodeRole.STORAGE):
        return source.holds(NodeRole.HEAD)
    if target.holds(NodeRole.LOGIN):
        return source.holds(NodeRole.HEAD) or (
            source.holds(NodeRole.LOGIN) and not source.holds(NodeRole.WORKER)
        )
    return True


def trusted(cluster: Cluster, node: Node) -> tuple[Node, ...]:
    """The nodes whose host-based logins it accepts, in file order."""
    return tuple(other for other in cluster.nodes if lets_in(node, other))


def reachable(cluster: Cluster, node: Node) -> Node | None:
    """The next node of the role, in file order, that accepts host-based logins from this one; itself comes last.

    All pairs would be a million logins for 1,000 nodes; this way every worker is left once and entered once.
    """
    nodes = cluster.running("access")
    place = [other.name for other in nodes].index(node.name)
    for other in (*nodes[place + 1 :], *nodes[: place + 1]):
        if lets_in(other, node):
            return other
    return None


def closed_head(cluster: Cluster, node: Node) -> Node | None:
    """The first head that refuses host-based logins from this node."""
    heads = (other for other in cluster.running("access") if other.holds(NodeRole.HEAD))
    return next((head for head in heads if not lets_in(head, node)), None)


def privileged_users(cluster: Cluster, options: AccessOptions) -> tuple[str, ...]:
    """Users who become root without a password, by declaration: a login as one of them is a login as root."""
    return tuple(sorted({"root", cluster.ssh.user, *(user.name for user in options.users if user.sudo)}))

"""Declared listeners of a node: sshd as in the cluster file, and what each role on the node opens."""

from __future__ import annotations

from typing import NamedTuple

from rackwright.model.cluster import Cluster, Node
from rackwright.model.services import Listener, Listens
from rackwright.model.types import NetworkPurpose, NodeRole


class Declared(NamedTuple):
    """A listener and its owner: a role, or `ssh` for the section of that name."""

    owner: str
    listener: Listener


def declared_listeners(cluster: Cluster, node: Node) -> tuple[Declared, ...]:
    """Every declared listener of a node, sshd first, then by role."""
    found = [Declared("ssh", listener) for listener in _sshd(cluster, node)]
    for role, options in node.options.items():
        if isinstance(options, Listens):
            found += [Declared(role, listener) for listener in options.listeners(node)]
    return tuple(found)


def _sshd(cluster: Cluster, node: Node) -> tuple[Listener, ...]:
    """Open to administrators on every node, and to users from outside on heads and login nodes.

    systemd holds the socket itself where ssh is started by ssh.socket, as on Ubuntu from 22.10 on.
    """
    port = cluster.ssh.port
    outside = node.holds(NodeRole.HEAD, NodeRole.LOGIN)
    purposes = frozenset({NetworkPurpose.MANAGEMENT, *((NetworkPurpose.EXTERNAL,) if outside else ())})
    return tuple(Listener(program, (port, port), purposes=purposes) for program in ("sshd", "systemd"))

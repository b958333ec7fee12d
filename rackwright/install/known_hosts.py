"""The host keys of installed nodes, in the cluster's known_hosts file."""

from __future__ import annotations

from rackwright.known_hosts_file import change_known_hosts, with_keys
from rackwright.model.cluster import Cluster, Node
from rackwright.ssh.known_hosts import host_name


def trust(cluster: Cluster, node: Node, host_key: str) -> None:
    """Replace the keys that known_hosts has for a node's addresses with its key."""
    path = cluster.ssh.known_hosts
    hosts = [node.name, node.fqdn, *(str(entry.address) for entry in node.addresses)]
    names = [host_name(host, cluster.ssh.port) for host in hosts]
    path.parent.mkdir(parents=True, exist_ok=True)
    change_known_hosts(path, lambda text: with_keys(text, {host_key: names}))

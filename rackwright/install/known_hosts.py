"""The host keys of installed nodes, in the cluster's known_hosts file."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from rackwright.lab.keys import rewrite_known_hosts
from rackwright.model.cluster import Cluster, Node
from rackwright.ssh.known_hosts import host_name


def trust(cluster: Cluster, node: Node, host_key: str) -> None:
    """Put a node's key in the place of those that known_hosts has for its addresses."""
    path = cluster.ssh.known_hosts
    hosts = [node.name, node.fqdn, *(str(entry.address) for entry in node.addresses)]
    names = [host_name(host, cluster.ssh.port) for host in hosts]
    path.parent.mkdir(parents=True, exist_ok=True)
    with (path.parent / f".{path.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # installations of several nodes end at the same time
        old = path.read_text() if path.exists() else ""
        new = rewrite_known_hosts(old, {host_key: names})
        if new != old:
            _replace(path, new)


def _replace(path: Path, text: str) -> None:
    new = path.with_name(f".{path.name}.new")
    model = (path if path.exists() else path.parent).stat()
    with new.open("w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    new.chmod(0o644)
    if os.geteuid() == 0:
        os.chown(new, model.st_uid, model.st_gid)  # run with sudo in a folder that belongs to the operator
    new.replace(path)

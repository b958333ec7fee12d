"""This control node's settings for installations: its public key, and sockets for agents."""

from __future__ import annotations

import socket
from collections.abc import Sequence
from ipaddress import IPv4Address

import paramiko

from rackwright.errors import InstallError
from rackwright.model.cluster import Cluster
from rackwright.model.install import BootNetwork


def boot_network(cluster: Cluster) -> BootNetwork:
    """The declared boot network; InstallError if there is none."""
    if cluster.boot_network is None:
        raise InstallError(
            f"{cluster.path} has no `boot_network`: machines without an operating system need it to reach this control node.",
            hint="e.g. `boot_network: {server: 10.1.0.5}`",
        )
    return cluster.boot_network


def public_key(cluster: Cluster) -> str:
    """The key for the administrator's account of new nodes, in authorized_keys form."""
    path = cluster.ssh.key
    try:
        key = (
            paramiko.PKey.from_path(path)
            if path is not None
            else next(iter(paramiko.Agent().get_keys()), None)
        )
    except (OSError, ValueError, TypeError, paramiko.SSHException) as error:
        raise InstallError(
            f"Cannot read the SSH key {path}: {error}.", hint="check ssh.key in the cluster file"
        ) from error
    if key is None:
        raise InstallError(
            "The ssh agent has no key for new nodes.",
            hint="add one with ssh-add, or declare ssh.key",
        )
    return f"{key.get_name()} {key.get_base64()} rackwright"


def listeners(cluster: Cluster) -> list[socket.socket]:
    """Listening sockets on the addresses for agents and BMCs; for a running lab rack, inside its network."""
    network = boot_network(cluster)
    opened: list[socket.socket] = []
    try:
        for address in dict.fromkeys((network.server, network.bmc_server)):
            opened.append(
                listener(
                    cluster,
                    address,
                    network.port,
                    whom="Agents",
                    hint="`boot_network.server` must be an address of this control node; is another install running?",
                )
            )
    except BaseException:
        for one in opened:
            one.close()
        raise
    return opened


def answers_listener(cluster: Cluster) -> socket.socket:
    """A listening socket on the boot network for installers' answers, as above."""
    network = boot_network(cluster)
    return listener(
        cluster,
        network.server,
        network.answers_port,
        whom="Installers",
        hint="if another program uses the port, set another: `boot_network: {answers_port: 8481}`",
    )


def inside_network(cluster: Cluster, argv: Sequence[str]) -> list[str]:
    """Command prefix that runs a program on the boot network; for a running lab rack, inside its namespace."""
    if any(node.lab is not None for node in cluster.nodes):
        from rackwright.lab import names, netns, network  # only the lab needs it

        if netns.rack_is_up(cluster.name):
            return network.inside(names.namespace(cluster.name), argv)
    return list(argv)


def new_socket(cluster: Cluster, kind: int) -> socket.socket:
    """An IPv4 socket of this control node; for a running lab rack, inside its network."""
    if any(node.lab is not None for node in cluster.nodes):
        from rackwright.lab import names, netns  # only the lab needs it

        found = netns.socket_inside(names.namespace(cluster.name), kind)
        if found is not None:
            return found
    return socket.socket(socket.AF_INET, kind)


def listener(cluster: Cluster, address: IPv4Address, port: int, *, whom: str, hint: str) -> socket.socket:
    """A listening socket on an address of this control node; for a running lab rack, inside its network.

    + whom: whom it serves; errors begin with it
    """
    opened = new_socket(cluster, socket.SOCK_STREAM)
    try:
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        opened.bind((str(address), port))
        opened.listen(512)
    except OSError as error:
        opened.close()
        raise InstallError(
            f"{whom} cannot be served at {address}, port {port}: {error.strerror}.", hint=hint
        ) from error
    return opened

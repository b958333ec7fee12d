"""Opening a node's BMC."""

from __future__ import annotations

import socket
from collections.abc import Callable

from rackwright.bmc.interface import BmcClient
from rackwright.bmc.target import Connect, Target
from rackwright.errors import BmcError
from rackwright.model.bmc import BmcProtocol
from rackwright.model.cluster import Cluster, Node
from rackwright.secrets.secret import Secret
from rackwright.secrets.store import store_of


def open_bmc(node: Node, password: Secret, connect: Connect, *, within: float | None = None) -> BmcClient:
    """The client of a node's BMC, which connects on first use; the caller closes it.

    + within: seconds for all its requests together
    """
    if node.bmc is None:
        raise BmcError(f"{node.name} has no BMC declared.", hint="declare `bmc: {address: ...}` for it")
    target = Target(node.name, node.bmc, password)
    if node.bmc.protocol is BmcProtocol.IPMI:
        from rackwright.bmc.ipmi import IpmiClient  # import only what is needed, as below

        return IpmiClient(target, within=within)
    try:
        from rackwright.bmc.redfish import RedfishClient  # sushy is an extra, and takes 0.2 s to load
    except ModuleNotFoundError as error:
        if error.name is None or error.name.startswith("rackwright"):
            raise
        raise BmcError(
            f"Redfish needs the Python package {error.name}.", hint="pip install 'rackwright[bmc]'"
        ) from None
    from rackwright.bmc.redfish_http import RedfishHttp
    from rackwright.bmc.redfish_session import RedfishSession

    return RedfishClient(RedfishSession(RedfishHttp(target, connect, within=within)))


def connector(cluster: Cluster, node: Node) -> Connect:
    """How to connect to a node's BMC: for a running lab rack, inside the rack's network."""

    def connect(address: str, port: int, timeout: float) -> socket.socket:
        opened: socket.socket | None = None
        if node.lab is not None:
            from rackwright.lab.netns import open_socket  # only the lab needs it

            opened = open_socket(cluster.name, address, port, timeout)
        return opened if opened is not None else socket.create_connection((address, port), timeout)

    return connect


Open = Callable[[Node], BmcClient]
"""Opens a node's BMC."""


def opener(cluster: Cluster) -> Open:
    """Opens the BMCs of a cluster's nodes, with passwords from its secrets store."""
    store = store_of(cluster)

    def open_one(node: Node) -> BmcClient:
        if node.bmc is None:
            raise BmcError(f"{node.name} has no BMC declared.", hint="declare `bmc: {address: ...}` for it")
        return open_bmc(node, store.get(node.bmc.password), connector(cluster, node))

    return open_one

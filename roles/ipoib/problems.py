"""Mistakes of the ipoib role's section that only the whole cluster shows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from rackwright.documents.nearest import suggest
from rackwright.lock.for_roles import Trouble
from rackwright.model.cluster import Cluster, Node
from rackwright.model.hcas import DeclaresHcas, RunsSubnetManager
from rackwright.model.types import LinkKind

if TYPE_CHECKING:
    from rackwright.roles.ipoib.options import Child, Interface, IpoibOptions

MTU_MAX = {"datagram": 4092, "connected": 65520}
"""A datagram is a packet of the fabric, 4096 bytes at most, less 4 of IPoIB's own (Documentation/infiniband/ipoib.rst
of Linux; Red Hat, "Configuring IPoIB", which has 65520 for connected mode; read 2026-11-25)."""


def problems(options: IpoibOptions, cluster: Cluster) -> Iterator[Trouble]:
    """(path, sentence, hint) of each."""
    nodes = cluster.running("ipoib", options)
    ports: dict[tuple[str, int], str] = {}
    addresses: dict[tuple[str, int], str] = {}
    for name, entry in options.interfaces.items():
        path = f"interfaces.{name}"
        known = list(_network(cluster, path, entry.network, entry.rail))
        yield from known
        if known:
            continue
        first = ports.setdefault((entry.network, entry.rail), name)
        if first != name:
            yield (
                f"{path}.rail",
                f"{first} is on rail {entry.rail} of {entry.network} too.",
                "a port has one interface, and children under `partitions`",
            )
        yield from _without_device(cluster, path, entry, nodes)
        uses: list[tuple[str, str, int, Interface | Child]] = []
        if entry.address:
            uses.append((path, entry.network, entry.rail, entry))
        for key, child in entry.partitions.items():
            place = f"{path}.partitions.{key}"
            yield from _child(cluster, place, key, entry, child, nodes)
            if child.network is not None and child.network in cluster.networks:
                uses.append((place, child.network, child.rail, child))
        for place, network, rail, one in uses:
            other = addresses.setdefault((network, rail), place)
            if other != place:
                yield (
                    f"{place}.network",
                    f"{other} has the addresses of rail {rail} of {network} already.",
                    "`address: false` at the port, or another network",
                )
            mtu = one.mtu or cluster.networks[network].mtu
            if mtu > MTU_MAX[one.mode]:
                yield (
                    f"{place}.mtu",
                    f"{network} has an MTU of {mtu}, but {one.mode} mode supports {MTU_MAX[one.mode]}.",
                    "lower the network's `mtu` in the cluster file, e.g. 2044",
                )


def _network(cluster: Cluster, path: str, name: str, rail: int) -> Iterator[Trouble]:
    network = cluster.networks.get(name)
    if network is None:
        yield (
            f"{path}.network",
            f"There is no network {name}.",
            suggest(name, cluster.networks, what="networks"),
        )
    elif network.kind is not LinkKind.INFINIBAND:
        yield f"{path}.network", f"{name} is {network.kind}, not InfiniBand.", "use the role `network` for it"
    elif rail >= network.rails:
        yield f"{path}.rail", f"{name} has {network.rails} rails, counted from 0; this is rail {rail}.", None
    elif network is cluster.management:
        yield (
            f"{path}.network",
            f"{name} is the management network: a change to it could cut the nodes off.",
            "configure it when the nodes are installed, and leave it out here",
        )


def _without_device(
    cluster: Cluster, path: str, entry: Interface, nodes: tuple[Node, ...]
) -> Iterator[Trouble]:
    without = [
        node.name for node in nodes if node.address_on(entry.network) and not has_port(cluster, node, entry)
    ]
    if without:
        yield (
            path,
            f"{', '.join(without)}: no RDMA device at a PCI address is declared on rail {entry.rail} of {entry.network}.",
            f'rdma: {{devices: {{mlx5_rail{entry.rail}: {{pci: "0000:18:00.0", rail: {entry.rail}}}}}}}',
        )


def has_port(cluster: Cluster, node: Node, entry: Interface) -> bool:
    """Whether a node declares a card on the rail."""
    declares = node.offers(DeclaresHcas)
    return declares is not None and any(
        (hca.network, hca.rail) == (entry.network, entry.rail) and hca.pci is not None
        for hca in declares.hcas(cluster, node)
    )


def _child(
    cluster: Cluster, path: str, key: str, entry: Interface, child: Child, nodes: tuple[Node, ...]
) -> Iterator[Trouble]:
    if child.network is not None:
        yield from _network(cluster, path, child.network, child.rail)
    unsupported = {str(node.os): node for node in reversed(nodes) if not node.os.networkd_makes_ipoib}
    for os, node in unsupported.items():
        yield (
            path,
            f"systemd-networkd of {os}, which {node.name} runs, cannot make interfaces in partitions.",
            "a later release, or leave `partitions` out",
        )
    for manager in filter(None, (node.offers(RunsSubnetManager) for node in cluster.nodes)):
        if not manager.subnet_managers(entry.network):
            continue
        pkey = int(key, 16) & 0x7FFF
        without = [
            node.name
            for node in nodes
            if pkey not in {one & 0x7FFF for one in manager.pkeys(cluster, node, entry.network)}
        ]
        if without:
            yield (
                path,
                f"{', '.join(without)}: not in the partition {pkey:#06x} of {entry.network}, as the role opensm has it.",
                "add them to its `members`",
            )
        return


def warnings(options: IpoibOptions) -> Iterator[Trouble]:
    """Connected mode of today's cards."""
    for name, entry in options.interfaces.items():
        if "connected" in (entry.mode, *(child.mode for child in entry.partitions.values())):
            yield (
                f"interfaces.{name}.mode",
                "ConnectX-4 and later support only datagram mode by default.",
                "mode: datagram",
            )
            return

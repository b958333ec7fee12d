"""What a node's IPoIB interfaces are to be, from the declaration alone. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import IPv4Interface

from rackwright.model.cluster import Cluster, Node
from rackwright.model.hcas import DeclaresHcas
from rackwright.roles.ipoib.options import Child, Interface, IpoibOptions


@dataclass(frozen=True)
class Link:
    """One interface."""

    name: str
    mode: str
    mtu: int
    address: IPv4Interface | None
    pci: str | None = None
    """Of a port; None: of a child."""
    parent: str | None = None
    pkey: str | None = None
    """Of a child, e.g. `0x8001`."""
    children: tuple[str, ...] = ()

    @property
    def pkey_number(self) -> int:
        """As NetworkManager's keyfiles have it."""
        return int(self.pkey or "0", 16)


def links(cluster: Cluster, node: Node, options: IpoibOptions) -> tuple[Link, ...]:
    """Those of a node, each port before its children."""
    declares = node.offers(DeclaresHcas)
    hcas = () if declares is None else declares.hcas(cluster, node)
    places = {(hca.network, hca.rail): hca.pci for hca in hcas}
    found: list[Link] = []
    for name, entry in options.interfaces.items():
        pci = places.get((entry.network, entry.rail))
        if pci is None:
            continue
        names = {key: f"{name}.{key.removeprefix('0x')}" for key in entry.partitions}
        network = entry.network if entry.address else None
        address = _address(cluster, node, network, entry.rail)
        mtu = _mtu(cluster, entry, entry.network)
        found.append(Link(name, entry.mode, mtu, address, pci=pci, children=tuple(names.values())))
        for key, child in entry.partitions.items():
            address = _address(cluster, node, child.network, child.rail)
            mtu = _mtu(cluster, child, child.network or entry.network)
            found.append(Link(names[key], child.mode, mtu, address, parent=name, pkey=key))
    return tuple(found)


def _address(cluster: Cluster, node: Node, network: str | None, rail: int) -> IPv4Interface | None:
    address = None if network is None else node.address_on(network, rail)
    if network is None or address is None:
        return None
    return IPv4Interface((int(address), cluster.networks[network].subnet(rail).prefixlen))


def _mtu(cluster: Cluster, entry: Interface | Child, network: str) -> int:
    return entry.mtu or cluster.networks[network].mtu

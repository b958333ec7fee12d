"""The declared network of a node: one device for each port, bond and VLAN, from the declaration alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv4Interface, IPv4Network
from typing import Literal

from rackwright.model.cluster import Cluster, Network, Node
from rackwright.model.routes import default_networks
from rackwright.roles.network.options import DECLARED, Bond, NetworkOptions

FIRST_TABLE = 1000
"""Routing table of rail 0; further ones follow. 253 to 255 are the kernel's, and sites use low numbers."""
PEERS_MAX = 4


@dataclass(frozen=True)
class Hop:
    """One route of a device."""

    to: IPv4Network
    via: IPv4Address | None = None
    metric: int | None = None
    table: int | None = None
    source: IPv4Address | None = None

    @property
    def default(self) -> bool:
        return self.to.prefixlen == 0


@dataclass(frozen=True)
class Rule:
    """Packets from an address are routed by a table."""

    source: IPv4Address
    table: int


@dataclass(frozen=True)
class Device:
    """One interface of the node."""

    name: str
    kind: Literal["port", "bond", "vlan"]
    mtu: int
    match: tuple[Literal["mac", "pci"], str] | None = None
    """Of a port: how it is found."""
    bond: Bond | None = None
    controller: str | None = None
    """Of a port: the bond it belongs to."""
    parent: str | None = None
    vlan: int | None = None
    vlans: tuple[str, ...] = ()
    """Devices of VLANs on this one."""
    addresses: tuple[IPv4Interface, ...] = ()
    routes: tuple[Hop, ...] = ()
    rules: tuple[Rule, ...] = ()


@dataclass(frozen=True)
class Carried:
    """A network, or one rail of it, at the device that has its address."""

    network: Network
    rail: int
    device: str
    address: IPv4Interface
    peers: tuple[IPv4Address, ...]
    """Who should answer there: the gateway, the head, other nodes."""

    @property
    def label(self) -> str:
        return f"{self.network.name} rail {self.rail}" if self.network.rails > 1 else self.network.name


@dataclass(frozen=True)
class Layout:
    """All of a node's network that is declared."""

    devices: tuple[Device, ...]
    carried: tuple[Carried, ...]

    @property
    def ports(self) -> tuple[Device, ...]:
        return tuple(device for device in self.devices if device.kind == "port")

    @property
    def virtual(self) -> tuple[Device, ...]:
        return tuple(device for device in self.devices if device.kind != "port")


@dataclass
class _Place:
    """A device while it is put together."""

    mtu: int = 0
    addresses: list[IPv4Interface] = field(default_factory=list)
    routes: list[Hop] = field(default_factory=list)
    rules: list[Rule] = field(default_factory=list)


def layout(cluster: Cluster, node: Node, options: NetworkOptions) -> Layout:
    """The devices of a node; ports first, then bonds, then VLANs."""
    places: dict[str, _Place] = {}
    vlans: dict[str, tuple[str, int]] = {}
    carried: list[Carried] = []
    for name, entry in options.networks.items():
        network = cluster.networks[name]
        for rail, base in enumerate(entry.devices):
            tag = network.vlan if entry.tagged else None
            device = base if tag is None else f"{base}.{tag}"
            if tag is not None:
                vlans[device] = (base, tag)
            for affected in (base, device):
                place = places.setdefault(affected, _Place())
                place.mtu = max(place.mtu, network.mtu)
            address = node.address_on(name, rail)
            if address is None:
                continue
            interface = IPv4Interface((int(address), network.subnet(rail).prefixlen))
            places[device].addresses.append(interface)
            places[device].routes += _routes(cluster, node, options, network, rail, interface)
            if options.policy_routing == "rails" and network.rails > 1:
                places[device].rules.append(Rule(address, FIRST_TABLE + rail))
            peers = tuple(_peers(cluster, node, network, rail))
            carried.append(Carried(network, rail, device, interface, peers))
    devices = (*_ports(node, options, places, vlans), *_bonds(options, places, vlans), *_vlans(places, vlans))
    return Layout(devices, tuple(carried))


def _ports(
    node: Node, options: NetworkOptions, places: dict[str, _Place], vlans: dict[str, tuple[str, int]]
) -> Iterator[Device]:
    controllers = {port: name for name, bond in options.bonds.items() for port in bond.interfaces}
    for name, interface in options.interfaces.items():
        controller = controllers.get(name)
        place = places.get(controller or name, _Place())
        mac = node.mac if interface.mac == DECLARED else interface.mac
        match: tuple[Literal["mac", "pci"], str] = (
            ("pci", interface.pci) if interface.pci is not None else ("mac", (mac or "").lower())
        )
        own = _Place(mtu=place.mtu) if controller else place
        yield Device(
            name,
            "port",
            interface.mtu or own.mtu or 1500,
            match=match,
            controller=controller,
            vlans=_on(name, vlans),
            addresses=tuple(own.addresses),
            routes=tuple(own.routes),
            rules=tuple(own.rules),
        )


def _bonds(
    options: NetworkOptions, places: dict[str, _Place], vlans: dict[str, tuple[str, int]]
) -> Iterator[Device]:
    for name, bond in options.bonds.items():
        place = places.get(name, _Place())
        mtus = [options.interfaces[port].mtu for port in bond.interfaces]
        yield Device(
            name,
            "bond",
            min([mtu for mtu in mtus if mtu is not None] or [place.mtu or 1500]),
            bond=bond,
            vlans=_on(name, vlans),
            addresses=tuple(place.addresses),
            routes=tuple(place.routes),
            rules=tuple(place.rules),
        )


def _vlans(places: dict[str, _Place], vlans: dict[str, tuple[str, int]]) -> Iterator[Device]:
    for name, (parent, tag) in vlans.items():
        place = places[name]
        yield Device(
            name,
            "vlan",
            place.mtu,
            parent=parent,
            vlan=tag,
            addresses=tuple(place.addresses),
            routes=tuple(place.routes),
            rules=tuple(place.rules),
        )


def _on(name: str, vlans: dict[str, tuple[str, int]]) -> tuple[str, ...]:
    return tuple(device for device, (parent, _) in vlans.items() if parent == name)


def _routes(
    cluster: Cluster,
    node: Node,
    options: NetworkOptions,
    network: Network,
    rail: int,
    address: IPv4Interface,
) -> Iterator[Hop]:
    if network in default_networks(cluster.networks, node):
        yield Hop(IPv4Network("0.0.0.0/0"), network.gateway)
    subnet = network.subnet(rail)
    by_rail = options.policy_routing == "rails" and network.rails > 1
    if by_rail:
        yield Hop(subnet, None, None, FIRST_TABLE + rail, address.ip)
    for route in options.routes:
        if route.network == network.name and route.via in subnet:
            yield Hop(route.to, route.via, route.metric, route.table)
            if by_rail and route.table is None:
                yield Hop(route.to, route.via, route.metric, FIRST_TABLE + rail, address.ip)


def _peers(cluster: Cluster, node: Node, network: Network, rail: int) -> Iterator[IPv4Address]:
    """The gateway, the head, then other nodes of the network."""
    others = [cluster.primary, *(other for other in cluster.nodes if not other.primary)]
    found = [network.gateway] if network.gateway is not None else []
    found += [
        address
        for other in others
        if other.name != node.name and (address := other.address_on(network.name, rail)) is not None
    ][:PEERS_MAX]
    yield from found[:PEERS_MAX]

"""Mistakes of the network role's section that only the whole cluster shows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from rackwright.documents.nearest import suggest
from rackwright.model.cluster import Cluster
from rackwright.model.types import LinkKind

if TYPE_CHECKING:
    from rackwright.roles.network.options import NetworkOptions

_NAME_MAX = 15
Problem = tuple[str, str, str | None]


def problems(options: NetworkOptions, cluster: Cluster) -> Iterable[Problem]:
    """(path, sentence, hint) of each."""
    yield from _names_and_bonds(options)
    yield from _networks(options, cluster)
    yield from _sizes(options, cluster)
    yield from _routes(options, cluster)
    yield from _macs(options, cluster)


def _names_and_bonds(options: NetworkOptions) -> Iterator[Problem]:
    owner: dict[str, str] = {}
    for name, bond in options.bonds.items():
        path = f"bonds.{name}"
        if name in options.interfaces:
            yield path, f"{name} is an interface and a bond.", None
        for number, port in enumerate(bond.interfaces):
            if port not in options.interfaces:
                hint = suggest(port, options.interfaces, what="interfaces")
                yield f"{path}.interfaces[{number}]", f"There is no interface {port}.", hint
            elif port in owner:
                yield f"{path}.interfaces[{number}]", f"{port} is already a port of {owner[port]}.", None
            else:
                owner[port] = name
    places: dict[str, str] = {}
    for name, interface in options.interfaces.items():
        place = interface.pci or interface.mac or ""
        if place in places:
            yield f"interfaces.{name}", f"{places[place]} is at {place} too.", None
        places.setdefault(place, name)


def _networks(options: NetworkOptions, cluster: Cluster) -> Iterator[Problem]:
    if not options.networks:
        if options.interfaces or options.bonds:
            yield (
                "networks",
                "Ports are declared, but no network uses them.",
                "networks: {management: {on: mgmt0}}",
            )
        return
    if cluster.management.name not in options.networks:
        yield (
            "networks",
            f"{cluster.management.name}, the management network, is missing here: nodes would lose their connection to it.",
            f"{cluster.management.name}: {{on: mgmt0}}",
        )
    plain: dict[str, str] = {}
    for name, entry in options.networks.items():
        path = f"networks.{name}"
        network = cluster.networks.get(name)
        if network is None:
            yield path, f"There is no network {name}.", suggest(name, cluster.networks, what="networks")
        elif network.kind is LinkKind.INFINIBAND:
            yield (
                path,
                f"{name} is InfiniBand, which this role does not configure.",
                "take it out of this section, and declare its interfaces in the role `ipoib`",
            )
        else:
            count = len(entry.devices)
            if count != network.rails:
                sentence = f"{name} has {network.rails} rails, but {count} devices are given."
                yield f"{path}.on", sentence, "one for each"
            for rail, device in enumerate(entry.devices):
                vlan = network.vlan if entry.tagged else None
                yield from _device(options, f"{path}.on", name, device, vlan, plain)
                of_port = options.interfaces[device].rail if device in options.interfaces else None
                if network.rails > 1 and of_port not in (None, rail):
                    yield (
                        f"{path}.on",
                        f"{device} is declared on rail {of_port} and used for rail {rail}.",
                        None,
                    )


def _device(
    options: NetworkOptions, path: str, name: str, device: str, vlan: int | None, plain: dict[str, str]
) -> Iterator[Problem]:
    """One network on one device; `plain` are the untagged ones so far."""
    bond = next((name for name, bond in options.bonds.items() if device in bond.interfaces), None)
    if bond is not None:
        yield path, f"{device} is a port of {bond} and cannot carry a network itself.", f"on: {bond}"
    elif device not in options.interfaces and device not in options.bonds:
        known = [*options.interfaces, *options.bonds]
        yield path, f"There is no interface or bond {device}.", suggest(device, known, what="devices")
    elif vlan is None:
        if device in plain:
            yield (
                path,
                f"{plain[device]} and {name} are both untagged on {device}.",
                "give one a `vlan` in the cluster file's `networks`",
            )
        plain.setdefault(device, name)
    elif len(f"{device}.{vlan}") > _NAME_MAX:
        yield path, f"{device}.{vlan} is longer than {_NAME_MAX} characters.", "a shorter name"


def _sizes(options: NetworkOptions, cluster: Cluster) -> Iterator[Problem]:
    """A VLAN takes no larger packets than what it is on, a bond none larger than its ports."""
    of_bond = {name: bond.interfaces for name, bond in options.bonds.items()}
    for name, entry in options.networks.items():
        network = cluster.networks.get(name)
        for device in entry.devices if network is not None else ():
            for port in of_bond.get(device, (device,)):
                interface = options.interfaces.get(port)
                if network and interface and interface.mtu is not None and interface.mtu < network.mtu:
                    yield (
                        f"interfaces.{port}.mtu",
                        f"{name} has an MTU of {network.mtu}, but {port} only {interface.mtu}.",
                        f"mtu: {network.mtu}, or leave it out",
                    )


def _routes(options: NetworkOptions, cluster: Cluster) -> Iterator[Problem]:
    for number, route in enumerate(options.routes):
        path = f"routes[{number}]"
        network = cluster.networks.get(route.network)
        if network is None or route.network not in options.networks:
            hint = suggest(route.network, options.networks, what="networks")
            yield f"{path}.network", f"There is no network {route.network} in this section.", hint
        elif route.via not in network.cidr:
            yield f"{path}.via", f"{route.via} is not in {network.name} ({network.cidr}).", None
    fabrics = [
        name for name in options.networks if name in cluster.networks and cluster.networks[name].rails > 1
    ]
    if options.policy_routing == "rails" and not fabrics:
        yield "policy_routing", "No network of this section has rails.", "policy_routing: none"


def _macs(options: NetworkOptions, cluster: Cluster) -> Iterator[Problem]:
    for name, interface in options.interfaces.items():
        if interface.mac == "declared":
            without = [node.name for node in cluster.running("network", options) if node.mac is None]
            if without:
                yield (
                    f"interfaces.{name}.mac",
                    f"{', '.join(without)}: no MAC is declared.",
                    "`macs` of the group",
                )
        elif interface.mac is not None and len(cluster.running("network", options)) > 1:
            yield (
                f"interfaces.{name}.mac",
                "Several nodes share this section, but a MAC address belongs to one port.",
                "`mac: declared`, or `pci`",
            )

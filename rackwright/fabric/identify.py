"""Maps a discovery to the names of the cluster file: nodes by rail, switches, ports by number."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field

from rackwright.boundary import printable
from rackwright.fabric.discovered import Device, Discovery, Health, Link, Port
from rackwright.model.fabric import Fabric, NodePort, SwitchPort
from rackwright.model.types import LinkKind

NAME_MAX = 80
_WORD = re.compile(r"[A-Za-z0-9-]+")


@dataclass(frozen=True, slots=True, order=True)
class Stranger:
    """An end that the cluster file does not declare."""

    name: str
    """Printable."""
    port: str

    def __str__(self) -> str:
        return f"{self.name} port {self.port}"


FoundEnd = NodePort | SwitchPort | Stranger


@dataclass(frozen=True)
class Names:
    """What is needed to give a node's device its rail."""

    rails: Mapping[tuple[str, str], int] = field(default_factory=dict)
    """Node and RDMA device, or node and network interface, to the rail, as roles declare it or nodes have its address."""
    guids: Mapping[str, NodePort] = field(default_factory=dict)
    """Node GUIDs (16 hexadecimal digits) that nodes reported of their devices."""


@dataclass
class Found:
    """A discovery in the cluster file's names."""

    partner: dict[FoundEnd, FoundEnd] = field(default_factory=dict)
    """What is at the other end of each end's cable."""
    link: dict[FoundEnd, Link] = field(default_factory=dict)
    health: dict[FoundEnd, Health] = field(default_factory=dict)
    bit_error_rates: Mapping[NodePort, float] = field(default_factory=dict)
    """Effective ones, as discovery read them."""
    devices: dict[str, list[Device]] = field(default_factory=lambda: defaultdict(list))
    """By node or switch of the cluster file."""
    undecided: dict[Stranger, str] = field(default_factory=dict)
    """Ports of which only the node is known."""
    unread: list[str] = field(default_factory=list)
    silent: dict[str, str] = field(default_factory=dict)

    @property
    def seen(self) -> frozenset[str]:
        """Nodes and switches of the cluster file that were found."""
        return frozenset(self.devices)


def identify(fabric: Fabric, discovery: Discovery, names: Names, nodes: Collection[str]) -> Found:
    """The discovery in the names of a fabric; `nodes` are all of the cluster.

    A device without an unambiguous name is a Stranger; `unread` reports it if that matters.
    """
    found = Found(
        bit_error_rates=discovery.bit_error_rates,
        unread=[printable(text, 300) for text in discovery.unread],
        silent=dict(discovery.silent),
    )
    owner = _owners(fabric, discovery, frozenset(nodes), found)
    resolve = _Resolver(fabric, discovery, names, owner, found)
    for link in discovery.links:
        one, other = resolve.end(link.one), resolve.end(link.other)
        for near, far in ((one, other), (other, one)):
            if near in found.partner and found.partner[near] != far:
                found.unread.append(f"discovery shows two cables at {near}")
            found.partner[near] = far
            found.link[near] = link
    for port, health in discovery.health.items():
        found.health[resolve.end(port)] = health
    return found


def _owners(
    fabric: Fabric, discovery: Discovery, nodes: frozenset[str], found: Found
) -> dict[str, tuple[str, bool] | None]:
    """Node or switch of the cluster file, and whether it is a switch, by discovery's key; None: a stranger."""
    by_guid = {one.guid: name for name, one in fabric.switches.items() if one.guid is not None}
    described = {
        one.description: name for name, one in fabric.switches.items() if one.description is not None
    }
    free = {name for name, one in fabric.switches.items() if one.description is None and one.guid is None}
    owner: dict[str, tuple[str, bool] | None] = {}
    taken: dict[str, str] = {}
    for key, device in discovery.devices.items():
        if not device.switch:
            host = _host(device, nodes)
            owner[key] = (host, False) if host is not None else None
        else:
            words = [word for word in _words(device.description) if word in free]
            name = (
                by_guid.get(key)
                or described.get(device.description)
                or (words[0] if len(words) == 1 else None)
            )
            if name is not None and taken.setdefault(name, key) != key:
                found.unread.append(
                    f"{printable(device.description, NAME_MAX)} ({key}) and {taken[name]} could both be {name}: "
                    "declare their GUIDs under `switches`"
                )
            owner[key] = (name, True) if name is not None else None
        if (known := owner[key]) is not None:
            found.devices[known[0]].append(device)
    return owner


def _words(text: str) -> Iterator[str]:
    """Words of a description in lower case, as names of switches are; `leaf1.example.com` has leaf1."""
    yield from dict.fromkeys(_WORD.findall(text[:512].lower()))


def _host(device: Device, nodes: frozenset[str]) -> str | None:
    """The node that a device belongs to: the first word of its description, or its key."""
    first = device.description.split(maxsplit=1)[0] if device.description.strip() else device.key
    short = first.partition(".")[0]
    return short if short in nodes else None


class _Resolver:
    """Ends of one discovery."""

    def __init__(
        self,
        fabric: Fabric,
        discovery: Discovery,
        names: Names,
        owner: Mapping[str, tuple[str, bool] | None],
        found: Found,
    ) -> None:
        self._fabric = fabric
        self._discovery = discovery
        self._names = names
        self._owner = owner
        self._found = found
        before, _, after = fabric.port_name.partition("{port}")
        self._port = re.compile(f"{re.escape(before)}([0-9]{{1,4}}){re.escape(after)}")
        self._undecided: set[str] = set()
        self._devices_of: dict[str, int] = defaultdict(int)
        for known in owner.values():
            if known is not None:
                self._devices_of[known[0]] += 1

    def end(self, port: Port) -> FoundEnd:
        """The end that a port is."""
        known, device = self._owner.get(port.device), self._discovery.devices.get(port.device)
        if device is None:
            return Stranger(printable(port.device, NAME_MAX), printable(port.port, NAME_MAX))
        shown = printable(device.description.strip() or port.device, NAME_MAX)
        if known is None:
            named = f"{shown} ({port.device})" if device.switch and port.device != shown else shown
            return Stranger(printable(named, NAME_MAX), printable(port.port, NAME_MAX))
        name, switch = known
        if switch:
            number = self._number(port.port)
            return (
                Stranger(name, printable(port.port, NAME_MAX)) if number is None else SwitchPort(name, number)
            )
        return self._of_node(name, device, port, shown)

    def _number(self, port: str) -> int | None:
        if self._fabric.kind is LinkKind.INFINIBAND:
            return int(port) if port.isascii() and port.isdecimal() and len(port) < 5 else None
        found = self._port.fullmatch(port)
        return int(found[1]) if found else None

    def _of_node(self, node: str, device: Device, port: Port, shown: str) -> FoundEnd:
        if (by_guid := self._names.guids.get(device.key)) is not None and by_guid.node == node:
            return by_guid
        ethernet = self._fabric.kind is not LinkKind.INFINIBAND
        word = port.port if ethernet else (device.description.split(maxsplit=2)[1:2] or [""])[0]
        rail = self._names.rails.get((node, word))
        if rail is None and not ethernet and self._fabric.rails == 1 and self._devices_of[node] == 1:
            rail = 0
        if rail is not None:
            return NodePort(node, rail)
        stranger = Stranger(node if ethernet else shown, printable(port.port, NAME_MAX))
        if not ethernet:
            self._found.undecided[stranger] = node
            if node not in self._undecided:
                self._undecided.add(node)
                self._found.unread.append(
                    f"which rail of {node} is {shown}? Declare its devices by PCI address in `roles.rdma.devices`"
                )
        return stranger

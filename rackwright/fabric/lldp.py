"""Parses lldpd's neighbours on a node, and the node's interfaces."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from ipaddress import IPv4Address
from typing import Any

from rackwright.boundary import Refused, read_json
from rackwright.fabric.discovered import Device, Discovery, Health, Link, Port

COMMAND = "lldpcli -f json show neighbors details"
INTERFACES = "ip -j -4 address show"
STATES = (
    'for path in /sys/class/net/*; do [ -e "$path/device" ] || [ -e "$path/ifindex" ] || continue; '
    'printf "%s %s %s\\n" "${path##*/}" "$(cat "$path/operstate" 2>/dev/null || echo -)" '
    '"$(cat "$path/speed" 2>/dev/null || echo -)"; done'
)
"""Name, operational state and speed in Mb/s; a port that is down has no speed."""


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A neighbour of one interface."""

    interface: str
    system: str | None
    chassis: str
    port: str
    bridge: bool
    """Whether it announces itself as a switch."""


def parse_neighbours(text: str) -> tuple[Neighbour, ...]:
    """Neighbours in lldpd's JSON (1.0.11 to 1.0.19). Refused where it is not that.

    lldpd lists one interface as an object and several as a list, and leaves the system's name out where there is none.
    """
    return neighbours_of(read_json(text))


def neighbours_of(document: object) -> tuple[Neighbour, ...]:
    """As parse_neighbours, of the JSON document."""
    lldp = document.get("lldp") if isinstance(document, dict) else None
    if not isinstance(lldp, dict):
        raise Refused("not JSON from lldpcli")
    listed = lldp.get("interface", [])
    entries = listed if isinstance(listed, list) else [listed]
    found = [
        neighbour
        for entry in entries
        if isinstance(entry, dict)
        for name, content in entry.items()
        if (neighbour := _neighbour(name, content)) is not None
    ]
    return tuple(found)


def _neighbour(name: str, content: object) -> Neighbour | None:
    if not isinstance(content, dict) or str(content.get("via", "LLDP")) != "LLDP":
        return None
    chassis, port = content.get("chassis"), content.get("port")
    if not isinstance(chassis, dict) or not isinstance(port, dict):
        raise Refused(f"the neighbour of {name} has no chassis or no port")
    system, details = None, chassis
    if "id" not in chassis and len(chassis) == 1:
        system, details = next(iter(chassis.items()))
    if not isinstance(details, dict):
        raise Refused(f"the chassis of the neighbour of {name} cannot be read")
    return Neighbour(name, system, _id(details), _port_name(port), _is_bridge(details))


def _id(part: Mapping[str, Any]) -> str:
    identifier = part.get("id")
    return str(identifier.get("value", "")) if isinstance(identifier, dict) else ""


def _port_name(port: Mapping[str, Any]) -> str:
    """The port's name: its ID where that is one, else its description (a MAC address names no port)."""
    identifier = port.get("id")
    kind = str(identifier.get("type", "")) if isinstance(identifier, dict) else ""
    description = port.get("descr")
    if kind in ("ifname", "local", "ifalias") or not isinstance(description, str):
        return _id(port)
    return description


def _is_bridge(chassis: Mapping[str, Any]) -> bool:
    listed = chassis.get("capability", [])
    entries = listed if isinstance(listed, list) else [listed]
    return any(
        isinstance(entry, dict) and entry.get("type") in ("Bridge", "Router") and entry.get("enabled") is True
        for entry in entries
    )


def certain(found: Iterable[Neighbour]) -> Iterator[Neighbour]:
    """Where a port has several neighbours and one is a switch, the others are behind it (a hub, a virtual switch)."""
    by_interface: dict[str, list[Neighbour]] = {}
    for one in found:
        by_interface.setdefault(one.interface, []).append(one)
    for several in by_interface.values():
        bridges = [one for one in several if one.bridge]
        yield from bridges if len(several) > 1 and len(bridges) == 1 else several


def addresses_of(text: str) -> dict[IPv4Address, str]:
    """The interface of each address; of a VLAN the port below it."""
    entries = read_json(text)
    if not isinstance(entries, list):
        raise Refused("not JSON from ip")
    found: dict[IPv4Address, str] = {}
    for entry in entries:
        if not isinstance(entry, dict) or not isinstance(name := entry.get("ifname"), str):
            continue
        below = entry.get("link")
        for address in entry.get("addr_info", []) if isinstance(entry.get("addr_info"), list) else []:
            try:
                found[IPv4Address(address["local"])] = (
                    below if isinstance(below, str) and below != name and "." in name else name
                )
            except (KeyError, TypeError, ValueError):
                continue
    return found


def states_of(text: str) -> tuple[dict[str, str], dict[str, float]]:
    """Operational state, and speed in Gb/s where there is one, by interface."""
    states: dict[str, str] = {}
    speeds: dict[str, float] = {}
    for line in text.splitlines():
        words = line.split()
        if len(words) != 3:
            continue
        name, state, speed = words
        states[name] = state.lower()
        if speed.isascii() and speed.isdecimal() and 0 < len(speed) < 8 and int(speed) > 0:
            speeds[name] = int(speed) / 1000
    return states, speeds


def of_node(
    node: str, neighbours: tuple[Neighbour, ...], states: Mapping[str, str], speeds: Mapping[str, float]
) -> Discovery:
    """What one node found."""
    devices = {node: Device(node, switch=False, description=node)}
    links = []
    for one in certain(neighbours):
        key = one.system or one.chassis
        devices[key] = Device(key, switch=True, description=key)
        links.append(Link(Port(node, one.interface), Port(key, one.port), speeds.get(one.interface)))
    health = {Port(node, name): Health(state=state) for name, state in states.items() if state != "unknown"}
    return Discovery(devices, tuple(links), health)

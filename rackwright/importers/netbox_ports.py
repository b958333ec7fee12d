"""NetBox's interfaces and cables: the MAC of a device's one network port, and the leaf switches that it is cabled to."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from rackwright.importers.records import Cell, Record, quoted

Json = Mapping[str, Any]
_NOT_A_PORT = ("virtual", "bridge", "lag", "other")
_INFINIBAND = "infiniband"


@dataclass(frozen=True)
class _Port:
    name: str
    kind: str | None
    """NetBox's type, e.g. `infiniband-ndr`; None: known from a cable alone."""
    mac: str | None
    peer: str | None
    """The device at the other end."""


@dataclass
class Ports:
    """The ports of devices by the device's id."""

    by_device: dict[int, dict[str, _Port]] = field(default_factory=dict)
    file: str = ""
    given: bool = False
    ignored: list[str] = field(default_factory=list)

    def add_to(self, record: Record, device: Json) -> None:
        """Add MAC and leaf switches to a device's record, each only where the ports leave no choice."""
        ports = list(self.by_device.get(device.get("id", -1), {}).values())
        macs = [port for port in ports if port.mac and port.kind and not port.kind.startswith(_INFINIBAND)]
        if len(macs) == 1 and macs[0].mac:
            record.cells["mac"] = Cell(macs[0].mac, f"{record.where}, interface {macs[0].name}")
        elif macs:
            names = ", ".join(quoted(port.name) for port in macs)
            self.ignored.append(
                f"{record.where}: MAC addresses of {names}: which is the management port is not certain"
            )
        fabric = [port for port in ports if port.kind is not None and port.kind.startswith(_INFINIBAND)]
        cabled = [port for port in fabric or ports if port.peer]
        peers = [port.peer for port in sorted(cabled, key=lambda port: _natural(port.name)) if port.peer]
        if len(set(peers)) == 1:
            record.cells["switch"] = Cell(peers[0], f"{record.where}, cables")
        elif fabric and len(peers) == len(fabric):
            record.cells["switch"] = Cell(", ".join(peers), f"{record.where}, cables")
        elif peers:
            names = ", ".join(quoted(peer) for peer in dict.fromkeys(peers))
            self.ignored.append(
                f"{record.where}: cables to {names}: which are the leaves of its rails is not certain"
            )


def read_ports(ports: Ports, objects: Iterable[Json], kind: str, file: str) -> None:
    """Add the interfaces or the cables of a file; ports of BMCs and virtual ones are left out."""
    found = _interfaces(objects) if kind == "interfaces" else _cables(objects)
    for device, port in found:
        known = ports.by_device.setdefault(device, {})
        before = known.get(port.name)
        if before is None:
            if kind == "interfaces" or not ports.given:
                known[port.name] = port
        elif before.peer is None:
            known[port.name] = _Port(before.name, before.kind, before.mac, port.peer)
    ports.given, ports.file = True, file


def _interfaces(objects: Iterable[Json]) -> Iterator[tuple[int, _Port]]:
    for one in objects:
        kind = _at(one, "type", "value")
        device = _at(one, "device", "id")
        if (
            one.get("mgmt_only")
            or one.get("enabled") is False
            or kind in _NOT_A_PORT
            or not isinstance(device, int)
        ):
            continue
        mac = one.get("mac_address") or _at(one, "primary_mac_address", "mac_address")
        ends = one.get("connected_endpoints") or []
        peers = {name for end in ends if isinstance(name := _at(end, "device", "name"), str)}
        yield (
            device,
            _Port(
                str(one.get("name")),
                str(kind),
                mac if isinstance(mac, str) else None,
                peers.pop() if len(peers) == 1 else None,
            ),
        )


def _cables(objects: Iterable[Json]) -> Iterator[tuple[int, _Port]]:
    for one in objects:
        ends = [_ends(one.get(side)) for side in ("a_terminations", "b_terminations")]
        if not all(len(side) == 1 for side in ends):
            continue  # break-out cables have several ends; connected_endpoints of the interfaces resolves them
        for (device, _, port), (_, peer, _) in ((ends[0][0], ends[1][0]), (ends[1][0], ends[0][0])):
            yield device, _Port(port, None, None, peer)


def _ends(side: object) -> list[tuple[int, str, str]]:
    """Device id, device and port of each end that is an interface."""
    found = []
    for end in side if isinstance(side, list) else ():
        device, name, port = (
            _at(end, "object", "device", "id"),
            _at(end, "object", "device", "name"),
            _at(end, "object", "name"),
        )
        if _at(end, "object_type") == "dcim.interface" and isinstance(device, int) and isinstance(name, str):
            found.append((device, name, str(port)))
    return found


def _natural(name: str) -> list[tuple[int, str]]:
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", name)]


def _at(data: Any, *path: str) -> Any:  # noqa: ANN401 - JSON data
    for key in path:
        data = data.get(key) if isinstance(data, dict) else None
    return data

"""Records to typed nodes: each text checked with the types of the cluster file, each mistake with its place."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from ipaddress import AddressValueError, IPv4Interface, NetmaskValueError
from typing import TypeVar

from pydantic import TypeAdapter, ValidationError

from rackwright.clusterfile.plaintext_secrets import looks_secret
from rackwright.documents.nearest import listed
from rackwright.importers.columns import header_of
from rackwright.importers.names import as_label, split_host_name
from rackwright.importers.records import Field, Record, Source, quoted
from rackwright.importers.words import IGNORE, RoleNames, near_skus, os_of, role_of, sku_of
from rackwright.model.install import MachineSerial
from rackwright.model.text import Mac
from rackwright.model.types import NodeRole

ValueT = TypeVar("ValueT")
_MAC: TypeAdapter[str] = TypeAdapter(Mac)
_SERIAL: TypeAdapter[str] = TypeAdapter(MachineSerial)
_HIGHEST = 200
_SECRET = "It looks like a secret: remove it from the source and treat it as leaked."


@dataclass(frozen=True)
class Found:
    """One node; None and empty: not in the source; `missing` has why, where it is known."""

    name: str
    where: str
    domain: str | None = None
    roles: frozenset[NodeRole] = frozenset()
    os: str | None = None
    sku: str | None = None
    address: IPv4Interface | None = None
    bmc: IPv4Interface | None = None
    mac: str | None = None
    serial: str | None = None
    rack: str | None = None
    position: int | None = None
    switch: tuple[str, ...] = ()
    primary: bool = False
    missing: dict[Field, str] = field(default_factory=dict)
    suggested_sku: str | None = None


def resolve(source: Source, given: RoleNames) -> list[Found]:
    """The nodes of a source, in its order; what cannot be used is added to its mistakes, or to `ignored`."""
    nodes, renamed = [], Renamed()
    for record in source.records:
        roles = _roles(record, given)
        if roles is None:
            cell = record.cells["roles"]
            source.ignored.append(f"{_label(record)}: {quoted(cell.text)} is not a node of the cluster")
            continue
        node = _Reader(source, record, renamed).node(roles)
        if node is not None:
            nodes.append(node)
    source.ignored += renamed.lines()
    return _unique(source, nodes)


@dataclass
class Renamed:
    """Names that are written in another form; two that become one are refused."""

    names: dict[tuple[str, str], str] = field(default_factory=dict)
    """What it is and the written form, to the source's form."""

    def note(self, what: str, text: str, written: str) -> str:
        """The written form. Raises ValueError where another name of the source has it."""
        first = self.names.setdefault((what, written), text)
        if first != text:
            raise ValueError(f"would be written as {written}, as {quoted(first)} is")
        return written

    def lines(self) -> list[str]:
        """A line for each kind of name of which some are written in another form."""
        found: dict[str, list[str]] = {}
        for (what, written), text in self.names.items():
            if text != written:
                found.setdefault(what, []).append(f"{quoted(text)} as {written}")
        return [
            f"{what} written in lower case, with hyphens: {listed(pairs)}" for what, pairs in found.items()
        ]


def _label(record: Record) -> str:
    name = record.cells.get("name")
    return f"{record.where}: {quoted(name.text)}" if name is not None else record.where


def _roles(record: Record, given: RoleNames) -> frozenset[NodeRole] | None:
    """The roles of a record; empty where they are not certain, None where it is not a node."""
    if record.roles is not None:
        return frozenset(NodeRole(role) for role in record.roles)
    cell = record.cells.get("roles")
    if cell is None:
        return frozenset()
    whole = role_of(cell.text, given)
    names = [whole] if whole else [role_of(part, given) for part in cell.text.replace("+", ",").split(",")]
    if IGNORE in names:
        return None
    if not all(names):
        record.notes["roles"] = f"{quoted(cell.text)} is not a role that rackwright knows"
        return frozenset()
    return frozenset(NodeRole(name) for name in names if name)


@dataclass
class _Reader:
    """Types the cells of one record."""

    source: Source
    record: Record
    renamed: Renamed
    missing: dict[Field, str] = field(default_factory=dict)

    def node(self, roles: frozenset[NodeRole]) -> Found | None:
        cell = self.record.cells.get("name")
        if cell is None or not cell.text.strip():
            self.source.mistakes.append(f"{self.record.where}: The node has no name.")
            return None
        try:
            if looks_secret(cell.text):
                raise ValueError(_SECRET)
            name, domain = split_host_name(cell.text)
        except ValueError as error:
            self.source.mistakes.append(f"{cell.where}: {quoted(cell.text)} cannot be a node's name: {error}")
            return None
        label = cell.text.strip().partition(".")[0]
        if label != name:
            self.renamed.names["nodes", name] = label
        self.missing |= self.record.notes
        sku, rack, position = (
            self._read("sku", self._sku),
            self._read("rack", self._rack),
            self._read("position", _position),
        )
        if rack is None and position is not None:
            self.source.ignored.append(
                f"{self.record.where}: position {position} of {name}: no rack that it is in"
            )
            position = None
        given = self.record.cells.get("sku")
        return Found(
            name=name,
            where=self.record.where,
            domain=self._read("domain", lambda text: text.strip().lower().strip(".")) or domain,
            roles=roles,
            os=self._read("os", self._os),
            sku=sku,
            address=self._read("address", _interface),
            bmc=self._read("bmc", _interface),
            mac=self._read("mac", lambda text: _typed(_MAC, _mac_text(text), "MAC address")),
            serial=self._read("serial", _serial),
            rack=rack,
            position=position,
            switch=self._read("switch", self._switches) or (),
            primary=self.record.primary,
            missing=self.missing,
            suggested_sku=near_skus(given.text)[0] if given is not None and sku is None else None,
        )

    def _read(self, key: Field, convert: Callable[[str], ValueT]) -> ValueT | None:
        cell = self.record.cells.get(key)
        if cell is None or not cell.text.strip():
            return None
        try:
            if looks_secret(cell.text):
                raise ValueError(_SECRET)
            return convert(cell.text.strip())
        except ValueError as error:
            message = str(error)
        if key not in ("sku", "os"):  # the list is right: the catalogue lacks the model
            text = f"{cell.where}: {header_of(key)} {quoted(cell.text)}: {message}"
            (self.source.mistakes if self.source.strict else self.source.ignored).append(text)
        self.missing[key] = f"{quoted(cell.text)}: {message}"
        return None

    def _sku(self, text: str) -> str:
        found = sku_of(text)
        if found is None:
            near = ", ".join(f"`{name}`" for name in near_skus(text))
            raise ValueError(f"not certainly a SKU of the catalogue; nearest: {near}")
        return found

    def _os(self, text: str) -> str:
        found = os_of(text)
        if found is None:
            raise ValueError("not an operating system that rackwright knows")
        return found

    def _rack(self, text: str) -> str:
        return self.renamed.note("racks", text, as_label(text))

    def _switches(self, text: str) -> tuple[str, ...]:
        parts = [part.strip() for part in re.split("[,;]", text) if part.strip()]
        return tuple(self.renamed.note("switches", part, as_label(part)) for part in parts)


def _interface(text: str) -> IPv4Interface:
    """An address with its prefix length; 32 where the source has none."""
    try:
        found = IPv4Interface(text)
    except (AddressValueError, NetmaskValueError, ValueError):
        raise ValueError(
            "IPv6 addresses are not supported" if ":" in text else "not a valid IPv4 address"
        ) from None
    if found.ip.is_loopback or found.ip.is_multicast or found.ip.is_unspecified or found.ip.is_link_local:
        raise ValueError("no node can be reached at this address")
    return found


def _mac_text(text: str) -> str:
    """`5254.0012.3456` and `525400123456` with colons."""
    digits = "".join(one for one in text if one not in ".:-")
    return ":".join(digits[at : at + 2] for at in range(0, 12, 2)) if len(digits) == 12 else text


def _serial(text: str) -> str:
    try:
        return _SERIAL.validate_python(text)
    except ValidationError as error:
        context = error.errors(include_url=False)[0].get("ctx", {})
        raise ValueError(context.get("message", "not a valid serial number of a machine")) from None


def _typed(adapter: TypeAdapter[str], text: str, what: str) -> str:
    try:
        return adapter.validate_python(text)
    except ValidationError:
        raise ValueError(f"not a valid {what}") from None


def _position(text: str) -> int:
    try:
        number = float(text.upper().removeprefix("U"))
    except ValueError:
        number = -1.0
    if not number.is_integer() or not 0 <= number <= _HIGHEST:
        raise ValueError(f"not a whole number from 0 to {_HIGHEST}")
    return int(number)


def _unique(source: Source, nodes: list[Found]) -> list[Found]:
    """The nodes; each value that identifies a node and that two nodes have is a mistake.

    Two devices at one position, front and rear, are none where the source is not a list: the second has no position.
    """
    seen: dict[tuple[str, object], Found] = {}
    found = []
    for node in nodes:
        values: dict[str, object] = {
            "name": node.name,
            "address": node.address and node.address.ip,
            "MAC address": node.mac,
            "serial number": node.serial and node.serial.casefold(),
            "BMC address": node.bmc and node.bmc.ip,
        }
        for what, value in values.items():
            other = node if value is None else seen.setdefault((what, value), node)
            if other is not node:
                source.mistakes.append(
                    f"{node.where}: {node.name} has the {what} {value}, which {other.name} ({other.where}) has."
                )
        other = node if node.position is None else seen.setdefault(("slot", (node.rack, node.position)), node)
        if other is not node:
            taken = f"{node.where}: {node.name} is at position {node.position} of {node.rack}, where {other.name} is"
            (source.mistakes if source.strict else source.ignored).append(taken)
            node = replace(node, position=None)
        found.append(node)
    return found

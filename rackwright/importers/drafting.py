"""What the whole cluster file declares: its networks, how nodes are reached, and what each group has or lacks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from pydantic import TypeAdapter, ValidationError

from rackwright.catalog.read import catalogue
from rackwright.importers.folding import Folded, fold_nodes
from rackwright.importers.records import Cell, Setting, Source, counted, quoted
from rackwright.importers.resolve import Found
from rackwright.importers.subnets import Subnet, subnet_of, usable
from rackwright.model.strings import JumpHost, UserName
from rackwright.model.text import Domain, Label

MANAGEMENT, BMC = "10.1.0.0/16", "10.2.0.0/16"
_LABEL: TypeAdapter[str] = TypeAdapter(Label)
_DOMAIN: TypeAdapter[str] = TypeAdapter(Domain)
_USER: TypeAdapter[str] = TypeAdapter(UserName)
_JUMP: TypeAdapter[str] = TypeAdapter(JumpHost)


@dataclass(frozen=True)
class Value:
    """A value of the file, or why it is missing."""

    text: str | None
    note: str = ""
    """Where it came from, or why it is missing."""


@dataclass
class Draft:
    """A cluster file before it is text."""

    what: str
    files: tuple[str, ...]
    name: Value
    domain: Value
    user: Value
    port: int | None
    key: str | None
    jump_host: str | None
    management: Subnet
    bmc: Subnet | None
    groups: list[Folded]
    ignored: list[str] = field(default_factory=list)

    @property
    def nodes(self) -> list[Found]:
        """All nodes, in the order of the file."""
        return [node for group in self.groups for node in group.nodes]

    def shared(self, key: str) -> str | None:
        """The value of `os` or `sku` that all nodes have; None where they differ."""
        values = {getattr(node, key) for node in self.nodes}
        return values.pop() if len(values) == 1 else None


def draft(source: Source, nodes: Sequence[Found], *, name: str | None, domain: str | None) -> Draft:
    """The file that a source's nodes make; what has no place in it is added to `ignored`."""
    ignored = list(source.ignored)
    management = subnet_of((node.address for node in nodes if node.address), MANAGEMENT)
    nodes = [_with_leaves(_inside(node, management), ignored) for node in nodes]
    nodes, bmc = _bmcs(nodes, management, ignored)
    settings = _settings(source, ignored)
    return Draft(
        what=source.what,
        files=tuple(source.files),
        name=_given(name, settings.get("cluster"), _LABEL),
        domain=_domain(domain, nodes, ignored),
        user=_user(settings.get("user")),
        port=_port(settings.get("port"), ignored),
        key=settings["key"].text if "key" in settings else None,
        jump_host=_jump_host(settings.get("jump_host"), ignored),
        management=management,
        bmc=bmc,
        groups=fold_nodes(nodes),
        ignored=ignored,
    )


def _inside(node: Found, management: Subnet) -> Found:
    """The node without an address that the management network cannot have."""
    if node.address is None or usable(node.address, management):
        return node
    why = f"{node.address.ip} is not an address of a node in {management.network}"
    return replace(node, address=None, missing={**node.missing, "address": why})


def _with_leaves(node: Found, ignored: list[str]) -> Found:
    """The node without leaves that are not one for each rail of its SKU."""
    rails = catalogue()[node.sku].rails if node.sku is not None else None
    if len(node.switch) < 2 or len(node.switch) == rails:
        return node
    has = f"its SKU has {rails} rails" if node.sku is not None else "the rails of its SKU are not known"
    ignored.append(
        f"{node.where}: {node.name}: {len(node.switch)} leaf switches, {', '.join(node.switch)}: {has}"
    )
    return replace(node, switch=())


def _bmcs(nodes: list[Found], management: Subnet, ignored: list[str]) -> tuple[list[Found], Subnet | None]:
    """The nodes with the BMCs that a network for BMCs can have, and that network."""
    addresses = [node.bmc for node in nodes if node.bmc is not None]
    if not addresses:
        return nodes, None
    subnet = subnet_of(addresses, BMC)
    if subnet.network.overlaps(management.network):
        ignored.append(
            f"{len(addresses)} BMC addresses: {subnet.network} and the management network {management.network} overlap, "
            "and a cluster file has BMCs in a network of purpose `bmc` alone"
        )
        return [replace(node, bmc=None) for node in nodes], None
    kept = [
        node if node.bmc is None or usable(node.bmc, subnet) else replace(node, bmc=None) for node in nodes
    ]
    ignored += [
        f"{node.where}: BMC of {node.name}: {node.bmc.ip} is not an address of a node in {subnet.network}"
        for node, after in zip(nodes, kept, strict=True)
        if node.bmc is not None and after.bmc is None
    ]
    return kept, subnet


def _settings(source: Source, ignored: list[str]) -> dict[Setting, Cell]:
    """What all nodes share of how they are reached."""
    shared = dict(source.settings)
    keys = {key for record in source.records for key in record.settings}
    for key in sorted(keys):
        values = Counter(
            record.settings[key].text if key in record.settings else "" for record in source.records
        )
        if len(values) == 1:
            shared[key] = source.records[0].settings[key]
            continue
        counts = ", ".join(
            f"{quoted(text) if text else 'none'} ({counted(count, 'node')})"
            for text, count in values.most_common(6)
        )
        ignored.append(f"{key.replace('_', ' ')}: nodes differ, and the file has one for all: {counts}")
        if key == "user":
            shared[key] = Cell("", f"the nodes have different ones: {counts}")
    return shared


def _given(option: str | None, cell: Cell | None, adapter: TypeAdapter[str]) -> Value:
    if option is not None:
        return Value(option)
    if cell is None:
        return Value(None)
    try:
        return Value(adapter.validate_python(cell.text), cell.where)
    except ValidationError:
        return Value(None, f"{cell.where} has {quoted(cell.text)}, which is not a name of a cluster")


def _domain(option: str | None, nodes: Sequence[Found], ignored: list[str]) -> Value:
    if option is not None:
        return Value(option)
    counts = Counter(node.domain for node in nodes if node.domain)
    if len(counts) == 1:
        try:
            return Value(_DOMAIN.validate_python(next(iter(counts))), "from the names of nodes")
        except ValidationError:
            return Value(None, "the names of nodes have one that is not valid")
    if not counts:
        return Value(None)
    found = ", ".join(f"{quoted(name)} ({counted(count, 'node')})" for name, count in counts.most_common(6))
    ignored.append(f"domains of nodes: they differ, and the file has one for all: {found}")
    return Value(None, f"the nodes have different ones: {found}")


def _user(cell: Cell | None) -> Value:
    if cell is None:
        return Value(None)
    if not cell.text:
        return Value(None, cell.where)
    if cell.text == "root":
        return Value(None, f"{cell.where} has root; rackwright logs in as an unprivileged user")
    try:
        return Value(_USER.validate_python(cell.text), cell.where)
    except ValidationError:
        return Value(None, f"{cell.where} has {quoted(cell.text)}, which is not a user's name")


def _port(cell: Cell | None, ignored: list[str]) -> int | None:
    if cell is None:
        return None
    if cell.text.isascii() and cell.text.isdigit() and 0 < int(cell.text) < 65536:
        return int(cell.text)
    ignored.append(f"{cell.where}: port {quoted(cell.text)} is not a number from 1 to 65535")
    return None


def _jump_host(cell: Cell | None, ignored: list[str]) -> str | None:
    if cell is None:
        return None
    try:
        return _JUMP.validate_python(cell.text)
    except ValidationError:
        ignored.append(f"{cell.where}: jump host {quoted(cell.text)} is not `user@host[:port]`")
        return None

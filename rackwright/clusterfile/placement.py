"""Node location (rack, position, switches) and MAC addresses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rackwright.clusterfile.addresses import rails_on
from rackwright.clusterfile.groups import Group
from rackwright.clusterfile.report import Report
from rackwright.documents.document import DataPath
from rackwright.model.cluster import Network
from rackwright.model.ranges import RangeMistake, expand, unit_name
from rackwright.model.text import label_mistake
from rackwright.model.types import NetworkPurpose


@dataclass(frozen=True, slots=True)
class Location:
    """Location and MAC address of one node."""

    rack: str | None = None
    position: int | None = None
    switches: tuple[str, ...] = ()
    mac: str | None = None


def place_nodes(report: Report, groups: list[Group], networks: Mapping[str, Network]) -> dict[str, Location]:
    """Location of every node by name; contradictions are reported."""
    placed: dict[str, Location] = {}
    slots: dict[tuple[str, int], tuple[str, DataPath]] = {}
    macs: dict[str, tuple[str, DataPath]] = {}
    for group in groups:
        racks = _racks(report, group)
        switches = _switches(report, group, networks)
        _check_rack(report, group)
        positions = _positions(group, racks)
        own_macs = _macs(report, group)
        for index, name in enumerate(group.names):
            location = Location(racks[index], positions[index], switches[index], own_macs[index])
            placed[name] = location
            _claim_slot(report, group, name, location, slots)
            _claim_mac(report, group, index, name, location.mac, macs)
    _check_units(report, groups, placed)
    return placed


def _check_units(report: Report, groups: list[Group], placed: Mapping[str, Location]) -> None:
    """Report a switch whose name equals that of a set of other switches: the two would be ambiguous."""
    single = {name for location in placed.values() for name in location.switches}
    for group in groups:
        units = {placed[name].switches for name in group.names}
        for leaves in units:
            if len(set(leaves)) > 1 and unit_name(leaves) in single:
                report.add(
                    (*group.path, "switch"),
                    f"The switches {', '.join(leaves)} together are called {unit_name(leaves)}, but a switch already has that "
                    "name.",
                    "rename that switch",
                )


def _racks(report: Report, group: Group) -> list[str | None]:
    text = group.entry.rack
    found = None if text is None else _spread(report, group, text, (*group.path, "rack"), "racks")
    return [*found] if found is not None else [None] * len(group.names)


def _switches(report: Report, group: Group, networks: Mapping[str, Network]) -> list[tuple[str, ...]]:
    """The leaf switches of each node: one in all, or one per rail."""
    given, path = group.entry.switch, (*group.path, "switch")
    none: list[tuple[str, ...]] = [()] * len(group.names)
    if given is None or not report.clean(path):
        return none
    if isinstance(given, str):
        found = _spread(report, group, given, path, "switches")
        return none if found is None else [(name,) for name in found]
    by_rail = [_spread(report, group, text, (*path, rail), "switches") for rail, text in enumerate(given)]
    _check_rails(report, group, networks, len(given), path)
    whole = [leaves for leaves in by_rail if leaves is not None]
    return none if len(whole) < len(by_rail) else list(zip(*whole, strict=True))


def _check_rails(
    report: Report, group: Group, networks: Mapping[str, Network], listed: int, path: DataPath
) -> None:
    """Report a list of switches whose length differs from the rails of the group's fabric, or else its SKU."""
    if group.sku is None:
        return
    fabrics = [
        networks[name]
        for name in group.entry.addresses
        if name in networks and networks[name].purpose is NetworkPurpose.FABRIC
    ]
    if not all(report.clean(("networks", network.name, "rails")) for network in fabrics):
        return
    rails = max((rails_on(group, network) for network in fabrics), default=group.sku.rails)
    if rails == 0:
        report.add(
            path,
            f"A list names one switch per rail, but {group.sku.name} has no rails, and the group has no "
            "address on a fabric network.",
            "name one switch for all ports: `switch: leaf1`; or give the group an address on its fabric",
        )
    elif listed != rails:
        report.add(
            path,
            f"The list has {listed} switch{'' if listed == 1 else 'es'}, but the nodes have {rails} "
            f"rail{'' if rails == 1 else 's'}.",
            "list the leaf switch of each rail in order, or one for all rails: `switch: leaf1`",
        )


def _spread(report: Report, group: Group, text: str, path: DataPath, what: str) -> list[str] | None:
    """One rack or switch per node: the names of the range in order, each for an equal number of nodes."""
    count = len(group.names)
    try:
        names = expand(text)
    except RangeMistake as error:
        report.add(path, error.message, error.hint)
        return None
    for name in names:
        wrong = label_mistake(name)
        if wrong is not None:
            report.add(path, wrong)
            return None
    if count == 0:
        return None
    if count % len(names):
        report.add(
            path,
            f"{count} nodes cannot be spread evenly over {len(names)} {what}.",
            "split the group",
        )
        return None
    share = count // len(names)
    return [names[index // share] for index in range(count)]


def _check_rack(report: Report, group: Group) -> None:
    entry, path = group.entry, group.path
    if entry.rack is not None or not report.clean((*path, "rack")):
        return
    if entry.position is not None:
        report.add((*path, "position"), "`position` needs a rack.", "add `rack:`")


def _positions(group: Group, racks: list[str | None]) -> list[int | None]:
    rule = group.entry.position
    positions: list[int | None] = []
    seen: dict[str | None, int] = {}
    for rack in racks:
        index = seen.get(rack, 0)
        seen[rack] = index + 1
        positions.append(None if rule is None or rack is None else rule.first + index * rule.step)
    return positions


def _claim_slot(
    report: Report,
    group: Group,
    name: str,
    location: Location,
    slots: dict[tuple[str, int], tuple[str, DataPath]],
) -> None:
    if location.rack is None or location.position is None:
        return
    path = (*group.path, "position")
    other, other_path = slots.setdefault((location.rack, location.position), (name, path))
    if other != name and report.clean(path):
        line, _ = report.document.position(other_path)
        report.add(
            path,
            f"{name} would be at position {location.position} of {location.rack}, already taken by {other} "
            f"(line {line}).",
        )


def _macs(report: Report, group: Group) -> list[str | None]:
    macs, count, path = group.entry.macs, len(group.names), (*group.path, "macs")
    if macs is None or not report.clean(path):
        return [None] * count
    if count and len(macs) != count:
        nodes = "1 node" if count == 1 else f"{count} nodes"
        report.add(
            path,
            f"The group has {nodes}, but {len(macs)} MAC addresses.",
            "list one per node, in NodeSet order",
        )
        return [None] * count
    return list(macs)


def _claim_mac(
    report: Report,
    group: Group,
    index: int,
    name: str,
    mac: str | None,
    macs: dict[str, tuple[str, DataPath]],
) -> None:
    if mac is None:
        return
    path = (*group.path, "macs", index)
    other, other_path = macs.setdefault(mac, (name, path))
    if other != name:
        line, _ = report.document.position(other_path)
        report.add(path, f"{other} already has this MAC address (line {line}).")

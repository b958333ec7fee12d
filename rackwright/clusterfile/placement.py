"""Location of the nodes (rack, position, switch) and their MAC addresses."""

from __future__ import annotations

from dataclasses import dataclass

from rackwright.clusterfile.groups import Group
from rackwright.clusterfile.report import Report
from rackwright.documents.document import DataPath
from rackwright.model.ranges import RangeMistake, expand
from rackwright.model.text import label_mistake


@dataclass(frozen=True, slots=True)
class Location:
    """Location and MAC address of one node."""

    rack: str | None = None
    position: int | None = None
    switch: str | None = None
    mac: str | None = None


def place_nodes(report: Report, groups: list[Group]) -> dict[str, Location]:
    """Location of every node by name; contradictions are noted."""
    placed: dict[str, Location] = {}
    slots: dict[tuple[str, int], tuple[str, DataPath]] = {}
    macs: dict[str, tuple[str, DataPath]] = {}
    for group in groups:
        racks = _spread(report, group, "rack")
        switches = _spread(report, group, "switch")
        _check_rack(report, group)
        positions = _positions(group, racks)
        own_macs = _macs(report, group)
        for index, name in enumerate(group.names):
            location = Location(racks[index], positions[index], switches[index], own_macs[index])
            placed[name] = location
            _claim_slot(report, group, name, location, slots)
            _claim_mac(report, group, index, name, location.mac, macs)
    return placed


def _spread(report: Report, group: Group, key: str) -> list[str | None]:
    """One rack or switch for each node: the range's names in order, each for an equal run of nodes."""
    text: str | None = getattr(group.entry, key)
    count, path = len(group.names), (*group.path, key)
    unset: list[str | None] = [None] * count
    if text is None:
        return unset
    try:
        names = expand(text)
    except RangeMistake as error:
        report.add(path, error.message, error.hint)
        return unset
    for name in names:
        wrong = label_mistake(name)
        if wrong is not None:
            report.add(path, wrong)
            return unset
    if count == 0:
        return unset
    if count % len(names):
        report.add(
            path,
            f"{count} nodes do not spread evenly over {len(names)} {'racks' if key == 'rack' else 'switches'}.",
            "split the group",
        )
        return unset
    share = count // len(names)
    return [names[index // share] for index in range(count)]


def _check_rack(report: Report, group: Group) -> None:
    entry, path = group.entry, group.path
    if entry.rack is not None or not report.clean((*path, "rack")):
        return
    if entry.position is not None:
        report.add((*path, "position"), "A position needs a rack.", "add `rack:`")
    if entry.switch is not None:
        report.add((*path, "switch"), "A switch needs a rack.", "add `rack:`; the topology needs both")


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

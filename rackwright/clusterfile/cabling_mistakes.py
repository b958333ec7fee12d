"""Contradictory cables, node ports without a cable, and switches that do not match their declaration."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from rackwright.clusterfile.file import SwitchSection
from rackwright.clusterfile.report import Report
from rackwright.documents.document import DataPath
from rackwright.documents.nearest import short, suggest
from rackwright.model.fabric import Cable, End, NodePort, SwitchId, SwitchPort
from rackwright.model.ranges import fold

MAX_MISTAKES = 20
"""Most mistakes listed for ports with two cables and for ports that a switch does not have."""


def check_ports_taken(
    report: Report, path: DataPath, cables: Sequence[Cable], switches: Mapping[str, SwitchId]
) -> None:
    """Report ports with two cables, and ports that a switch does not have."""
    found = list(_ports_taken(path, cables, switches))
    for where, message, hint in found[:MAX_MISTAKES]:
        report.add(where, message, hint)
    more = len(found) - MAX_MISTAKES
    if more > 0:
        report.add(
            path, f"{more} more cable{'' if more == 1 else 's'} end in ports that are taken or do not exist."
        )


def _ports_taken(
    path: DataPath, cables: Sequence[Cable], switches: Mapping[str, SwitchId]
) -> Iterator[tuple[DataPath, str, str]]:
    taken: dict[End, Cable] = {}
    for cable in cables:
        for end in cable.ends:
            other = taken.setdefault(end, cable)
            if other is not cable:
                message = f"Two cables end in {end}: {_show(other)} and {_show(cable)}."
                yield _path_of(path, cable), message, "correct the rule or the cable list"
            most = switches[end.switch].ports if isinstance(end, SwitchPort) else None
            if isinstance(end, SwitchPort) and most is not None and end.port > most:
                yield (
                    _path_of(path, cable),
                    f"{_show(cable)}: {end.switch} has only {most} port{'' if most == 1 else 's'}.",
                    "correct `leaf_ports`, `uplinks`, `ports` or the cable list",
                )


def check_complete(
    report: Report, path: DataPath, members: Collection[NodePort], cables: Sequence[Cable], hint: str
) -> None:
    """Report node ports without a cable."""
    cabled = {cable.near for cable in cables}
    without = [port for port in members if port not in cabled]
    if without and report.clean(path) and report.clean(("nodes",)):
        rails = sorted({port.rail for port in without})
        named = fold({port.node for port in without})
        report.add(
            path,
            f"No cable is declared for rail{'s' if len(rails) > 1 else ''} {', '.join(map(str, rails))} of {named}.",
            hint,
        )


def check_levels(report: Report, path: DataPath, leaves: Collection[str], cables: Sequence[Cable]) -> None:
    """Report listed cables between two switches that have no nodes: only leaves and spines are supported."""
    below = frozenset(leaves)
    for cable in cables:
        near = cable.near
        if isinstance(near, SwitchPort) and below.isdisjoint((near.switch, cable.far.switch)):
            report.add(
                (*path, "cables"),
                f"{cable.origin}: Neither {near.switch} nor {cable.far.switch} is a leaf: no node is cabled to them.",
                "declare only cables between leaves and spines",
            )


def check_switches(
    report: Report,
    path: DataPath,
    declared: Mapping[str, SwitchSection],
    names: Collection[str],
    nodes: Collection[str],
) -> None:
    """Report switches without cables, with a node's name, or that discovery could confuse with another."""
    for name in declared:
        if name not in names:
            hint = suggest(name, names, what="switches")
            report.add(
                (*path, "switches", name), f"No cable of {path[-1]} ends in {short(name)}.", hint, key=True
            )
    for name in names:
        if name in nodes:
            report.add(path, f"{name} is the name of both a switch and a node.", "rename one of them")
    for key, what in (("guid", "GUID"), ("description", "description")):
        taken: dict[str, str] = {}
        for name, own in declared.items():
            value = getattr(own, key)
            if key == "guid" and value is not None:
                value = value.removeprefix("0x")
            if value is not None and (other := taken.setdefault(value, name)) != name:
                report.add(
                    (*path, "switches", name, key),
                    f"{short(other)} already has this {what}.",
                    f"each switch has a unique {what}",
                )


def _path_of(path: DataPath, cable: Cable) -> DataPath:
    if cable.listed:
        return (*path, "cables")
    return (*path, "uplinks") if cable.uplink else path


def _show(cable: Cable) -> str:
    return f"{cable.near} -> {cable.far} ({cable.origin})"

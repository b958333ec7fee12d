"""Cables that contradict each other, and ports of nodes without one."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from rackwright.clusterfile.report import Report
from rackwright.documents.document import DataPath
from rackwright.model.fabric import Cable, End, NodePort, SwitchId, SwitchPort
from rackwright.model.ranges import fold


def check_ports_taken(
    report: Report, path: DataPath, cables: Sequence[Cable], switches: Mapping[str, SwitchId]
) -> None:
    """Note ports with two cables, and ports that a switch does not have."""
    taken: dict[End, Cable] = {}
    for cable in cables:
        for end in cable.ends:
            other = taken.setdefault(end, cable)
            if other is not cable:
                report.add(
                    _path_of(path, cable),
                    f"Two cables end in {end}: {_show(other)} and {_show(cable)}.",
                    "correct the rule or the cable list",
                )
            most = switches[end.switch].ports if isinstance(end, SwitchPort) else None
            if isinstance(end, SwitchPort) and most is not None and end.port > most:
                report.add(
                    _path_of(path, cable),
                    f"{_show(cable)} ends in {end}, but the switch has {most} ports.",
                    "correct `leaf_ports`, `uplinks` or `ports`",
                )


def check_complete(
    report: Report, path: DataPath, members: Collection[NodePort], cables: Sequence[Cable]
) -> None:
    """Note ports of nodes that no cable ends in."""
    cabled = {cable.near for cable in cables}
    without = [port for port in members if port not in cabled]
    if without and report.clean(path) and report.clean(("nodes",)):
        rails = sorted({port.rail for port in without})
        named = fold({port.node for port in without})
        report.add(
            path,
            f"No cable is declared for rail{'s' if len(rails) > 1 else ''} {', '.join(map(str, rails))} of {named}.",
            "set `switch` on the group, or list the cables under `cables`",
        )


def _path_of(path: DataPath, cable: Cable) -> DataPath:
    if cable.listed:
        return (*path, "cables")
    return (*path, "uplinks") if cable.uplink else path


def _show(cable: Cable) -> str:
    return f"{cable.near} -> {cable.far} ({cable.origin})"

"""The `fabrics:` section: the cables of each network, from rules and from a cable list."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from rackwright.clusterfile.addresses import rails_on
from rackwright.clusterfile.cable_list import MAX_MISTAKES, Names, read_cable_list
from rackwright.clusterfile.cabling_mistakes import (
    check_complete,
    check_levels,
    check_ports_taken,
    check_switches,
)
from rackwright.clusterfile.file import FabricSection, SwitchSection, UplinkRule
from rackwright.clusterfile.groups import Group
from rackwright.clusterfile.placement import Location
from rackwright.clusterfile.report import Report
from rackwright.clusterfile.sections import read_section
from rackwright.documents.nearest import short, suggest
from rackwright.documents.yaml_data import Data
from rackwright.model.cluster import Network
from rackwright.model.fabric import Cable, Fabric, NodePort, SwitchId, SwitchPort
from rackwright.model.ranges import RangeMistake, expand, fold
from rackwright.model.text import label_mistake
from rackwright.model.types import NetworkPurpose


def read_fabrics(
    report: Report,
    raw: Data,
    groups: list[Group],
    networks: Mapping[str, Network],
    locations: Mapping[str, Location],
    folder: Path,
) -> dict[str, Fabric]:
    """The valid fabrics; mistakes are reported. Paths of cable lists are relative to `folder`."""
    fabrics: dict[str, Fabric] = {}
    for name, entry in raw.items() if isinstance(raw, dict) else ():
        path = ("fabrics", name)
        network = networks.get(name)
        if network is None:
            if report.clean(("networks", name)):
                hint = suggest(name, networks, what="networks")
                report.add(path, f"Network {short(name)} does not exist.", hint, key=True)
            continue
        section = read_section(report, FabricSection, entry if entry is not None else {}, path)
        if section is not None and report.clean(("networks", name)):
            reading = _Reading(report, path, section, network, networks, groups, locations, folder)
            fabrics[name] = reading.fabric()
    return fabrics


@dataclass
class _Reading:
    """One fabric during parsing."""

    report: Report
    path: tuple[str, str]
    section: FabricSection
    network: Network
    networks: Mapping[str, Network]
    groups: list[Group]
    locations: Mapping[str, Location]
    folder: Path
    members: dict[NodePort, Group] = field(default_factory=dict)
    """Every node port on the network, in file order."""

    def fabric(self) -> Fabric:
        self._find_members()
        by_rule = self._node_cables()
        spines = self._spines({cable.far.switch for cable in by_rule})
        listed = self._listed(by_rule, spines)
        down = self._down(by_rule, listed)
        found = dict.fromkeys(cable.far.switch for cable in (*by_rule, *down))
        leaves = self._ordered([name for name in found if name not in spines])
        up = self._up(self._uplinks(leaves, spines), listed, leaves)
        cables = (*down, *up)
        cabled = {end.switch for cable in cables for end in cable.ends if isinstance(end, SwitchPort)}
        leaves = [name for name in leaves if name in cabled]
        others = (end.switch for cable in up for end in cable.ends if isinstance(end, SwitchPort))
        spines = tuple(dict.fromkeys((*spines, *(name for name in others if name not in leaves))))
        switches = {name: self._switch(name) for name in dict.fromkeys((*leaves, *spines))}
        self._check(cables, leaves, switches, cabled)
        return Fabric(
            network=self.network.name,
            kind=self.network.kind,
            rails=self.network.rails,
            leaves=tuple(leaves),
            spines=spines,
            cables=cables,
            switches=switches,
            port_name=self.section.port_name,
            max_ber=self.section.max_ber,
        )

    def _find_members(self) -> None:
        for group in self.groups:
            if self.network.name in group.entry.addresses:
                for name in group.names:
                    for rail in range(rails_on(group, self.network)):
                        self.members[NodePort(name, rail)] = group
        if not self.members and self.report.clean(("nodes",)):
            name = self.network.name
            hint = f"give a group an address on it: `addresses: {{{name}: ...}}`, or remove the section"
            self.report.add(self.path, f"No node has an address on {name}.", hint, key=True)

    def _check(
        self, cables: tuple[Cable, ...], leaves: list[str], switches: dict[str, SwitchId], cabled: set[str]
    ) -> None:
        """Report contradictions, except those that follow from a mistake that is already reported."""
        clean = self.report.clean(self.path)
        certain = cables if clean else tuple(cable for cable in cables if cable.listed)
        check_ports_taken(self.report, self.path, certain, switches)
        if clean:
            check_levels(self.report, self.path, leaves, cables)
            check_switches(self.report, self.path, self.section.switches, switches, self.locations)
        hint = "set `switch` on the group, or list the cables under `cables`"
        if not any(self._by_switch(group) for group in self.members.values()):
            hint = "the group's `switch` applies to its fabric network; list the cables of this one under `cables`"
        check_complete(self.report, self.path, self.members, cables, hint)
        idle = [name for name in switches if name not in cabled]
        if idle and self.report.clean(self.path):
            path = (*self.path, "spines")
            self.report.add(path, f"No cable is declared for {fold(idle)}.", "list its cables, or remove it")

    def _ordered(self, leaves: list[str]) -> list[str]:
        """Leaves in the order of the groups' `switch` (scalable unit, then rail), then those found only in the list."""
        declared = [leaf for location in self.locations.values() for leaf in location.switches]
        first = [leaf for leaf in dict.fromkeys(declared) if leaf in leaves]
        return [*first, *(leaf for leaf in leaves if leaf not in first)]

    def _node_cables(self) -> list[Cable]:
        rule = self.section.leaf_ports
        taken: dict[str, int] = {}
        cables = []
        for port, group in self.members.items():
            leaf = self._leaf(group, port)
            if leaf is None:
                continue
            index = taken.get(leaf, 0)
            taken[leaf] = index + 1
            there = SwitchPort(leaf, rule.first + index * rule.step)
            cables.append(Cable(port, there, self._speed(group, port.rail), self.section.lanes))
        return cables

    def _leaf(self, group: Group, port: NodePort) -> str | None:
        switches = self.locations[port.node].switches if self._by_switch(group) else ()
        if len(switches) == 1:
            return switches[0]
        return switches[port.rail] if port.rail < len(switches) else None

    def _by_switch(self, group: Group) -> bool:
        """Whether the group's `switch` belongs to this network: its only fabric, or management if it has none."""
        fabrics = [
            name
            for name in group.entry.addresses
            if name in self.networks and self.networks[name].purpose is NetworkPurpose.FABRIC
        ]
        if not fabrics:
            return self.network.purpose is NetworkPurpose.MANAGEMENT
        return fabrics == [self.network.name]

    def _speed(self, group: Group, rail: int) -> float | None:
        if self.section.speed_gbps is not None or group.sku is None:
            return self.section.speed_gbps
        nics = [nic for nic in group.sku.nics if nic.purpose is self.network.purpose]
        rails = [nic for nic in nics if nic.rail in (rail, None)]
        return rails[0].speed_gbps if rails else None

    def _spines(self, leaves: set[str]) -> tuple[str, ...]:
        """The declared spines; mistakes are reported. `leaves`: switches that groups name in `switch`."""
        text, path = self.section.spines, (*self.path, "spines")
        if text is None:
            return ()
        try:
            names = expand(text)
        except RangeMistake as error:
            self.report.add(path, error.message, error.hint)
            return ()
        wrong = [found for name in names if (found := label_mistake(name)) is not None]
        if wrong:
            self.report.add(path, wrong[0])
            return ()
        both = [name for name in names if name in leaves]
        if both:
            self.report.add(
                path,
                f"{both[0]} is a leaf (the `switch` of a group), not a spine.",
                "remove it from `spines`",
            )
            return tuple(name for name in names if name not in leaves)
        rule = any(self._gives(key) for key in ("uplinks", "cables"))
        if not rule:
            self.report.add(
                path,
                "The cables from the leaves to these spines are not declared.",
                "add e.g. `uplinks: {each: 8, leaf_first: 33}`, or a cable list under `cables`",
            )
        return names

    def _gives(self, key: str) -> bool:
        """Whether the section has this key, even with an invalid value."""
        return getattr(self.section, key) is not None or not self.report.clean((*self.path, key))

    def _uplinks(self, leaves: list[str], spines: tuple[str, ...]) -> list[Cable]:
        rule = self.section.uplinks
        if rule is None:
            return []
        if not spines and self.report.clean((*self.path, "spines")):
            self.report.add(
                (*self.path, "uplinks"), "`uplinks` needs spines.", "add e.g. `spines: spine[1-4]`"
            )
        speed, lanes = self._uplink_speed(), self.section.lanes
        return [Cable(near, far, speed, lanes) for near, far in _uplink_ends(rule, leaves, spines)]

    def _uplink_speed(self) -> float | None:
        speeds = {self._speed(group, port.rail) for port, group in self.members.items()}
        return speeds.pop() if len(speeds) == 1 else self.section.speed_gbps

    def _listed(self, by_rule: list[Cable], spines: tuple[str, ...]) -> list[Cable]:
        if self.section.cables is None:
            return []
        path = (*self.path, "cables")
        found = read_cable_list(self.folder / self.section.cables, self._names(by_rule, spines))
        for wrong in found.mistakes[:MAX_MISTAKES]:
            self.report.add(path, wrong.message, wrong.hint)
        more = len(found.mistakes) - MAX_MISTAKES
        if more > 0:
            self.report.add(path, f"The cable list has {more} more mistake{'' if more == 1 else 's'}.")
        cables = []
        between = self._uplink_speed()
        for cable in found.cables:
            speed, lanes = cable.speed_gbps, cable.lanes or self.section.lanes
            if speed is None and isinstance(cable.near, NodePort):
                speed = self._speed(self.members[cable.near], cable.near.rail)
            elif speed is None:
                speed = between
            cables.append(replace(cable, speed_gbps=speed, lanes=lanes))
        return cables

    def _names(self, by_rule: list[Cable], spines: tuple[str, ...]) -> Names:
        """Names that rows may use. If rules declare every leaf (or spine), any other name is a mistake."""
        leaves = (cable.far.switch for cable in by_rule)
        every_leaf = len(by_rule) == len(self.members)
        return Names(
            network=self.network.name,
            nodes=self.locations.keys(),
            ports=self.members.keys(),
            switches=dict.fromkeys((*leaves, *spines, *self.section.switches)).keys(),
            every_leaf=every_leaf,
            every_switch=every_leaf and bool(spines),
        )

    def _down(self, by_rule: list[Cable], listed: list[Cable]) -> list[Cable]:
        """Node cables in file order: those of the list, then rules for the remaining ports."""
        rows = [cable for cable in listed if isinstance(cable.near, NodePort)]
        taken = {cable.near for cable in rows}
        order = {port: index for index, port in enumerate(self.members)}
        cables = [*(cable for cable in by_rule if cable.near not in taken), *rows]
        return sorted(cables, key=lambda cable: order[cable.near] if isinstance(cable.near, NodePort) else 0)

    def _up(self, by_rule: list[Cable], listed: list[Cable], leaves: list[str]) -> list[Cable]:
        """Switch-to-switch cables, leaf first: by rule unless a row uses either port, then those of the list."""
        below = frozenset(leaves)
        rows = [_leaf_first(cable, below) for cable in listed if cable.uplink]
        ports = {end for cable in rows for end in cable.ends}
        return [*(cable for cable in by_rule if ports.isdisjoint(cable.ends)), *rows]

    def _switch(self, name: str) -> SwitchId:
        own = self.section.switches.get(name, SwitchSection())
        guid = own.guid.removeprefix("0x") if own.guid else None
        return SwitchId(name, own.description, guid, own.firmware, own.ports or self.section.ports)


def _uplink_ends(
    rule: UplinkRule, leaves: list[str], spines: tuple[str, ...]
) -> Iterator[tuple[SwitchPort, SwitchPort]]:
    for leaf_index, leaf in enumerate(leaves):
        for spine_index, spine in enumerate(spines):
            for cable in range(rule.each):
                yield (
                    SwitchPort(leaf, rule.leaf_first + spine_index * rule.each + cable),
                    SwitchPort(spine, rule.spine_first + leaf_index * rule.each + cable),
                )


def _leaf_first(cable: Cable, leaves: frozenset[str]) -> Cable:
    """A switch-to-switch cable with the leaf at its near end."""
    near = cable.near
    if isinstance(near, SwitchPort) and cable.far.switch in leaves and near.switch not in leaves:
        return replace(cable, near=cable.far, far=near)
    return cable

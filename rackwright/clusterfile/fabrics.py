"""The `fabrics:` section: the cables of each network, by rule and from a cable list."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from rackwright.clusterfile.addresses import rails_on
from rackwright.clusterfile.cable_list import MAX_MISTAKES, read_cable_list
from rackwright.clusterfile.cabling_mistakes import check_complete, check_ports_taken
from rackwright.clusterfile.file import FabricSection, SwitchSection, UplinkRule
from rackwright.clusterfile.groups import Group
from rackwright.clusterfile.placement import Location
from rackwright.clusterfile.report import Report
from rackwright.clusterfile.sections import read_section
from rackwright.documents.nearest import short, suggest
from rackwright.documents.yaml_data import Data
from rackwright.model.cluster import Network
from rackwright.model.fabric import Cable, Fabric, NodePort, SwitchId, SwitchPort
from rackwright.model.ranges import RangeMistake, expand
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
    """The fabrics that can be read; mistakes are noted. Cable lists are relative to `folder`."""
    fabrics: dict[str, Fabric] = {}
    for name, entry in raw.items() if isinstance(raw, dict) else ():
        path = ("fabrics", name)
        network = networks.get(name)
        if network is None:
            if report.clean(("networks", name)):
                hint = suggest(name, networks, what="networks")
                report.add(path, f"There is no network {short(name)}.", hint, key=True)
            continue
        section = read_section(report, FabricSection, entry if entry is not None else {}, path)
        if section is not None and report.clean(("networks", name)):
            reading = _Reading(report, path, section, network, networks, groups, locations, folder)
            fabrics[name] = reading.fabric()
    return fabrics


@dataclass
class _Reading:
    """One fabric while it is read."""

    report: Report
    path: tuple[str, str]
    section: FabricSection
    network: Network
    networks: Mapping[str, Network]
    groups: list[Group]
    locations: Mapping[str, Location]
    folder: Path
    members: dict[NodePort, Group] = field(default_factory=dict)
    """Every port that nodes have on the network, in file order."""

    def fabric(self) -> Fabric:
        for group in self.groups:
            if self.network.name in group.entry.addresses:
                for name in group.names:
                    for rail in range(rails_on(group, self.network)):
                        self.members[NodePort(name, rail)] = group
        ruled = self._node_cables()
        spines = self._spines()
        leaves = list(dict.fromkeys(cable.far.switch for cable in ruled))
        ruled += self._uplinks(self._ordered(leaves), spines)
        listed = self._listed()
        cables = self._merged(ruled, listed)
        below = [cable.far.switch for cable in cables if isinstance(cable.near, NodePort)]
        leaves = self._ordered(list(dict.fromkeys(below)))
        for cable in cables:
            if cable.far.switch not in leaves:
                spines = tuple(dict.fromkeys((*spines, cable.far.switch)))
        switches = self._switches((*leaves, *spines))
        check_ports_taken(self.report, self.path, cables, switches)
        check_complete(self.report, self.path, self.members, cables)
        return Fabric(
            network=self.network.name,
            kind=self.network.kind,
            rails=self.network.rails,
            leaves=tuple(leaves),
            spines=spines,
            cables=tuple(cables),
            switches=switches,
            port_name=self.section.port_name,
            max_ber=self.section.max_ber,
        )

    def _ordered(self, leaves: list[str]) -> list[str]:
        """Leaves in the order of the groups' `switch`, unit by unit, rail by rail; then those of the list alone."""
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
        """The leaf of a port by the group's `switch`, which is of its fabric; without one, of its management network."""
        switches = self.locations[port.node].switches
        fabrics = [
            name
            for name in group.entry.addresses
            if name in self.networks and self.networks[name].purpose is NetworkPurpose.FABRIC
        ]
        wanted = fabrics or [
            net for net in group.entry.addresses if self.network.purpose is NetworkPurpose.MANAGEMENT
        ]
        if not switches or self.network.name not in wanted or len(fabrics) > 1:
            return None
        return (
            switches[0] if len(switches) == 1 else switches[port.rail] if port.rail < len(switches) else None
        )

    def _speed(self, group: Group, rail: int) -> float | None:
        if self.section.speed_gbps is not None or group.sku is None:
            return self.section.speed_gbps
        nics = [nic for nic in group.sku.nics if nic.purpose is self.network.purpose]
        rails = [nic for nic in nics if nic.rail in (rail, None)]
        return rails[0].speed_gbps if rails else None

    def _spines(self) -> tuple[str, ...]:
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
        if self.section.uplinks is None and self.section.cables is None:
            self.report.add(
                path,
                "Nothing says how the leaves are cabled to these spines.",
                "e.g. `uplinks: {each: 8, leaf_first: 33}`, or a cable list under `cables`",
            )
        return names

    def _uplinks(self, leaves: list[str], spines: tuple[str, ...]) -> list[Cable]:
        rule = self.section.uplinks
        if rule is None:
            return []
        if not spines and self.report.clean((*self.path, "spines")):
            self.report.add((*self.path, "uplinks"), "There are no spines.", "add `spines: spine[1-4]`")
        return [
            Cable(near, far, self._uplink_speed(), self.section.lanes)
            for near, far in _uplink_ends(rule, leaves, spines)
        ]

    def _uplink_speed(self) -> float | None:
        speeds = {self._speed(group, port.rail) for port, group in self.members.items()}
        return speeds.pop() if len(speeds) == 1 else self.section.speed_gbps

    def _listed(self) -> list[Cable]:
        if self.section.cables is None:
            return []
        path = (*self.path, "cables")
        found = read_cable_list(self.folder / self.section.cables, frozenset(self.locations))
        for message in found.mistakes[:MAX_MISTAKES]:
            self.report.add(path, message)
        if len(found.mistakes) > MAX_MISTAKES:
            self.report.add(
                path, f"The cable list has {len(found.mistakes) - MAX_MISTAKES} further mistakes."
            )
        cables = []
        for cable in found.cables:
            strange = cable.near if cable.near not in self.members else None
            if isinstance(strange, NodePort):
                self.report.add(path, f"{cable.origin}: {strange} has no address on {self.network.name}.")
                continue
            wrong = label_mistake(cable.far.switch) or (
                label_mistake(cable.near.switch) if isinstance(cable.near, SwitchPort) else None
            )
            if wrong is not None:
                self.report.add(path, f"{cable.origin}: {wrong}")
                continue
            group = self.members.get(cable.near) if isinstance(cable.near, NodePort) else None
            speed = (
                self._speed(group, cable.near.rail) if group and isinstance(cable.near, NodePort) else None
            )
            cables.append(
                replace(
                    cable,
                    speed_gbps=cable.speed_gbps or speed or self._uplink_speed(),
                    lanes=cable.lanes or self.section.lanes,
                )
            )
        return cables

    def _merged(self, ruled: list[Cable], listed: list[Cable]) -> list[Cable]:
        """The listed cables, and those by rule whose node or whose two switch ports no listed one has."""
        nodes = {cable.near for cable in listed if isinstance(cable.near, NodePort)}
        ports = {end for cable in listed if cable.uplink for end in cable.ends}
        kept = [
            cable
            for cable in ruled
            if (cable.near not in nodes if not cable.uplink else ports.isdisjoint(cable.ends))
        ]
        order = {port: index for index, port in enumerate(self.members)}
        merged = [*kept, *(_leaf_first(cable, listed) for cable in listed)]
        return sorted(
            merged,
            key=lambda cable: (
                order.get(cable.near, len(order)) if isinstance(cable.near, NodePort) else len(order)
            ),
        )

    def _switches(self, names: tuple[str, ...]) -> dict[str, SwitchId]:
        for name in self.section.switches:
            if name not in names:
                path = (*self.path, "switches", name)
                hint = suggest(name, names, what="switches")
                self.report.add(
                    path, f"No cable of {self.network.name} ends in {short(name)}.", hint, key=True
                )
        for name in names:
            if name in self.locations:
                self.report.add(
                    self.path, f"{name} is the name of a switch and of a node.", "rename one of them"
                )
        return {name: self._switch(name) for name in dict.fromkeys(names)}

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


def _leaf_first(cable: Cable, listed: list[Cable]) -> Cable:
    """An uplink with the switch that has nodes at its near end."""
    if not isinstance(cable.near, SwitchPort):
        return cable
    leaves = {other.far.switch for other in listed if isinstance(other.near, NodePort)}
    if cable.far.switch in leaves and cable.near.switch not in leaves:
        return replace(cable, near=cable.far, far=cable.near)
    return cable

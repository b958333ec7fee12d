"""The cable list of a fabric: a CSV file, one row per cable."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path

from rackwright.clusterfile.csv_table import Columns, ListMistake, Wrong, open_table
from rackwright.documents.nearest import nearest, short
from rackwright.model.fabric import Cable, End, NodePort, SwitchPort
from rackwright.model.text import label_mistake

COLUMNS = ("from", "from_port", "to", "to_port")
MAX_LABEL = 64
MAX_MISTAKES = 20
LANES = (1, 2, 4, 8, 12)
_RAIL = re.compile(r"(?:rail[ _-]?)?([0-9]{1,2})", re.IGNORECASE | re.ASCII)
_SPEED = re.compile(r"[0-9]{1,4}(\.[0-9]{1,3})?")
_NUMBERS = re.compile(r"[0-9]+")
_PORT = re.compile(r"[1-9][0-9]{0,3}")
_PORT_HINT = "switch ports are numbered from 1"


@dataclass(frozen=True)
class Names:
    """Names that the rows of a list may use."""

    network: str
    nodes: Collection[str]
    """Every node of the cluster; any other name is a switch."""
    ports: Collection[NodePort]
    """Nodes on the network."""
    switches: Collection[str] = ()
    """Switches that the cluster file names."""
    every_leaf: bool = False
    """Whether nodes may be cabled to these switches only."""
    every_switch: bool = False
    """Whether cables between switches may end only in these."""

    @cached_property
    def like_nodes(self) -> frozenset[str]:
        """Node name prefixes (without the number) that no declared switch shares."""
        return frozenset(map(_stem, self.nodes)) - frozenset(map(_stem, self.switches))


def _stem(name: str) -> str:
    return _NUMBERS.sub("#", name)


@dataclass
class CableList:
    """The valid rows, and the mistakes in the others."""

    cables: list[Cable] = field(default_factory=list)
    mistakes: list[ListMistake] = field(default_factory=list)


def read_cable_list(path: Path, names: Names) -> CableList:
    """The cables of a list, and every mistake in it."""
    found = CableList()
    try:
        table = open_table(path, Columns(COLUMNS, ("speed_gbps", "lanes", "label")))
    except Wrong as wrong:
        found.mistakes.append(ListMistake(wrong.message, wrong.hint))
        return found
    seen: dict[frozenset[End], int] = {}
    for number, line in table.lines:
        where = f"{path.name}:{number}"
        try:
            row = table.row(line)
            cable = _cable(row, where, names) if any(row.values()) else None
            if cable is not None:
                earlier = seen.setdefault(frozenset(cable.ends), number)
                if earlier != number:
                    raise Wrong(f"This cable is already on line {earlier}.", "remove one of the rows")
                found.cables.append(cable)
        except Wrong as wrong:
            hint = wrong.hint if len(found.mistakes) < MAX_MISTAKES else None
            found.mistakes.append(ListMistake(f"{where}: {wrong.message}", hint))
    return found


def _cable(row: dict[str, str], where: str, names: Names) -> Cable:
    if not all(row[column] for column in COLUMNS):
        raise Wrong("A cable needs a name and a port at both ends.", "e.g. `gpu017,rail3,su1-leaf4,12`")
    near, far = _end(row["from"], row["from_port"], names), _end(row["to"], row["to_port"], names)
    if isinstance(near, SwitchPort) and isinstance(far, NodePort):
        near, far = far, near
    if isinstance(far, NodePort):
        raise Wrong(f"{near} and {far} are both node ports.", "one end of a node's cable must be a switch")
    _check_switches(near, far, names)
    speed, lanes, label = row["speed_gbps"], row["lanes"], row["label"]
    gbps = float(speed) if _SPEED.fullmatch(speed) else None
    if speed and (gbps is None or not 0 < gbps <= 3200):
        raise Wrong(f"{short(speed)} is not a valid speed in Gb/s.", "e.g. `400`")
    if lanes and lanes not in map(str, LANES):
        raise Wrong(
            f"{short(lanes)} is not a valid number of lanes.", f"use one of: {', '.join(map(str, LANES))}"
        )
    if len(label) > MAX_LABEL:
        raise Wrong(f"The label is longer than {MAX_LABEL} characters.", "shorten it")
    return Cable(near, far, gbps, int(lanes) if lanes else None, label or None, where)


def _end(name: str, port: str, names: Names) -> End:
    if name in names.nodes:
        rail = _RAIL.fullmatch(port)
        if rail is None:
            raise Wrong(f"{short(port)} is not a rail of {name}.", "e.g. `rail0`")
        end = NodePort(name, int(rail[1]))
        if end not in names.ports:
            raise Wrong(f"{end} has no address on {names.network}.", lambda: _rails(name, names))
        return end
    if _PORT.fullmatch(port):
        mistake = label_mistake(name)
        if mistake is not None:
            raise Wrong(f"{short(name)} is not a valid switch name.", mistake[0].lower() + mistake[1:-1])
        return SwitchPort(name, int(port))
    if name not in names.switches and _RAIL.fullmatch(port):
        raise Wrong(f"Unknown node {short(name)}.", lambda: nearest(name, names.nodes) or _PORT_HINT)
    raise Wrong(f"{short(port)} is not a valid port of {short(name)}.", f"{_PORT_HINT}, e.g. `12`")


def _rails(node: str, names: Names) -> str | None:
    there = ", ".join(str(port.rail) for port in names.ports if port.node == node)
    return f"rails of {node}: {there}" if there else None


def _near_switch(name: str, names: Names, otherwise: str) -> str:
    return nearest(name, names.switches) or otherwise


def _check_switches(near: End, far: SwitchPort, names: Names) -> None:
    """Raise Wrong for an undeclared switch, and for a cable from a switch to itself."""
    switches = [near.switch, far.switch] if isinstance(near, SwitchPort) else [far.switch]
    every = names.every_leaf if isinstance(near, NodePort) else names.every_switch
    for switch in switches:
        if switch in names.switches:
            continue
        add = f"declare a switch that only the list names: `switches: {{{switch}: {{}}}}`"
        if _stem(switch) in names.like_nodes:
            raise Wrong(f"Unknown node {switch}.", add)
        if every:
            raise Wrong(f"Unknown switch {switch}.", partial(_near_switch, switch, names, add))
    if len(switches) > len(set(switches)):
        raise Wrong(f"Both ends of the cable are on {far.switch}.", "a cable connects two different switches")

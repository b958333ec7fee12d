"""A declared fabric: leaves, spines, and every cable with the ports at its ends."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from rackwright.model.types import LinkKind

BY_RULE = "by rule"


@dataclass(frozen=True, slots=True, order=True)
class NodePort:
    """A node's port on a fabric, by its rail (counted from 0)."""

    node: str
    rail: int

    def __str__(self) -> str:
        return f"{self.node} rail {self.rail}"


@dataclass(frozen=True, slots=True, order=True)
class SwitchPort:
    """A switch port, by the number that discovery prints."""

    switch: str
    port: int

    def __str__(self) -> str:
        return f"{self.switch} port {self.port}"


End = NodePort | SwitchPort


@dataclass(frozen=True, slots=True)
class Cable:
    """A cable between a node and a leaf, or between a leaf (`near`) and a spine (`far`)."""

    near: End
    far: SwitchPort
    speed_gbps: float | None = None
    """Speed of the whole link in Gb/s; None: not declared."""
    lanes: int | None = None
    """Number of lanes: 1, 2, 4, 8 or 12; None: not declared."""
    label: str | None = None
    """Label on the cable."""
    origin: str = BY_RULE
    """`by rule`, or the line of the cable list, e.g. `cables.csv:17`."""

    @property
    def listed(self) -> bool:
        """Whether a row of the cable list declares it."""
        return self.origin != BY_RULE

    @property
    def uplink(self) -> bool:
        """Whether it connects two switches."""
        return isinstance(self.near, SwitchPort)

    @property
    def ends(self) -> tuple[End, End]:
        return self.near, self.far


@dataclass(frozen=True)
class SwitchId:
    """How discovery identifies a switch."""

    name: str
    """Name in the cluster file."""
    description: str | None = None
    """InfiniBand node description or LLDP system name; None: discovery prints a text that contains the name."""
    guid: str | None = None
    """InfiniBand node GUID, 16 hexadecimal digits; None: found by description."""
    firmware: str | None = None
    """Expected firmware release; None: all switches of a model must have the same."""
    ports: int | None = None


@dataclass(frozen=True)
class Fabric:
    """The cabling of one network of the cluster file."""

    network: str
    kind: LinkKind
    rails: int
    leaves: tuple[str, ...]
    """Leaves in the order of rails and units."""
    spines: tuple[str, ...]
    cables: tuple[Cable, ...]
    """Node cables in file order, by rail, then uplinks."""
    switches: Mapping[str, SwitchId] = field(default_factory=dict)
    """Every leaf and spine, by name."""
    port_name: str = "{port}"
    """How LLDP names a port of a switch, e.g. `swp{port}`."""
    max_ber: float | None = None
    """Highest effective bit error rate of a healthy link; None: not checked."""

    @cached_property
    def by_end(self) -> dict[End, Cable]:
        """Cable by each of its ends."""
        return {end: cable for cable in self.cables for end in cable.ends}

    @cached_property
    def leaf_of(self) -> dict[NodePort, SwitchPort]:
        """Leaf port by node port."""
        return {cable.near: cable.far for cable in self.cables if isinstance(cable.near, NodePort)}

    @cached_property
    def spines_of(self) -> dict[str, tuple[str, ...]]:
        """Spines that each leaf has a cable to, in order."""
        found: dict[str, dict[str, None]] = {leaf: {} for leaf in self.leaves}
        for cable in self.cables:
            if isinstance(cable.near, SwitchPort):
                found.setdefault(cable.near.switch, {})[cable.far.switch] = None
        return {leaf: tuple(spines) for leaf, spines in found.items()}

    @cached_property
    def subnets(self) -> tuple[tuple[str, ...], ...]:
        """Groups of switches that cables connect, leaves first; usually a single group."""
        of = {switch: switch for switch in (*self.leaves, *self.spines)}

        def root(switch: str) -> str:
            while of[switch] != switch:
                switch = of[switch]
            return switch

        for cable in self.cables:
            if isinstance(cable.near, SwitchPort):
                of[root(cable.far.switch)] = root(cable.near.switch)
        found: dict[str, list[str]] = {}
        for switch in of:
            found.setdefault(root(switch), []).append(switch)
        return tuple(map(tuple, found.values()))

    @cached_property
    def _rails(self) -> dict[str, frozenset[int]]:
        found: dict[str, set[int]] = {}
        for cable in self.cables:
            if isinstance(cable.near, NodePort):
                found.setdefault(cable.far.switch, set()).add(cable.near.rail)
        return {leaf: frozenset(rails) for leaf, rails in found.items()}

    def rails_of(self, leaf: str) -> tuple[int, ...]:
        """The rails whose node cables end in this leaf."""
        return tuple(sorted(self._rails.get(leaf, ())))

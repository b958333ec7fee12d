"""The result of a discovery as plain data, with the names that the tools use.

Parsers of ibnetdiscover, iblinkinfo, ibqueryerrors and lldpd create it from text; rackwright.fabric.identify maps its
devices to the names of the cluster file.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from rackwright.model.fabric import NodePort


@dataclass(frozen=True, slots=True, order=True)
class Port:
    """A port of a device, by what discovery calls both."""

    device: str
    """InfiniBand: the node GUID, 16 hexadecimal digits. Ethernet: the node's name, or the chassis of a switch."""
    port: str
    """InfiniBand: its number. Ethernet: its name."""


@dataclass(frozen=True, slots=True)
class Device:
    """A switch, or a device of a host."""

    key: str
    """As Port.device."""
    switch: bool
    description: str
    """Node description (`gpu017 mlx5_3`, `MF0;leaf1:MQM9700/U1`), or LLDP system name."""
    model: str | None = None
    firmware: str | None = None


@dataclass(frozen=True, slots=True)
class Link:
    """A cable with a link on it; each is listed once."""

    one: Port
    other: Port
    gbps: float | None = None
    """Nominal speed in Gb/s (4xNDR: 400); None: discovery does not report it."""
    lanes: int | None = None


@dataclass(frozen=True, slots=True)
class Health:
    """What a port counted, and its state."""

    state: str | None = None
    """`active`, `init`, `armed`, `down`, `polling`, `disabled` or as printed, in lower case; None: not read."""
    symbol_errors: int | None = None
    link_downed: int | None = None
    """How often its link went down since the counters were cleared."""
    receive_errors: int | None = None


@dataclass(frozen=True)
class Discovery:
    """Everything that one discovery found on a network."""

    devices: dict[str, Device] = field(default_factory=dict)
    links: tuple[Link, ...] = ()
    health: dict[Port, Health] = field(default_factory=dict)
    bit_error_rates: dict[NodePort, float] = field(default_factory=dict)
    """Effective ones, of ports of nodes whose card was asked."""
    unread: tuple[str, ...] = ()
    """What could not be read, one sentence each; such a discovery is never a pass."""
    unread_switches: frozenset[str] = frozenset()
    """Declared switches whose subnet could not be read."""
    silent: dict[str, str] = field(default_factory=dict)
    """The reason by node that could not be queried; cables that only these nodes see are unknown."""

    def joined(self, others: Iterable[Discovery]) -> Discovery:
        """This discovery and others of the same network as one."""
        found = self
        for other in others:
            found = replace(
                found,
                devices={**found.devices, **other.devices},
                links=tuple(dict.fromkeys((*found.links, *other.links))),
                health={**found.health, **other.health},
                bit_error_rates={**found.bit_error_rates, **other.bit_error_rates},
                unread=(*found.unread, *other.unread),
                unread_switches=found.unread_switches | other.unread_switches,
                silent={**found.silent, **other.silent},
            )
        return found

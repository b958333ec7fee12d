"""Options of the network role."""

from __future__ import annotations

import re
from collections.abc import Iterable
from ipaddress import IPv4Address, IPv4Network
from typing import Literal

from pydantic import Field, field_validator, model_validator

from rackwright.model.cluster import Cluster
from rackwright.model.hcas import NamesInterfaces
from rackwright.model.options import Frozen, RoleOptions
from rackwright.roles.network.problems import problems

NAME_MAX = 15
"""Bytes of an interface's name that Linux takes (IFNAMSIZ with its closing zero)."""
DECLARED = "declared"
_NAME = re.compile(r"[a-z][a-z0-9_-]*")
_KERNELS_OWN = re.compile(r"(eth|wlan|ib|usb|bond|lo|sit|tun|tap|dummy|veth)[0-9]*|en[ospx].*")
_MAC = re.compile(r"([0-9a-f]{2}:){5}[0-9a-f]{2}")
_PCI = re.compile(r"[0-9a-f]{4}:[0-9a-f]{2}:[0-1][0-9a-f]\.[0-7]")


def _name(name: str, what: str, *, clash: bool) -> None:
    if not _NAME.fullmatch(name) or len(name) > NAME_MAX:
        raise ValueError(
            f"{name!r} is not a name for {what}: lower case, digits, - and _, at most {NAME_MAX} characters."
        )
    if clash and _KERNELS_OWN.fullmatch(name):
        raise ValueError(
            f"{name!r} is a name that the kernel or udev gives itself: a port found later could have it already, "
            "and renaming would fail. Use e.g. `mgmt0` or `rail0`."
        )


class Interface(Frozen):
    """A physical port, found by where it is or by its address, under a name that stays."""

    mac: str | None = Field(
        default=None,
        description="Its permanent MAC address, in lower case; `declared`: the node's own, from the group's `macs`.",
    )
    pci: str | None = Field(
        default=None, description="Its PCI address, e.g. `0000:41:00.0`: the same on nodes of the same build."
    )
    rail: int | None = Field(default=None, ge=0, le=63, description="Rail it is cabled to, counted from 0.")
    mtu: int | None = Field(
        default=None, ge=1280, le=9216, description="None: the largest of the networks on it."
    )

    @model_validator(mode="after")
    def _one_of(self) -> Interface:
        if (self.mac is None) == (self.pci is None):
            raise ValueError("A port is found either by `mac` or by `pci`.")
        if self.mac not in (None, DECLARED) and not _MAC.fullmatch(self.mac or ""):
            raise ValueError(f"{self.mac!r} is not a MAC address in lower case, e.g. `b8:ce:f6:00:00:01`.")
        if self.pci is not None and not _PCI.fullmatch(self.pci):
            raise ValueError(f"{self.pci!r} is not a PCI address with its domain, e.g. `0000:41:00.0`.")
        return self


class Bond(Frozen):
    """Several ports as one."""

    interfaces: tuple[str, ...] = Field(min_length=2)
    mode: Literal["802.3ad", "active-backup"] = "802.3ad"
    hash: Literal["layer2", "layer2+3", "layer3+4"] = Field(
        default="layer3+4",
        description="Of 802.3ad: which port a packet leaves by. layer3+4 spreads the connections between two nodes "
        "over all ports, layer2 sends everything to one neighbour over one (kernel documentation, bonding.rst, "
        "xmit_hash_policy, read 2026-11-24).",
    )
    lacp_rate: Literal["slow", "fast"] = Field(
        default="slow",
        description="Of 802.3ad: LACPDUs each 30 s or each second; slow is the kernel's default.",
    )
    miimon_ms: int = Field(
        default=100,
        ge=10,
        le=10000,
        description="Interval of link checks. 100 is the kernel documentation's starting point (bonding.rst, "
        "read 2026-11-24); the kernel's own default, 0, never notices a cut cable.",
    )
    min_links: int = Field(
        default=1, ge=1, le=16, description="Of 802.3ad: ports that must be up for the bond to be."
    )


class OnPort(Frozen):
    """Where a network of the cluster file arrives at the nodes."""

    on: str | tuple[str, ...] = Field(
        description="An interface or a bond; of a fabric with rails, one for each rail in order."
    )
    tagged: bool = Field(
        default=True,
        description="Whether frames of the network's `vlan` carry its tag here. false: the switch port adds it.",
    )

    @property
    def devices(self) -> tuple[str, ...]:
        """One for each rail."""
        return (self.on,) if isinstance(self.on, str) else self.on


class Route(Frozen):
    """A further route of nodes that have an address on its network."""

    to: IPv4Network
    via: IPv4Address
    network: str
    metric: int | None = Field(default=None, ge=0, le=2**31)
    table: int | None = Field(default=None, ge=1, le=2**31, description="None: the main table.")


class NetworkOptions(RoleOptions, NamesInterfaces):
    """Ports, bonds, VLANs, addresses and routes; addresses and MTUs are those of the cluster file's networks."""

    interfaces: dict[str, Interface] = Field(default_factory=dict)
    bonds: dict[str, Bond] = Field(default_factory=dict)
    networks: dict[str, OnPort] = Field(default_factory=dict)
    routes: tuple[Route, ...] = ()
    policy_routing: Literal["none", "rails"] = Field(
        default="none",
        description="`rails`: traffic from a rail's address leaves through that rail, with a routing table and a rule for each.",
    )
    confirm_seconds: int = Field(
        default=60,
        ge=10,
        le=600,
        description="A node rolls back a change that no new connection confirms within this time, times `ssh.time_factor`.",
    )

    @field_validator("interfaces", "bonds")
    @classmethod
    def _have_names(cls, given: dict[str, Interface | Bond]) -> dict[str, Interface | Bond]:
        for name, entry in given.items():
            bond = isinstance(entry, Bond)
            _name(name, "a bond" if bond else "an interface", clash=not bond)
        return given

    def problems(self, cluster: Cluster) -> Iterable[tuple[str, str, str | None]]:
        """Names, cables and sizes that contradict each other or the cluster's networks."""
        return problems(self, cluster)

    def port(self, network: str, rail: int = 0) -> str | None:
        """The port or bond on which a rail of a network arrives."""
        devices = self.networks[network].devices if network in self.networks else ()
        return devices[rail] if rail < len(devices) else None

    def interface(self, cluster: Cluster, network: str, rail: int = 0) -> str | None:
        """As `layout` names the device that has the address."""
        port = self.port(network, rail)
        tag = cluster.networks[network].vlan if network in cluster.networks else None
        return port if port is None or tag is None or not self.networks[network].tagged else f"{port}.{tag}"

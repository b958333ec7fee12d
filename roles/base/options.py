"""Options of the base role."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from ipaddress import IPv4Address
from typing import ClassVar

from pydantic import Field, field_validator

from rackwright.model.cluster import Cluster, Network
from rackwright.model.host_names import ExtraHost
from rackwright.model.interfaces import NamesHosts
from rackwright.model.options import RoleOptions
from rackwright.model.ranges import fold
from rackwright.model.types import NetworkPurpose, NodeRole

_LOCALE = re.compile(r"(C|POSIX|[a-z]{2,3}_[A-Z]{2})\.UTF-8")
_TIMEZONE = re.compile(r"[A-Za-z][A-Za-z0-9_+-]*(/[A-Za-z0-9_+-]+){0,2}")
_PACKAGE = re.compile(r"[a-zA-Z0-9][a-zA-Z0-9+._-]*")


def _example(network: Network) -> IPv4Address:
    """An address in the middle of a network, for a hint."""
    return network.cidr[network.cidr.num_addresses // 2]


class BaseOptions(RoleOptions, NamesHosts):
    """What every node needs first."""

    moved: ClassVar[Mapping[str, str]] = {"firewall": "roles.firewall", "resolver": "roles.dns"}

    locale: str = Field(
        default="C.UTF-8", description="System locale, UTF-8 only; C.UTF-8 needs nothing generated."
    )
    timezone: str = Field(default="UTC", description="Zone name as in the tz database, e.g. `Europe/Zurich`.")
    packages: tuple[str, ...] = Field(
        default=(),
        description="Packages besides the standard set, named as in the node's OS family.",
    )
    extra_hosts: tuple[ExtraHost, ...] = Field(
        default=(), description="Lines added to the /etc/hosts that is generated from the cluster file."
    )

    forwarding: bool = Field(
        default=False,
        description="Whether the node passes packets on between its networks, as a router or NAT gateway does. false: "
        "forwarding is off on every interface (Linux ip-sysctl), unless docker, containerd or podman on the node "
        "need it.",
    )

    @field_validator("locale")
    @classmethod
    def _is_utf8_locale(cls, locale: str) -> str:
        if not _LOCALE.fullmatch(locale):
            raise ValueError(f"{locale!r} is not a UTF-8 locale such as 'C.UTF-8' or 'en_US.UTF-8'.")
        return locale

    @field_validator("timezone")
    @classmethod
    def _is_zone_name(cls, timezone: str) -> str:
        if not _TIMEZONE.fullmatch(timezone):
            raise ValueError(f"{timezone!r} is not a zone name such as 'UTC' or 'Europe/Zurich'.")
        return timezone

    @field_validator("packages")
    @classmethod
    def _are_package_names(cls, packages: tuple[str, ...]) -> tuple[str, ...]:
        for package in packages:
            if not _PACKAGE.fullmatch(package):
                raise ValueError(f"{package!r} is not a package name.")
        return packages

    def warnings(self, cluster: Cluster) -> Iterable[tuple[str, str, str | None]]:
        """Heads and login nodes without an address on the external network, and workers with one."""
        outside = [net for net in cluster.networks.values() if net.purpose is NetworkPurpose.EXTERNAL]
        if not outside:
            return
        names = " or ".join(net.name for net in outside)
        nodes = cluster.running("base", self)
        there = {node.name for node in nodes if any(node.address_on(net.name) for net in outside)}
        entries = [node for node in nodes if node.holds(NodeRole.HEAD, NodeRole.LOGIN)]
        if without := [node.name for node in entries if node.name not in there]:
            yield (
                "",
                f"{fold(without)} has no address on {names}, through which users reach heads and login nodes.",
                f"add one to the group's addresses, e.g. `{outside[0].name}: {_example(outside[0])}`",
            )
        workers = [node.name for node in nodes if node.holds(NodeRole.WORKER) and node not in entries]
        if exposed := [name for name in workers if name in there]:
            yield (
                "",
                f"{fold(exposed)} runs jobs but has an address on {names}, which is reachable from outside.",
                "remove the address; users connect through heads and login nodes",
            )

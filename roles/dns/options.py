"""Options of the dns role."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from ipaddress import IPv4Address
from typing import Literal
from urllib.parse import urlsplit

from pydantic import Field, field_validator, model_validator

from rackwright.model.cluster import Cluster, Node
from rackwright.model.host_names import host_name
from rackwright.model.interfaces import GoesFirst
from rackwright.model.options import RoleOptions
from rackwright.model.services import Listener, Listens
from rackwright.model.text import mistake
from rackwright.model.types import NetworkPurpose, NodeRole
from rackwright.roles.dns.names import known_names

MOST_NAMESERVERS = 3
"""glibc ignores further ones (MAXNS in resolv.h; resolv.conf(5))."""
_OPTION = re.compile(r"[a-z0-9-]+(:[0-9]{1,3})?")
_PURPOSES = frozenset({NetworkPurpose.MANAGEMENT})


class DnsOptions(RoleOptions, GoesFirst, Listens):
    """Which resolvers a node asks: the heads, which run one for the cluster, or given ones."""

    resolver: Literal["caching", "given"] = Field(
        default="caching",
        description="`caching`: the heads run unbound, which knows every name of the cluster file, and all nodes ask "
        "them. `given`: nodes ask `nameservers`.",
    )
    nameservers: tuple[IPv4Address, ...] = Field(
        default=(),
        max_length=MOST_NAMESERVERS,
        description="With `resolver: given`: what /etc/resolv.conf names. At most three: glibc ignores the fourth.",
    )
    forward_to: tuple[IPv4Address, ...] = Field(
        default=(),
        description="With `resolver: caching`: the site's resolvers, which the heads ask for all other names. None: "
        "other names do not exist (NXDOMAIN at once), so that a site without internet waits for no timeout.",
    )
    domain_is_complete: bool = Field(
        default=True,
        description="Whether the cluster file has every name below `cluster.domain`. false: the heads ask `forward_to` "
        "for names in it that they do not know.",
    )
    dnssec: bool = Field(
        default=False,
        description="Whether the heads validate the answers of `forward_to`. Off unless declared: with a forwarder that "
        "strips signatures, or with a clock that is wrong after an outage, nothing resolves, not even the time servers.",
    )
    cache_mib: int = Field(
        default=64,
        ge=4,
        le=4096,
        description="Memory for the heads' cache of records, and half as much again for whole answers; used as it "
        "fills. unbound.conf(5) defaults to 4, a value for one desktop.",
    )
    search: tuple[str, ...] = Field(
        default=(), max_length=6, description="Search domains; none: the cluster's domain."
    )
    options: tuple[str, ...] = Field(
        default=("timeout:1", "attempts:2"),
        description="`options` of /etc/resolv.conf, see resolv.conf(5). timeout:1: a dead resolver delays each "
        "lookup by 1 s instead of glibc's 5.",
    )
    outside_name: str = Field(
        default="example.com",
        description="A name outside the cluster that `verify` asks for. example.com is reserved (RFC 2606).",
    )

    @field_validator("search")
    @classmethod
    def _are_domains(cls, search: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(host_name(name) for name in search)

    @field_validator("outside_name")
    @classmethod
    def _is_host_name(cls, name: str) -> str:
        return host_name(name)

    @field_validator("options")
    @classmethod
    def _are_options(cls, options: tuple[str, ...]) -> tuple[str, ...]:
        for option in options:
            if not _OPTION.fullmatch(option):
                raise mistake(f"{option!r} is not an option of resolv.conf.", "e.g. `timeout:1`")
        return options

    @field_validator("forward_to")
    @classmethod
    def _are_elsewhere(cls, addresses: tuple[IPv4Address, ...]) -> tuple[IPv4Address, ...]:
        for address in addresses:
            if address.is_loopback or address.is_unspecified:
                raise mistake(
                    f"{address} is the head itself: it would query itself.", "name the site's resolvers"
                )
        return addresses

    @model_validator(mode="after")
    def _fit_together(self) -> DnsOptions:
        if self.resolver == "given" and not self.nameservers:
            raise mistake(
                "`resolver: given` needs `nameservers`.", "e.g. `nameservers: [10.1.0.1, 10.1.0.2]`"
            )
        if self.resolver == "given" and self.forward_to:
            raise mistake(
                "`forward_to` is read with `resolver: caching` only.", "move its addresses to `nameservers`"
            )
        if self.resolver == "caching" and self.nameservers:
            raise mistake(
                "`nameservers` are read with `resolver: given` only.",
                "write `resolver: given`, or move its addresses to `forward_to`",
            )
        if not self.forward_to and (self.dnssec or not self.domain_is_complete):
            key = "dnssec" if self.dnssec else "domain_is_complete"
            raise mistake(f"`{key}` needs `forward_to`.", "e.g. `forward_to: [10.1.0.1]`")
        return self

    def serves(self, node: Node) -> bool:
        """Whether the node runs a resolver for the cluster."""
        return self.resolver == "caching" and node.holds(NodeRole.HEAD)

    def goes_first(self, node: Node) -> bool:
        """The heads: what they serve is there before others ask for it."""
        return self.serves(node)

    def listeners(self, node: Node) -> tuple[Listener, ...]:
        """unbound, on the heads."""
        if not self.serves(node):
            return ()
        return (
            Listener("unbound", (53, 53), "udp", _PURPOSES),
            Listener("unbound", (53, 53), "tcp", _PURPOSES),
        )

    def problems(self, cluster: Cluster) -> Iterable[tuple[str, str, str | None]]:
        """Missing resolvers, and those that would query themselves."""
        serving = servers(cluster)
        if self.resolver == "caching" and not serving:
            yield (
                "resolver",
                "No head runs the caching resolver.",
                "give a head this role with `resolver: caching`, or write `resolver: given`",
            )
        owners = {entry.address: node for node in cluster.nodes for entry in node.addresses}
        for index, address in enumerate(self.forward_to):
            owner = owners.get(address)
            if owner is not None and owner in serving:
                yield (
                    f"forward_to[{index}]",
                    f"{address} is {owner.name}, which runs the cluster's own resolver: it would query itself.",
                    "name the site's resolvers",
                )
        for index, address in enumerate(self.nameservers):
            owner = owners.get(address)
            if owner is None:
                continue
            if owner not in serving:
                yield (
                    f"nameservers[{index}]",
                    f"{address} is {owner.name}, which does not run a resolver.",
                    "write `resolver: caching` for the heads, or name a resolver of the site",
                )
            elif address != cluster.management_address(owner):
                yield (
                    f"nameservers[{index}]",
                    f"{owner.name} serves names on {cluster.management.name} only, not on {address}.",
                    f"write `{cluster.management_address(owner)}`",
                )

    def warnings(self, cluster: Cluster) -> Iterable[tuple[str, str, str | None]]:
        """More heads than resolv.conf has room for, and names that will not resolve."""
        serving = servers(cluster)
        if self.resolver == "given":
            return
        if len(serving) > MOST_NAMESERVERS:
            last = serving[MOST_NAMESERVERS - 1].name
            yield (
                "resolver",
                f"Nodes ask the first {MOST_NAMESERVERS} of {len(serving)} heads that run a resolver, up to {last}.",
                None,
            )
        if cluster.waves.order == "workers-first":
            yield (
                "resolver",
                "Workers are applied first, and wait for resolvers that the heads do not run yet.",
                "write `waves: {order: heads-first}`, or apply the heads once with `--limit`",
            )
        if not self.forward_to:
            for key, name in _mirror_names(cluster):
                yield (
                    "forward_to",
                    f"Nodes will not resolve {name} of `mirrors.{key}`: the heads know the cluster's names alone.",
                    "write e.g. `forward_to: [10.1.0.1]`, or add the name to `roles.base.extra_hosts`",
                )


def servers(cluster: Cluster) -> tuple[Node, ...]:
    """Heads that run the caching resolver, in file order."""
    heads = (node for node in cluster.nodes if NodeRole.HEAD in node.roles)  # few of a thousand
    return tuple(
        node
        for node in heads
        if isinstance(options := node.options.get("dns"), DnsOptions) and options.serves(node)
    )


def _mirror_names(cluster: Cluster) -> Iterator[tuple[str, str]]:
    """Host names in the site's mirrors that the cluster file does not know."""
    known = known_names(cluster, cluster.primary)
    for key, value in cluster.mirrors.model_dump(exclude_none=True).items():
        name = urlsplit(value if "://" in value else f"//{value}").hostname or ""
        if not re.fullmatch(r"[0-9.]+", name) and name not in known:
            yield key, name

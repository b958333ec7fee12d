"""Names of all cluster addresses, for /etc/hosts of every node and for the site's resolver."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from ipaddress import IPv4Address
from typing import TYPE_CHECKING

from pydantic import Field, field_validator

from rackwright.model.options import Frozen

if TYPE_CHECKING:
    from rackwright.model.cluster import Cluster

_HOST_NAME = re.compile(
    r"[a-zA-Z0-9]([a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?(\.[a-zA-Z0-9]([a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?)*"
)


def host_name(name: str) -> str:
    """The name itself; ValueError unless it is a valid host name."""
    if len(name) > 253 or not _HOST_NAME.fullmatch(name):
        raise ValueError(
            f"{name!r} is not a valid host name: use labels of letters, digits and hyphens, joined by dots."
        )
    return name


class ExtraHost(Frozen):
    """An address outside the cluster, with its names."""

    address: IPv4Address = Field(description="IPv4 address.")
    names: tuple[str, ...] = Field(min_length=1, description="Host names, the canonical one first.")

    @field_validator("names")
    @classmethod
    def _are_host_names(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(host_name(name) for name in names)


@dataclass(frozen=True)
class HostNames:
    """An address and its names, the canonical one first."""

    address: str
    names: tuple[str, ...]


def host_names(cluster: Cluster, extra_hosts: Iterable[ExtraHost] = ()) -> Iterator[HostNames]:
    """Every node on every network, then the declared extra hosts.

    The management address has the node's name; the others have `name-network` or, on networks with rails,
    `name-network-railN`.
    """
    for node in cluster.nodes:
        yield HostNames(str(cluster.management_address(node)), (node.fqdn, node.name))
        for entry in node.addresses:
            if entry.network == cluster.management.name:
                continue
            rail = f"-rail{entry.rail}" if cluster.networks[entry.network].rails > 1 else ""
            yield HostNames(str(entry.address), (f"{node.name}-{entry.network}{rail}",))
    for extra in extra_hosts:
        yield HostNames(str(extra.address), extra.names)

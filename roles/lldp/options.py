"""Options of the lldp role."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, NamedTuple

from pydantic import Field

from rackwright.documents.nearest import suggest
from rackwright.model.cluster import Cluster, Node
from rackwright.model.fabric import SwitchPort
from rackwright.model.hcas import DeclaresHcas, NamesInterfaces
from rackwright.model.options import RoleOptions
from rackwright.model.types import LinkKind

WITHOUT_LLDP = frozenset({LinkKind.INFINIBAND, LinkKind.EFA})
"""LLDP is of Ethernet alone, and a cloud network hides its switches."""
Problem = tuple[str, str, str | None]


class LldpOptions(RoleOptions):
    """lldpd, and on which ports it speaks."""

    networks: tuple[str, ...] | None = Field(
        default=None,
        description="Networks on whose interfaces it speaks and listens, e.g. `[fabric]`: the interfaces are those of "
        "the role `network`, of a tagged network the port below. None: every physical port, lldpd's own default "
        "(lldpcli(8), `configure system interface pattern`, read 2026-11-25).",
    )
    interval_seconds: int = Field(
        default=30,
        ge=5,
        le=3600,
        description="Seconds between two announcements. 30 is lldpd's own default (lldpcli(8), `configure lldp "
        "tx-interval`, read 2026-11-25); neighbours forget a port after four of them.",
    )
    firmware_agent: Literal["leave", "off"] = Field(
        default="leave",
        description="`off`: turn off the LLDP agent in the firmware of Intel's NICs, which takes the frames before the "
        "kernel sees them: `fw-lldp-agent off` of ice, `disable-fw-lldp on` of i40e. It persists across reboots. On "
        "i40e it resets the port for a moment, and DCBX by the firmware ends (commits of the Linux kernel 84a118ab, "
        "31eafa40, 64e1dcbb and c61c8fe1, read 2026-11-25).",
    )

    def problems(self, cluster: Cluster) -> Iterator[Problem]:
        """Networks that do not exist, and those whose interfaces are not declared."""
        for index, name in enumerate(self.networks or ()):
            path = f"networks[{index}]"
            if name not in cluster.networks:
                yield path, f"There is no network {name}.", suggest(name, cluster.networks, what="networks")
                continue
            for node in cluster.running("lldp", self):
                if node.address_on(name) is not None and not _interfaces_of(node, cluster, name):
                    yield (
                        path,
                        f"No role declares the interface of {name} on {node.name}.",
                        "declare it in `roles.network.networks`, or leave `networks` out",
                    )
                    break

    def pattern(self, cluster: Cluster, node: Node) -> str | None:
        """What lldpd is limited to on this node, e.g. `rail0,rail1`; `!*`: to no port; None: every physical port."""
        if self.networks is None:
            return None
        found = [port for name in self.networks for port in _interfaces_of(node, cluster, name)]
        return ",".join(dict.fromkeys(found)) or "!*"


class CabledPort(NamedTuple):
    """An Ethernet port of the node with a declared cable."""

    network: str
    rail: int
    leaf: SwitchPort
    interface: str | None
    """None: no role declares it."""

    def __str__(self) -> str:
        return f"{self.network} rail {self.rail}"


def cabled_ports(cluster: Cluster, node: Node) -> tuple[CabledPort, ...]:
    """The node's Ethernet ports of declared fabrics, fabric by fabric and rail by rail."""
    return tuple(
        CabledPort(fabric.network, port.rail, leaf, _interface(cluster, node, fabric.network, port.rail))
        for fabric in cluster.fabrics.values()
        if fabric.kind not in WITHOUT_LLDP
        for port, leaf in sorted(fabric.leaf_of.items())
        if port.node == node.name
    )


def _interfaces_of(node: Node, cluster: Cluster, network: str) -> list[str]:
    rails = [entry.rail for entry in node.addresses if entry.network == network]
    found = (_interface(cluster, node, network, rail) for rail in rails)
    return [name for name in found if name is not None]


def _interface(cluster: Cluster, node: Node, network: str, rail: int) -> str | None:
    """The port below any VLAN as the role that names interfaces has it, or else as the RDMA device declares it."""
    named = node.offers(NamesInterfaces)
    name = None if named is None else named.port(network, rail)
    if name is None and (devices := node.offers(DeclaresHcas)) is not None:
        hcas = devices.hcas(cluster, node)
        name = next((hca.netdev for hca in hcas if (hca.network, hca.rail) == (network, rail)), None)
    return name

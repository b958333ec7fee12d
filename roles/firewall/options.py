"""Options of the firewall role."""

from __future__ import annotations

import re
from collections.abc import Iterable
from ipaddress import IPv4Network
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, StringConstraints, field_validator

from rackwright.documents.nearest import suggest
from rackwright.model.cluster import Cluster, Network, Node
from rackwright.model.interfaces import WritesUnitFiles
from rackwright.model.options import Frozen, RoleOptions
from rackwright.model.services import PROGRAM_LENGTH, Listener, Listens
from rackwright.model.text import Cidr, mistake
from rackwright.model.types import NetworkPurpose

UNIT = "rackwright-firewall.service"
UNIT_FILE = f"/etc/systemd/system/{UNIT}"
DROP_IN = "/etc/systemd/system/nftables.service.d/90-rackwright.conf"
_PORTS = re.compile(r"([0-9]{1,5})(?:-([0-9]{1,5}))?")

Zone = Literal["trusted", "services", "closed"]
DEFAULT_ZONES: dict[NetworkPurpose, Zone] = {
    NetworkPurpose.MANAGEMENT: "trusted",
    NetworkPurpose.STORAGE: "trusted",
    NetworkPurpose.FABRIC: "trusted",
    NetworkPurpose.EXTERNAL: "services",
}
"""What a network is where `zones` does not name it; a purpose that is not here is closed."""


def _ports(value: object) -> str:
    text = str(value) if isinstance(value, (str, int)) and not isinstance(value, bool) else ""
    found = _PORTS.fullmatch(text)
    first = int(found[1]) if found else 0
    last = int(found[2]) if found and found[2] else first
    if not 1 <= first <= last <= 65535:
        raise mistake("Not a port or a range of ports.", "e.g. `8080` or `60000-60100`")
    return f"{first}" if first == last else f"{first}-{last}"


Ports = Annotated[str, BeforeValidator(_ports)]
Comment = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9 .,:/()_+-]{1,100}$")]


def first_and_last(ports: str) -> tuple[int, int]:
    """`8000-8010` or `8080` as two numbers."""
    first, _, last = ports.partition("-")
    return int(first), int(last or first)


class Allow(Frozen):
    """A rule that allows more than the zones do."""

    ports: Ports = Field(description="A port or a range, e.g. 8080 or 60000-60100.")
    protocol: Literal["tcp", "udp"] = "tcp"
    source: str = Field(
        description="Who is allowed: a network of this file by name, or addresses such as 192.0.2.0/24."
    )
    comment: Comment = Field(description="Reason; added as a comment to the rule on the node.")

    def addresses(self, cluster: Cluster) -> IPv4Network | None:
        """Addresses of the source; None: it is neither a network of this cluster nor an address range."""
        if self.source in cluster.networks:
            return cluster.networks[self.source].cidr
        try:
            return IPv4Network(self.source)
        except ValueError:
            return None


class SiteListener(Frozen):
    """A service of the site that listens on the nodes."""

    program: str = Field(
        pattern=r"^[A-Za-z0-9_.:+-]{1,64}$",
        description="Its process name as `ss -p` shows it; `kernel` for a socket that no process holds (NFS, RoCE).",
    )
    ports: Ports = Field(description="A port or a range.")
    protocol: Literal["tcp", "udp"] = "tcp"
    purposes: frozenset[NetworkPurpose] = Field(
        default=frozenset({NetworkPurpose.MANAGEMENT}),
        description="Networks that may reach it; none: only the node itself.",
    )


class FirewallOptions(Listens, WritesUnitFiles, RoleOptions):
    """Who may reach what on a node: nftables, in the table `inet rackwright` and nowhere else."""

    zones: dict[str, Zone] = Field(
        default_factory=dict,
        description="By name of a network. `trusted`: its addresses reach everything but what is declared for other "
        "networks alone. `services`: only what is declared for it. `closed`: nothing. Not named: management, storage and "
        "fabric are trusted, since MPI, NCCL and job launchers use ephemeral ports; external networks get services.",
    )
    ssh_from: tuple[Cidr, ...] = Field(
        default=(),
        description="Addresses that reach sshd besides the zones, e.g. those of a control node or jump host that is on "
        "none of the nodes' networks. Where they are wrong, the node rolls back to its old rules by itself.",
    )
    allow: tuple[Allow, ...] = Field(default=(), description="Rules that allow more than the zones do.")
    site_listeners: tuple[SiteListener, ...] = Field(
        default=(), description="Services of the site that listen on the nodes."
    )
    log_refused: bool = Field(
        default=True,
        description="The kernel log names what was refused, at most six packets a minute (`rackwright refused:`).",
    )
    confirm_seconds: int = Field(
        default=60,
        ge=20,
        le=600,
        description="The node rolls new rules back unless a new connection confirms them within this time, "
        "which is multiplied by `ssh.time_factor`.",
    )

    @field_validator("ssh_from")
    @classmethod
    def _once(cls, sources: tuple[IPv4Network, ...]) -> tuple[IPv4Network, ...]:
        return tuple(dict.fromkeys(sources))

    def zone(self, network: Network) -> Zone:
        """What a network is to the nodes on it."""
        return self.zones.get(network.name, DEFAULT_ZONES.get(network.purpose, "closed"))

    def listeners(self, node: Node) -> tuple[Listener, ...]:
        """What the site added."""
        return tuple(
            Listener(
                one.program[:PROGRAM_LENGTH],
                first_and_last(one.ports),
                protocol=one.protocol,
                purposes=one.purposes,
            )
            for one in self.site_listeners
        )

    def problems(self, cluster: Cluster) -> Iterable[tuple[str, str, str | None]]:
        """Networks that do not exist, and rules that lock every login out."""
        for name in self.zones:
            if name not in cluster.networks:
                yield (
                    f"zones.{name}",
                    f"There is no network {name}.",
                    suggest(name, cluster.networks, what="networks"),
                )
        for number, rule in enumerate(self.allow):
            if rule.addresses(cluster) is None:
                yield (
                    f"allow[{number}].source",
                    f"{rule.source} is neither a network of this file nor a range of addresses.",
                    suggest(rule.source, cluster.networks, what="networks"),
                )
        if self.zone(cluster.management) == "closed" and not self.ssh_from:
            yield (
                f"zones.{cluster.management.name}",
                "No login to the nodes would be possible: their management network is closed and `ssh_from` is empty.",
                "leave it trusted, or add the control node's address to `ssh_from`",
            )

    def unit_files(self, node: Node) -> tuple[str, ...]:
        """What loads the rules at boot, and after the distribution's unit has flushed everything."""
        return (UNIT_FILE, DROP_IN)

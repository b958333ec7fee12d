"""Options of the time role."""

from __future__ import annotations

import re
from collections.abc import Iterable
from ipaddress import IPv4Network

from pydantic import Field, field_validator

from rackwright.extra_lines import CHRONY, ExtraFile, ExtraLines
from rackwright.model.cluster import Cluster, Node
from rackwright.model.interfaces import ServesTime, WritesUnitFiles
from rackwright.model.options import Frozen, RoleOptions
from rackwright.model.services import Listener, Listens
from rackwright.osfamily.names import names

_SERVER = re.compile(r"[A-Za-z0-9]([A-Za-z0-9.:-]{0,251}[A-Za-z0-9])?")


class TimeExtra(Frozen):
    """Lines at the end of chrony's file."""

    chrony_conf: ExtraLines = Field(default=(), description="Of chrony.conf, e.g. [maxslewrate 500].")


class TimeOptions(RoleOptions, Listens, ServesTime, WritesUnitFiles):
    """One clock for the whole cluster; the primary head is its server."""

    servers: tuple[str, ...] = Field(
        default=(),
        description="NTP servers the primary head follows, names or addresses; three or more let chrony "
        "outvote one that is wrong. None: the head's own clock is the site's time.",
    )
    local_stratum: int = Field(
        10, ge=1, le=15, description="Stratum that the head announces while it reaches none of its servers."
    )
    allow: tuple[IPv4Network, ...] = Field(
        default=(), description="Networks the head serves besides the cluster's management network."
    )
    makestep_seconds: float = Field(
        default=1.0,
        gt=0,
        description="A clock further off than this is stepped, in the first `makestep_updates` updates "
        "only; later it is slewed, since a step breaks running jobs. 1.0 and 3 are the values chrony's "
        "own example configuration and the Debian and EL packages ship.",
    )
    makestep_updates: int = Field(default=3, ge=1, le=1000, description="See makestep_seconds.")
    hardware_timestamping: tuple[str, ...] = Field(
        default=(),
        description="Interfaces to ask for hardware timestamps (`hwtimestamp`); `*` means all that can.",
    )
    extra: TimeExtra = Field(default=TimeExtra(), description="Extra lines of chrony's file.")
    max_offset_seconds: float = Field(
        default=0.05,
        gt=0,
        le=300,
        description="A clock further off than this fails its check. 0.05 is the alert threshold of "
        "StackHPC's appliance; munge itself gives up at 300 s.",
    )

    @field_validator("servers")
    @classmethod
    def _are_servers(cls, servers: tuple[str, ...]) -> tuple[str, ...]:
        for server in servers:
            if not _SERVER.fullmatch(server):
                raise ValueError(f"{server!r} is not the name or address of an NTP server.")
        return servers

    @field_validator("hardware_timestamping")
    @classmethod
    def _are_interfaces(cls, interfaces: tuple[str, ...]) -> tuple[str, ...]:
        for interface in interfaces:
            if not re.fullmatch(r"\*|[A-Za-z0-9_.-]{1,15}", interface):
                raise ValueError(f"{interface!r} is not the name of a network interface.")
        return interfaces

    @property
    def own_clock_stratum(self) -> int | None:
        """What the head serves at where no server is declared."""
        return None if self.servers else self.local_stratum

    def problems(self, cluster: Cluster) -> Iterable[tuple[str, str, str | None]]:
        """Extra lines that are not chrony's, or set what rackwright sets."""
        file = ExtraFile("chrony_conf", "chrony.conf", CHRONY, ("time/chrony.conf.j2",))
        return file.problems(self.extra.chrony_conf, type(self))

    def listeners(self, node: Node) -> tuple[Listener, ...]:
        """NTP on the primary head; the port of commands is on loopback alone (chrony.conf(5), bindcmdaddress)."""
        return (Listener("chronyd", (123, 123), protocol="udp", sources=self.allow),) if node.primary else ()

    def unit_files(self, node: Node) -> tuple[str, ...]:
        """How chronyd starts where the clock is not its own."""
        return (f"/etc/systemd/system/{names(node.family, 'chrony').unit}.d/90-rackwright.conf",)

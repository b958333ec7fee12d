"""Options of the ipmi_exporter role."""

from __future__ import annotations

from collections.abc import Iterable
from ipaddress import IPv4Address
from typing import Annotated, ClassVar, Literal

from pydantic import Field, StringConstraints, field_validator

from rackwright.documents.nearest import suggest
from rackwright.exporters import ExporterOptions, Problem
from rackwright.model.cluster import Cluster, Node
from rackwright.model.monitoring import Probe, Scrape
from rackwright.model.platforms import Capability, has
from rackwright.model.ranges import RangeMistake, expand
from rackwright.model.strings import SecretName
from rackwright.model.text import mistake

MODULE = "bmc"
REMOTE_PATH = "/ipmi"
Collector = Literal["bmc", "bmc-watchdog", "chassis", "dcmi", "ipmi", "sel"]
BmcUser = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,15}$")]
"""At most 16 characters (IPMI 2.0, 22.28 Set User Name)."""


class IpmiExporterOptions(ExporterOptions):
    """ipmi_exporter: on the primary head for declared BMCs, and on other bare-metal nodes for their own."""

    role: ClassVar[str] = "ipmi_exporter"
    software: ClassVar[str] = "ipmi_exporter"
    job: ClassVar[str] = "ipmi"

    port: int = Field(default=9290, ge=1, le=65535, description="TCP port on the management address.")
    bmcs: dict[str, IPv4Address] = Field(
        default_factory=dict,
        description="BMCs that the primary head reads over the network: nodes, e.g. `gpu[001-128]`, and the address of "
        "the first one's BMC; those of the others follow one by one.",
    )
    user: BmcUser = Field(
        default="monitor", description="User of the BMCs with the privilege below, and no more."
    )
    password: SecretName = Field(
        default="bmc_monitor_password", description="Name of that user's password in the secrets store."
    )
    privilege: Literal["user", "operator", "admin"] = Field(
        default="user", description="Privilege level of the session. `user` reads sensors and DCMI's power."
    )
    driver: Literal["LAN_2_0", "LAN"] = Field(
        default="LAN_2_0",
        description="`LAN`: IPMI 1.5, for BMCs that know nothing newer; the password is then easy to find out.",
    )
    local: bool = Field(
        default=True, description="Whether bare-metal nodes without a declared BMC read theirs in-band."
    )
    collectors: tuple[Collector, ...] = Field(
        default=("bmc", "chassis", "dcmi", "ipmi", "sel"),
        min_length=1,
        description="What is read of a BMC. `dcmi`: the node's power draw. `sel`: how full its event log is.",
    )
    exclude_sensors: tuple[Annotated[int, Field(ge=0, le=65535)], ...] = Field(
        default=(), description="IDs of sensors that a BMC reports wrongly."
    )
    workarounds: tuple[Annotated[str, StringConstraints(pattern=r"^[a-z0-9]{1,30}$")], ...] = Field(
        default=(),
        description="FreeIPMI's workaround flags for declared BMCs, e.g. `opensesspriv`; ipmi-sensors(8) lists them.",
    )
    interval_seconds: int = Field(
        default=60, ge=10, le=240, description="Between two readings of a BMC; most take seconds to answer."
    )

    @field_validator("bmcs")
    @classmethod
    def _expand(cls, bmcs: dict[str, IPv4Address]) -> dict[str, IPv4Address]:
        seen: dict[str, str] = {}
        taken: dict[IPv4Address, str] = {}
        for text, first in bmcs.items():
            for index, name in enumerate(_expanded(text)):
                address = first + index
                if name in seen:
                    raise mistake(f"{name} is in `{seen[name]}` and in `{text}`.", "name each node once")
                if address in taken:
                    raise mistake(
                        f"{name} would get {address}, the BMC of {taken[address]}.", "start another range"
                    )
                seen[name], taken[address] = text, name
        return bmcs

    @property
    def addresses(self) -> dict[str, IPv4Address]:
        """Address of each declared BMC, by node."""
        return {
            name: first + index
            for text, first in self.bmcs.items()
            for index, name in enumerate(_expanded(text))
        }

    @property
    def supplied_secrets(self) -> tuple[str, ...]:
        """The password of the BMCs' user."""
        return (self.password,) if self.bmcs else ()

    def runs_on(self, node: Node) -> bool:
        """Where there is something to read."""
        return self.reads_others(node) or self.reads_own(node)

    def reads_others(self, node: Node) -> bool:
        """Whether it reads declared BMCs from here."""
        return bool(self.bmcs) and node.primary

    def reads_own(self, node: Node) -> bool:
        """Whether this node is to read its own."""
        return self.local and node.name not in self.addresses

    def serves(self, node: Node) -> bool:
        """Not on a node that has nothing but its own BMC to read, where its platform has none."""
        return self.reads_others(node) or self.reads_own_here(node)

    def reads_own_here(self, node: Node) -> bool:
        """Whether it does, where the platform has a BMC."""
        return self.reads_own(node) and has(node.platform, Capability.HARDWARE)

    def service(self, node: Node) -> tuple[str, ...]:
        """FreeIPMI keeps descriptions of sensors; in-band it needs the BMC's device, and to be its owner."""
        common = (
            "CacheDirectory=rackwright-ipmi",
            "CapabilityBoundingSet=",
            "DevicePolicy=closed",
            "NoNewPrivileges=yes",
            "PrivateTmp=yes",
            "ProtectHome=yes",
            "ProtectSystem=strict",
        )
        if not self.reads_own_here(node):
            return common
        return (*common, "DeviceAllow=char-ipmidev rw", "User=root")

    def scrapes(self, cluster: Cluster, node: Node) -> tuple[Scrape, ...]:
        """Its own BMC at /metrics, and each declared one."""
        timeout = min(30, self.interval_seconds)
        found = []
        if self.reads_own_here(node):
            found.append(
                Scrape(self.job, self.port, interval_seconds=self.interval_seconds, timeout_seconds=timeout)
            )
        if self.reads_others(node):
            found.append(
                Scrape(
                    self.job,
                    self.port,
                    path=REMOTE_PATH,
                    interval_seconds=self.interval_seconds,
                    timeout_seconds=timeout,
                    parameters={"module": (MODULE,)},
                    probes=tuple(
                        Probe(str(address), {"node": name}) for name, address in self.addresses.items()
                    ),
                )
            )
        return tuple(found)

    def problems(self, cluster: Cluster) -> Iterable[Problem]:
        """BMCs of nodes that do not exist."""
        yield from super().problems(cluster)
        for name in self.addresses:
            if name not in cluster.by_name:
                hint = suggest(name, cluster.by_name) or "name nodes of the cluster file"
                yield "bmcs", f"There is no node {name}.", hint
                return

    def warnings(self, cluster: Cluster) -> Iterable[Problem]:
        """Settings that expose the password."""
        if self.bmcs and self.driver == "LAN":
            yield (
                "driver",
                "IPMI 1.5 barely protects the BMCs' password.",
                "use LAN_2_0 where BMCs support it",
            )
        if self.bmcs and self.privilege == "admin":
            yield (
                "privilege",
                "Reading sensors does not need administrator privilege.",
                "use `privilege: user`",
            )


def _expanded(text: str) -> tuple[str, ...]:
    try:
        return expand(text)
    except RangeMistake as error:
        raise mistake(f"{text}: {error.message}", error.hint) from None

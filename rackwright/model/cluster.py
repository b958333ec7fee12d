"""The resolved cluster: ranges expanded, SKUs looked up, defaults filled in.

`rackwright.clusterfile.load.load_cluster(path)` builds it from a cluster file; everything else in
rackwright (roles, plan, checks, burn-in, lab) reads only this.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import cached_property
from ipaddress import IPv4Address, IPv4Network
from pathlib import Path
from typing import Literal, TypeVar

from pydantic import Field, SerializeAsAny

from rackwright.model.bmc import Bmc
from rackwright.model.fabric import Fabric
from rackwright.model.firmware import Baseline
from rackwright.model.gpu_stack import GpuStack
from rackwright.model.install import BootNetwork, Install
from rackwright.model.options import Frozen, RoleOptions
from rackwright.model.ranges import unit_name
from rackwright.model.settings import Burnin, Mirrors, Ssh, Waves
from rackwright.model.sku import Sku
from rackwright.model.storage import Filesystem
from rackwright.model.types import INNER_PURPOSES, LinkKind, NetworkPurpose, NodeRole, Platform, Workload
from rackwright.osfamily.known import OsFamily, OsRelease

OfferT = TypeVar("OfferT")


class Network(Frozen):
    """One network; a fabric with several rails has one subnet of `rail_prefix` per rail."""

    name: str
    purpose: NetworkPurpose
    kind: LinkKind = LinkKind.ETHERNET
    cidr: IPv4Network
    mtu: int = 1500
    vlan: int | None = None
    gateway: IPv4Address | None = None
    rails: int = 1
    rail_prefix: int | None = None
    """Prefix length of each rail's subnet; set if `rails` is more than 1."""

    def subnet(self, rail: int = 0) -> IPv4Network:
        """The subnet of one rail, counted from 0; the whole network if there is only one rail."""
        if self.rail_prefix is None or self.rails == 1:
            return self.cidr
        size = 1 << (32 - self.rail_prefix)
        return IPv4Network((int(self.cidr.network_address) + rail * size, self.rail_prefix))


class NodeAddress(Frozen):
    """One address of a node; `rail` counts from 0 and is 0 on networks with one rail."""

    network: str
    rail: int = 0
    address: IPv4Address


class LabSize(Frozen):
    """Resources of this node in a lab rack."""

    cpus: int
    memory_mib: int
    containers: bool = False
    kubelet: bool = False
    gpus: Literal["simulated"] | None = None


class Node(Frozen):
    """One node, as declared."""

    name: str
    fqdn: str
    roles: frozenset[NodeRole]
    primary: bool = False
    """The head that runs slurmctld, slurmdbd and the site's services; exactly one per cluster."""
    sku: Sku
    platform: Platform
    os: OsRelease
    addresses: tuple[NodeAddress, ...]
    mac: str | None = None
    """MAC address of its management port."""
    serial: str | None = None
    """Serial number of the machine, as its firmware and its BMC print it."""
    bmc: Bmc | None = None
    install: Install | None = None
    rack: str | None = None
    position: int | None = None
    switches: tuple[str, ...] = ()
    """Its leaf switches: one for all ports, or one per rail in order; empty: not declared."""
    lab: LabSize | None = None
    workload: Workload | None = None
    """What it runs jobs with; None: as the roles of the cluster file decide. Heads serve all workloads then."""
    mig: dict[str, int] = Field(default_factory=dict)
    """MIG profile to number of instances per GPU; empty: MIG is off."""
    filesystems: tuple[Filesystem, ...] = ()
    """Declared filesystems that it mounts at their paths, including those that it serves itself."""
    served: tuple[Filesystem, ...] = ()
    """Declared filesystems that it serves."""
    options: dict[str, SerializeAsAny[RoleOptions]] = Field(default_factory=dict)
    """Options of each role that runs on this node, with the group's overrides merged in."""

    @property
    def family(self) -> OsFamily:
        """The operating-system family."""
        return self.os.family

    @property
    def switch(self) -> str | None:
        """Its leaf switch, or one name for all leaves of a rail-optimised unit, e.g. `su1-leaf1-8`."""
        return unit_name(self.switches) if self.switches else None

    @property
    def memory_mib(self) -> int:
        """As declared: the SKU's, in the lab that of the `lab:` entry."""
        in_lab = self.platform is not Platform.BARE_METAL and self.lab is not None
        return self.lab.memory_mib if in_lab and self.lab else self.sku.memory_mib

    @property
    def simulates_gpus(self) -> bool:
        """Whether the lab simulates its GPUs."""
        lab = self.lab is not None and self.lab.gpus == "simulated"
        return lab and self.platform is Platform.CONTAINER and self.sku.gpus is not None

    def with_options(self, options: Mapping[str, RoleOptions]) -> Node:
        """This node with only those options whose role runs on it."""
        bare = self.model_copy(update={"options": {}}) if self.options else self
        return bare.model_copy(
            update={"options": {role: given for role, given in options.items() if given.runs_on(bare)}}
        )

    def offers(self, kind: type[OfferT]) -> OfferT | None:
        """Options of the role on this node that implements the interface `kind`; None if there is none."""
        return next((given for given in self.options.values() if isinstance(given, kind)), None)

    def serves(self, workloads: Collection[Workload]) -> bool:
        """Whether it has a part in one of these workloads, as far as the cluster file narrows it."""
        return self.workload is None or self.workload in workloads

    def holds(self, *roles: NodeRole) -> bool:
        """Whether the node has at least one of these node roles."""
        return not self.roles.isdisjoint(roles)

    def address_on(self, network: str, rail: int = 0) -> IPv4Address | None:
        """The node's address on a network and rail, or None."""
        for entry in self.addresses:
            if entry.network == network and entry.rail == rail:
                return entry.address
        return None


class Cluster(Frozen):
    """A whole cluster, as declared."""

    name: str
    domain: str
    path: Path
    """The cluster file."""
    sha256: str
    """SHA-256 of the cluster file's bytes."""
    networks: dict[str, Network]
    fabrics: dict[str, Fabric] = Field(default_factory=dict)
    """Declared cabling by network name."""
    storage: dict[str, Filesystem] = Field(default_factory=dict)
    """Declared filesystems by name, in file order."""
    ssh: Ssh
    mirrors: Mirrors
    burnin: Burnin
    waves: Waves = Waves()
    gpu_stack: GpuStack | None = None
    boot_network: BootNetwork | None = None
    """Network on which machines without an operating system reach this control node."""
    firmware: dict[str, Baseline] = Field(default_factory=dict)
    """Declared firmware and BIOS settings by SKU name."""
    nodes: tuple[Node, ...]

    @cached_property
    def by_name(self) -> dict[str, Node]:
        """Nodes by name."""
        return {node.name: node for node in self.nodes}

    def running(self, role: str, options: RoleOptions | None = None) -> tuple[Node, ...]:
        """Nodes that a role runs on, in file order; with `options`, only those with exactly these options."""
        nodes = (node for node in self.nodes if role in node.options)
        return tuple(node for node in nodes if options is None or node.options[role] == options)

    def holding(self, *roles: NodeRole) -> tuple[Node, ...]:
        """Nodes with at least one of these node roles, in file order."""
        return tuple(node for node in self.nodes if node.holds(*roles))

    @cached_property
    def primary(self) -> Node:
        """The primary head."""
        return next(node for node in self.nodes if node.primary)

    @property
    def lock_path(self) -> Path:
        """The cluster's lock file: `lab.lock.yaml` beside `lab.yaml`."""
        return self.path.with_name(f"{self.path.stem}.lock.yaml")

    @property
    def inner_networks(self) -> tuple[Network, ...]:
        """Networks that only cluster nodes are on, in file order: neither external networks nor BMC networks."""
        return tuple(net for net in self.networks.values() if net.purpose in INNER_PURPOSES)

    @cached_property
    def management(self) -> Network:
        """The network that rackwright connects over and that daemons communicate over."""
        return next(net for net in self.networks.values() if net.purpose is NetworkPurpose.MANAGEMENT)

    def management_address(self, node: Node) -> IPv4Address:
        """The address that rackwright connects to."""
        address = node.address_on(self.management.name)
        if address is None:  # the loader rejects such a file, but a cluster built in code may have none
            raise ValueError(f"{node.name} has no address on {self.management.name}")
        return address

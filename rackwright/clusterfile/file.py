"""The cluster file as written, before ranges, defaults and overrides are resolved.

Field descriptions feed the JSON Schema and the documentation. The resolved values are in
rackwright.model.cluster, which the rest of rackwright reads.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, Tag

from rackwright.clusterfile.counted import AddressRule, PortRule, PositionRule
from rackwright.clusterfile.machine_sections import BmcSection, InstallSection
from rackwright.clusterfile.storage_section import FilesystemSection
from rackwright.documents.yaml_data import Data
from rackwright.model.firmware import Baseline
from rackwright.model.gpu_stack import GpuStack
from rackwright.model.install import BootNetworkSection, MachineSerial
from rackwright.model.options import Frozen
from rackwright.model.settings import Burnin, Mirrors, Ssh, Waves
from rackwright.model.sku import SkuEntry
from rackwright.model.strings import Guid, Version
from rackwright.model.text import Address, Cidr, Domain, Label, Mac
from rackwright.model.types import LinkKind, NetworkPurpose, NodeRole, Platform, Workload
from rackwright.osfamily.known import OsRelease


class ClusterSection(Frozen):
    """Name and domain of the cluster."""

    name: Label = Field(description="Cluster name, also used as Slurm's ClusterName.")
    domain: Domain = Field(description="DNS domain of all nodes: node gpu001 becomes gpu001.<domain>.")


class NetworkSection(Frozen):
    """One network."""

    purpose: NetworkPurpose = Field(
        description="What the network carries; exactly one network is `management`. `external`: users and the Internet. "
        "`bmc`: BMCs."
    )
    kind: LinkKind = Field(default=LinkKind.ETHERNET, description="Link layer.")
    cidr: Cidr = Field(description="IPv4 network, e.g. 10.1.0.0/16, shared by all rails.")
    mtu: int = Field(default=1500, ge=576, le=65520, description="Bytes.")
    vlan: int | None = Field(default=None, ge=1, le=4094, description="VLAN ID; None: untagged.")
    gateway: Address | None = Field(default=None, description="Router on this network; None: no route out.")
    rails: int = Field(
        default=1, ge=1, le=64, description="Number of rails; each rail has a separate subnet."
    )
    rail_prefix: int | None = Field(
        default=None,
        ge=9,
        le=30,
        description="Prefix length of each rail's subnet. None: the largest subnets that fit.",
    )


class LabSection(Frozen):
    """Size of a node in a lab rack."""

    cpus: int = Field(
        ge=1, le=256, description="Number of CPUs; for a virtual machine, as many as its SKU has."
    )
    memory_mib: int = Field(
        ge=256, le=1048576, description="Memory in MiB; for a virtual machine, as its SKU has."
    )
    containers: bool = Field(
        default=False,
        description="Containers only: the node can run containers itself and has a local disk at /scratch.",
    )
    kubelet: bool = Field(
        default=False,
        description="Containers only: a kubelet can run on the node. It has separate control groups, and folders of "
        "containerd, kubelet and etcd on a local disk.",
    )
    gpus: Literal["simulated"] | None = Field(
        default=None,
        description="Containers only. simulated: nvidia-smi and dcgmi on the node show the GPUs of its SKU, and a separate "
        "kernel log reports their faults. None: no GPUs.",
    )


class Defaults(Frozen):
    """Defaults for all node groups."""

    os: OsRelease | None = None
    platform: Platform | None = None
    sku: str | None = None
    roles: tuple[NodeRole, ...] | None = None
    workload: Workload | None = Field(
        default=None, description="What workers and login nodes run jobs with; heads serve every workload."
    )
    lab: LabSection | None = None
    machines: Path | None = Field(default=None, description="Machine list, as in a node group.")
    bmc: BmcSection | None = Field(default=None, description="BMC settings shared by all groups.")
    install: InstallSection | None = Field(default=None, description="Install settings shared by all groups.")


def _text_or_other(value: Data) -> str:
    return "text" if isinstance(value, str) else "other"


def _list_or_text(value: Data) -> str:
    return "list" if isinstance(value, list | tuple) else "text"


Leaves = Annotated[
    Annotated[str, Tag("text")] | Annotated[tuple[str, ...], Field(min_length=1), Tag("list")],
    Discriminator(_list_or_text),
]
"""One leaf switch for all ports of a node, or one per rail."""
Primary = Annotated[
    Annotated[str, Tag("text")] | Annotated[bool, Tag("other")], Discriminator(_text_or_other)
]
MigLayout = Annotated[
    Annotated[str, Tag("text")] | Annotated[dict[str, Annotated[int, Field(ge=1, le=7)]], Tag("other")],
    Discriminator(_text_or_other),
]


class NodeGroup(Frozen):
    """Nodes that are declared together; missing keys come from `defaults`."""

    nodes: str = Field(min_length=1, description="ClusterShell NodeSet, e.g. gpu[001-128].")
    roles: tuple[NodeRole, ...] | None = Field(
        default=None, min_length=1, description="Node roles, e.g. [worker]."
    )
    sku: str | None = Field(default=None, description="Node model, from the catalogue or `skus`.")
    os: OsRelease | None = Field(default=None, description="Operating system release.")
    platform: Platform | None = Field(default=None, description="Kind of node; default: bare-metal.")
    primary: Primary = Field(
        default=False,
        description="The head that runs slurmctld; required with several heads. true, or the name of a node in "
        "the group.",
    )
    addresses: dict[str, AddressRule] = Field(
        default_factory=dict, description="Network name to first address; other nodes follow in order."
    )
    macs: tuple[Mac, ...] | None = Field(
        default=None, description="MAC addresses on the management network, in NodeSet order."
    )
    serials: tuple[MachineSerial, ...] | None = Field(
        default=None, description="Serial numbers of the nodes' hardware, in NodeSet order."
    )
    machines: Path | None = Field(
        default=None,
        description="Machine list (CSV with the column node, and any of mac, serial, disk, bmc, bmc_certificate), relative to "
        "the cluster file. It may list nodes of other groups too; separate two disks with a space.",
    )
    bmc: BmcSection | None = Field(default=None, description="BMC addresses and login settings.")
    install: InstallSection | None = Field(
        default=None, description="What `rackwright install` installs on the nodes, and on which disks."
    )
    rack: str | None = Field(default=None, description="Rack, or racks to spread the nodes over: rack[1-4].")
    position: PositionRule | None = Field(default=None, description="Position in the rack.")
    switch: Leaves | None = Field(
        default=None,
        description="Leaf switch, or switches to spread the nodes over: leaf[1-4]. A list names one per rail.",
    )
    workload: Workload | None = Field(
        default=None,
        description="What the nodes run jobs with, where the cluster has several: slurm, kubernetes, ray or "
        "slurm-on-kubernetes. None: that of `defaults`; heads without it serve every workload.",
    )
    lab: LabSection | None = Field(default=None, description="Size in the lab rack.")
    mig: MigLayout = Field(
        default_factory=dict,
        description="MIG profile to number of instances per GPU, e.g. {1g.10gb: 7}, or the name of an NVIDIA "
        "mig-parted configuration, e.g. all-balanced; default: MIG is off.",
    )
    options: dict[str, dict[str, Any]] = Field(
        default_factory=dict, description="Role name to options that override the section in `roles`."
    )


class UplinkRule(Frozen):
    """Cables from every leaf to every spine: with two cables each, ports n and n+1 of leaf 1 go to spine 1, and so on."""

    each: int = Field(ge=1, le=64, description="Number of cables from each leaf to each spine.")
    leaf_first: int = Field(ge=1, le=1024, description="First uplink port of a leaf.")
    spine_first: int = Field(default=1, ge=1, le=1024, description="First downlink port of a spine.")


class SwitchSection(Frozen):
    """How discovery identifies one switch."""

    description: str | None = Field(
        default=None,
        min_length=1,
        max_length=64,
        description="InfiniBand node description or LLDP system name. None: discovery prints a text that contains the "
        "switch's name as a word, e.g. `MF0;su1-leaf1:MQM9700/U1`.",
    )
    guid: Guid | None = Field(default=None, description="InfiniBand node GUID.")
    firmware: Version | None = Field(
        default=None,
        description="Expected firmware. None: switches of the same model must have the same firmware.",
    )
    ports: int | None = Field(default=None, ge=1, le=1024, description="Number of ports.")


class FabricSection(Frozen):
    """The cabling of a network: by rule from each group's `switch`, from a cable list, or both.

    By rule, rail r of the nodes on a leaf takes consecutive ports of that leaf, in file order.
    """

    leaf_ports: PortRule = Field(
        default=PortRule(first=1), description="Leaf ports that nodes are cabled to, in file order."
    )
    spines: str | None = Field(default=None, description="Spines that every leaf is cabled to: spine[1-4].")
    uplinks: UplinkRule | None = Field(default=None, description="Cables between leaves and spines.")
    cables: Path | None = Field(
        default=None,
        description="Cable list (CSV with the columns from, from_port, to, to_port, and optionally speed_gbps, lanes, "
        "label), relative to the cluster file. The port of a node is its rail: `gpu017,rail3,su1-leaf4,12`. Rows "
        "override the rules.",
    )
    switches: dict[str, SwitchSection] = Field(default_factory=dict, description="Switches by name.")
    ports: int | None = Field(
        default=None, ge=1, le=1024, description="Number of ports per switch; `switches` may override it."
    )
    port_name: str = Field(
        default="{port}",
        pattern=r"^[A-Za-z0-9_./ -]{0,30}[{]port[}][A-Za-z0-9_./ -]{0,30}$",
        description="How LLDP names a port of a switch, e.g. `swp{port}` or `Ethernet1/{port}`.",
    )
    speed_gbps: float | None = Field(
        default=None,
        gt=0,
        le=3200,
        description="Speed of every cable in Gb/s. None: that of the SKU's ports.",
    )
    lanes: Literal[1, 2, 4, 8, 12] | None = Field(default=None, description="Lanes of every cable, e.g. 4.")
    max_ber: float | None = Field(
        default=None,
        gt=0,
        lt=1,
        description="Highest effective bit error rate of a healthy link, e.g. 1e-12. None: not checked.",
    )


class ClusterFile(Frozen):
    """A cluster file."""

    version: Literal[1] = Field(description="Version of the file format.")
    cluster: ClusterSection
    defaults: Defaults = Defaults()
    networks: dict[str, NetworkSection] = Field(min_length=1, description="Networks by name.")
    fabrics: dict[str, FabricSection] = Field(
        default_factory=dict, description="Network name to its leaves, spines and cables."
    )
    storage: dict[str, FilesystemSection] = Field(
        default_factory=dict,
        description="Filesystems by name: kind, servers, mount point and the nodes that mount them.",
    )
    ssh: Ssh
    mirrors: Mirrors = Mirrors()
    skus: dict[str, SkuEntry] = Field(
        default_factory=dict, description="Node models of this site; they override the catalogue."
    )
    nodes: tuple[NodeGroup, ...] = Field(min_length=1, description="Groups of nodes.")
    roles: dict[str, dict[str, Any] | None] = Field(
        default_factory=dict, description="Role name to its options; a role runs if it has a section."
    )
    boot_network: BootNetworkSection | None = Field(
        default=None, description="Where machines without an operating system reach this control node."
    )
    firmware: dict[str, Baseline] = Field(
        default_factory=dict,
        description="SKU to firmware and BIOS settings of its nodes; see `rackwright firmware`.",
    )
    burnin: Burnin = Burnin()
    waves: Waves = Waves()
    gpu_stack: GpuStack | None = Field(
        default=None, description="Driver, CUDA and related packages of GPU nodes; see `rackwright lock`."
    )

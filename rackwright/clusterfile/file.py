"""The cluster file as written: ranges, defaults and overrides not yet resolved.

Field descriptions become the JSON Schema and the documentation. The resolved values are in
rackwright.model.cluster, which every other part of rackwright reads.
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
from rackwright.model.types import LinkKind, NetworkPurpose, NodeRole, Platform
from rackwright.osfamily.known import OsRelease


class ClusterSection(Frozen):
    """Name and domain of the cluster."""

    name: Label = Field(description="Name of the cluster; Slurm's ClusterName as well.")
    domain: Domain = Field(description="DNS domain of every node: node gpu001 is gpu001.<domain>.")


class NetworkSection(Frozen):
    """One network."""

    purpose: NetworkPurpose = Field(
        description="What the network carries; exactly one is `management`. `external`: users and the world outside. "
        "`bmc`: BMCs."
    )
    kind: LinkKind = Field(default=LinkKind.ETHERNET, description="Link layer.")
    cidr: Cidr = Field(description="IPv4 network, e.g. 10.1.0.0/16; all rails together.")
    mtu: int = Field(default=1500, ge=576, le=65520, description="Bytes.")
    vlan: int | None = Field(default=None, ge=1, le=4094, description="VLAN id; None: untagged.")
    gateway: Address | None = Field(default=None, description="Router in this network; None: no route out.")
    rails: int = Field(default=1, ge=1, le=64, description="Rails of a fabric; each is a separate subnet.")
    rail_prefix: int | None = Field(
        default=None,
        ge=9,
        le=30,
        description="Prefix length of each rail's subnet. None: the largest that fits.",
    )


class LabSection(Frozen):
    """Size of a node when the cluster is booted as a lab rack."""

    cpus: int = Field(ge=1, le=256, description="Of a virtual machine: as many as its SKU has.")
    memory_mib: int = Field(ge=256, le=1048576, description="Of a virtual machine: as much as its SKU has.")
    containers: bool = Field(
        default=False,
        description="Of a container: the node can run containers itself, and has a local disk at /scratch.",
    )
    gpus: Literal["simulated"] | None = Field(
        default=None,
        description="Of a container. simulated: nvidia-smi and dcgmi on the node show the GPUs of its SKU, and a separate kernel "
        "log reports their faults. None: no GPUs.",
    )


class Defaults(Frozen):
    """Defaults for every node group."""

    os: OsRelease | None = None
    platform: Platform | None = None
    sku: str | None = None
    roles: tuple[NodeRole, ...] | None = None
    lab: LabSection | None = None
    machines: Path | None = Field(default=None, description="As that of a group.")
    bmc: BmcSection | None = Field(default=None, description="What all BMCs have in common.")
    install: InstallSection | None = Field(default=None, description="What all installations have in common.")


def _text_or_other(value: Data) -> str:
    return "text" if isinstance(value, str) else "other"


def _list_or_text(value: Data) -> str:
    return "list" if isinstance(value, list | tuple) else "text"


Leaves = Annotated[
    Annotated[str, Tag("text")] | Annotated[tuple[str, ...], Field(min_length=1), Tag("list")],
    Discriminator(_list_or_text),
]
"""One leaf switch for all ports of a node, or one for each rail."""
Primary = Annotated[
    Annotated[str, Tag("text")] | Annotated[bool, Tag("other")], Discriminator(_text_or_other)
]
MigLayout = Annotated[
    Annotated[str, Tag("text")] | Annotated[dict[str, Annotated[int, Field(ge=1, le=7)]], Tag("other")],
    Discriminator(_text_or_other),
]


class NodeGroup(Frozen):
    """Nodes that are declared together; what a group leaves out comes from `defaults`."""

    nodes: str = Field(min_length=1, description="ClusterShell NodeSet, e.g. gpu[001-128].")
    roles: tuple[NodeRole, ...] | None = Field(
        default=None, min_length=1, description="What the nodes are for."
    )
    sku: str | None = Field(default=None, description="Node model, from the catalogue or `skus`.")
    os: OsRelease | None = Field(default=None, description="Operating system release.")
    platform: Platform | None = Field(default=None, description="Kind of machine; bare-metal if left out.")
    primary: Primary = Field(
        default=False,
        description="The head that runs slurmctld, needed with several heads: true, or the name of a node of "
        "the group.",
    )
    addresses: dict[str, AddressRule] = Field(
        default_factory=dict, description="Network name to first address; the others follow in order."
    )
    macs: tuple[Mac, ...] | None = Field(
        default=None, description="Management MAC addresses, in NodeSet order."
    )
    serials: tuple[MachineSerial, ...] | None = Field(
        default=None, description="Serial numbers of the machines, in NodeSet order."
    )
    machines: Path | None = Field(
        default=None,
        description="Machine list (CSV with the column node, and any of mac, serial, disk, bmc, bmc_certificate), relative to "
        "the cluster file. It may have the nodes of other groups too; two disks are separated by a space.",
    )
    bmc: BmcSection | None = Field(
        default=None, description="The BMCs of the nodes, and how to log in to them."
    )
    install: InstallSection | None = Field(
        default=None, description="What `rackwright install` puts on the nodes, and on which disks."
    )
    rack: str | None = Field(default=None, description="Rack, or racks to spread the nodes over: rack[1-4].")
    position: PositionRule | None = Field(default=None, description="Position in the rack.")
    switch: Leaves | None = Field(
        default=None,
        description="Leaf switch, or switches to spread the nodes over: leaf[1-4]. A list has one for each rail.",
    )
    lab: LabSection | None = Field(default=None, description="Size in the lab rack.")
    mig: MigLayout = Field(
        default_factory=dict,
        description="MIG profile to its instances on each GPU, e.g. {1g.10gb: 7}, or a configuration of NVIDIA's "
        "mig-parted, e.g. all-balanced; left out: MIG is off.",
    )
    options: dict[str, dict[str, Any]] = Field(
        default_factory=dict, description="Role name to options that differ from the section in `roles`."
    )


class UplinkRule(Frozen):
    """Cables from every leaf to every spine: with two cables each, ports n and n+1 of leaf 1 go to spine 1, and so on."""

    each: int = Field(ge=1, le=64, description="Cables from each leaf to each spine.")
    leaf_first: int = Field(ge=1, le=1024, description="First port of a leaf that goes up.")
    spine_first: int = Field(default=1, ge=1, le=1024, description="First port of a spine that goes down.")


class SwitchSection(Frozen):
    """How one switch appears in discovery."""

    description: str | None = Field(
        default=None,
        min_length=1,
        max_length=64,
        description="Its node description (InfiniBand) or LLDP system name. None: what discovery prints has the "
        "switch's name as a word, e.g. `MF0;su1-leaf1:MQM9700/U1`.",
    )
    guid: Guid | None = Field(default=None, description="Its InfiniBand node GUID.")
    firmware: Version | None = Field(
        default=None, description="Declared firmware. None: switches that are alike have the same."
    )
    ports: int | None = Field(default=None, ge=1, le=1024, description="Number of its ports.")


class FabricSection(Frozen):
    """The cabling of a network: by rule from each group's `switch`, from a cable list, or both.

    By rule, rail r of the nodes with the same leaf for it takes that leaf's ports one after the other, in file order.
    """

    leaf_ports: PortRule = Field(
        default=PortRule(first=1), description="Ports of a leaf that nodes take, in file order."
    )
    spines: str | None = Field(default=None, description="Spines that every leaf is cabled to: spine[1-4].")
    uplinks: UplinkRule | None = Field(default=None, description="The cables between leaves and spines.")
    cables: Path | None = Field(
        default=None,
        description="Cable list (CSV with the columns from, from_port, to, to_port, and optionally speed_gbps, lanes, "
        "label), relative to the cluster file. Of a node's end, the port is its rail: `gpu017,rail3,su1-leaf4,12`. Its "
        "rows win over the rules.",
    )
    switches: dict[str, SwitchSection] = Field(default_factory=dict, description="Switches by name.")
    ports: int | None = Field(
        default=None, ge=1, le=1024, description="Ports of a switch, unless `switches` has another number."
    )
    port_name: str = Field(
        default="{port}",
        pattern=r"^[A-Za-z0-9_./ -]{0,30}[{]port[}][A-Za-z0-9_./ -]{0,30}$",
        description="How LLDP names a port of a switch, e.g. `swp{port}` or `Ethernet1/{port}`.",
    )
    speed_gbps: float | None = Field(
        default=None, gt=0, le=3200, description="Of every cable. None: the ports of the nodes' SKU."
    )
    lanes: Literal[1, 2, 4, 8, 12] | None = Field(default=None, description="Of every cable, e.g. 4.")
    max_ber: float | None = Field(
        default=None,
        gt=0,
        lt=1,
        description="Largest effective bit error rate of a healthy link, e.g. 1e-12. None: not judged.",
    )


class ClusterFile(Frozen):
    """A cluster file."""

    version: Literal[1] = Field(description="Version of this format.")
    cluster: ClusterSection
    defaults: Defaults = Defaults()
    networks: dict[str, NetworkSection] = Field(min_length=1, description="Networks by name.")
    fabrics: dict[str, FabricSection] = Field(
        default_factory=dict, description="Leaves, spines and cables of networks, by the network's name."
    )
    storage: dict[str, FilesystemSection] = Field(
        default_factory=dict,
        description="Filesystems by name: kind, servers, where they are mounted and by whom.",
    )
    ssh: Ssh
    mirrors: Mirrors = Mirrors()
    skus: dict[str, SkuEntry] = Field(
        default_factory=dict, description="Node models of this site; they override the catalogue's."
    )
    nodes: tuple[NodeGroup, ...] = Field(min_length=1, description="Groups of nodes.")
    roles: dict[str, dict[str, Any] | None] = Field(
        default_factory=dict, description="Role name to its options; a section makes the role run."
    )
    boot_network: BootNetworkSection | None = Field(
        default=None, description="Where machines without an operating system reach this control node."
    )
    firmware: dict[str, Baseline] = Field(
        default_factory=dict,
        description="SKU to the firmware and BIOS settings of its nodes; see `rackwright firmware`.",
    )
    burnin: Burnin = Burnin()
    waves: Waves = Waves()
    gpu_stack: GpuStack | None = Field(
        default=None, description="Driver, CUDA and companions of the nodes with GPUs; see `rackwright lock`."
    )

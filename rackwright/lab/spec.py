"""The specification of a rack as plain data: the lab's only input."""

import ipaddress
import re
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from rackwright.errors import LabError
from rackwright.osfamily.known import RELEASES

IMAGES = {name: release.codename for name, release in RELEASES.items() if release.lab_image}
"""Base image name -> Debian suite."""

MAX_NODES = 100
VM_MEMORY_MIB = 512
"""A kernel with its initramfs does not boot in less."""

_LABEL = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
_USER = re.compile(r"[a-z_][a-z0-9_-]{0,30}")


@dataclass(frozen=True, slots=True)
class VmSpec:
    """What a virtual machine has beyond its size; sockets * cores * threads are its CPUs."""

    sockets: int
    cores: int
    threads: int
    numa_nodes: int
    data_disks_gb: tuple[int, ...] = ()
    """Sizes of its NVMe drives, in GB (10^9 bytes)."""

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> "VmSpec":
        """What asdict made."""
        return cls(**(data | {"data_disks_gb": tuple(data["data_disks_gb"])}))


@dataclass(frozen=True, slots=True)
class LeafPort:
    """Where a cable ends: a leaf switch of the rack, and the name of its port."""

    leaf: str
    port: str


@dataclass(frozen=True, slots=True)
class BmcSpec:
    """The virtual BMC of a machine that is racked: with blank disks, and powered off until its BMC switches it on."""

    address: str
    prefix_length: int
    port: int
    user: str
    password: Path
    """The file of its password, which the lab makes where there is none."""
    authority: Path | None
    """Where the certificate of the CA goes that signs the BMC's; None: nowhere."""
    secure_boot: bool
    """As the machine is delivered; its BMC changes it."""

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> "BmcSpec":
        """What to_json made."""
        authority = None if data["authority"] is None else Path(data["authority"])
        return cls(**(data | {"password": Path(data["password"]), "authority": authority}))

    def to_json(self) -> dict[str, Any]:
        """The spec as JSON types, good for every working directory."""
        authority = None if self.authority is None else str(self.authority.absolute())
        return asdict(self) | {"password": str(self.password.absolute()), "authority": authority}


@dataclass(frozen=True, slots=True)
class NodeSpec:
    """One machine of the rack."""

    name: str
    address: str
    prefix_length: int
    image: str
    cpus: int
    memory_mib: int
    mtu: int
    extra_addresses: tuple[str, ...] = ()
    extra_mtus: tuple[int, ...] = ()
    """Of the ports with these addresses; empty: as the management port."""
    leaf_ports: tuple[LeafPort | None, ...] = ()
    """Where their cables end; None: at the network's bridge. Empty: all of them."""
    containers: bool = False
    """Whether containers run inside it, on a separate disk at /scratch."""
    kubelet: bool = False
    """Whether a kubelet can run inside it (rackwright.lab.kubelet_node)."""
    gpus: str | None = None
    """JSON of the GPUs it pretends to have, and of how they are cut (rackwright.lab.gpu_node)."""
    vm: VmSpec | None = None
    """None: a container."""
    bmc: BmcSpec | None = None
    """Set: a virtual machine that is racked, and not booted from an image of the lab's."""

    def __post_init__(self) -> None:
        check_label("node name", self.name)
        if self.bmc is None and self.image not in IMAGES:
            raise LabError(
                f"node {self.name}: unknown image {self.image!r}", hint=f"images: {', '.join(IMAGES)}"
            )
        if self.cpus < 1 or self.memory_mib < 64:
            raise LabError(f"node {self.name}: needs at least 1 cpu and 64 MiB of memory")
        if self.vm is not None and self.memory_mib < VM_MEMORY_MIB:
            raise LabError(
                f"node {self.name}: a virtual machine needs at least {VM_MEMORY_MIB} MiB of memory"
            )
        for mtu in (self.mtu, *self.extra_mtus):
            if not 1280 <= mtu <= 65535:
                raise LabError(f"node {self.name}: mtu {mtu} is not between 1280 and 65535")
        for cidr in (f"{self.address}/{self.prefix_length}", *self.extra_addresses):
            _interface(f"node {self.name}", cidr)
        if self.bmc is not None:
            _interface(f"the BMC of {self.name}", f"{self.bmc.address}/{self.bmc.prefix_length}")
            if self.vm is None:
                raise LabError(f"node {self.name}: a container has no BMC", hint="platform: vm")

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> "NodeSpec":
        """What to_json made."""
        vm = None if data["vm"] is None else VmSpec.from_json(data["vm"])
        bmc = None if data["bmc"] is None else BmcSpec.from_json(data["bmc"])
        leaves = tuple(None if port is None else LeafPort(**port) for port in data["leaf_ports"])
        lists = {key: tuple(data[key]) for key in ("extra_addresses", "extra_mtus")}
        return cls(**(data | lists | {"leaf_ports": leaves, "vm": vm, "bmc": bmc}))

    def to_json(self) -> dict[str, Any]:
        """The spec as JSON types, good for every working directory."""
        return asdict(self) | {"bmc": None if self.bmc is None else self.bmc.to_json()}

    def port_mtu(self, number: int) -> int:
        """MTU of a port: 0 is the management network's."""
        return self.extra_mtus[number - 1] if number and self.extra_mtus else self.mtu

    def leaf_port(self, number: int) -> LeafPort | None:
        """Where the cable of a port ends, if that is a leaf: 0 is the management network's."""
        return self.leaf_ports[number - 1] if number and self.leaf_ports else None

    @property
    def addresses(self) -> tuple[str, ...]:
        """Every address of the node without its prefix length, the management address first."""
        return (self.address, *(cidr.partition("/")[0] for cidr in self.extra_addresses))


@dataclass(frozen=True, slots=True)
class RackSpec:
    """A whole rack: its nodes, its network and the key which opens it."""

    name: str
    nodes: tuple[NodeSpec, ...]
    bridge_address: str
    apt_proxy: str | None
    admin_user: str
    key: Path
    known_hosts: Path
    ssh_port: int = 22
    gateway: str | None = None
    """The default route of virtual machines and of nodes with a kubelet, which leads to the bridge and no further."""
    kubernetes: bool = False
    """Whether its nodes get packages and images of Kubernetes from the rack (rackwright.lab.artefact)."""
    bmc_bridge: str | None = None
    """The rack's address, with its prefix length, in the network of its BMCs; only for a rack that has some."""

    def __post_init__(self) -> None:
        check_label("rack name", self.name)
        if not 1 <= len(self.nodes) <= MAX_NODES:
            raise LabError(f"rack {self.name}: {len(self.nodes)} nodes, a rack has 1 to {MAX_NODES}")
        if not _USER.fullmatch(self.admin_user) or self.admin_user == "root":
            raise LabError(f"rack {self.name}: {self.admin_user!r} cannot be the admin user")
        if not 1 <= self.ssh_port <= 65535:
            raise LabError(f"rack {self.name}: ssh port {self.ssh_port} is not a port")
        bridge = _interface(f"rack {self.name}", self.bridge_address)
        _refuse_twins(self.name, [*(node.name for node in self.nodes), *self.leaves])
        _refuse_twins(self.name, [str(bridge.ip), *(a for node in self.nodes for a in node.addresses)])
        self._check_bmcs()
        if self.apt_proxy is not None and self.apt_proxy_endpoint[0] != str(bridge.ip):
            raise LabError(
                f"rack {self.name}: the apt proxy {self.apt_proxy} is not on the bridge address {bridge.ip}",
                hint="the bridge address hosts the rack's mirror",
            )

    def _check_bmcs(self) -> None:
        """All BMCs are in one network, in which the rack has an address too."""
        if not self.racked:
            return
        if self.bmc_bridge is None:
            raise LabError(f"rack {self.name}: it has BMCs, but no address in their network")
        bridge = _interface(f"rack {self.name}", self.bmc_bridge)
        bmcs = {node.name: node.bmc for node in self.racked if node.bmc is not None}
        for name, bmc in bmcs.items():
            if _interface(name, f"{bmc.address}/{bmc.prefix_length}").network != bridge.network:
                raise LabError(f"rack {self.name}: the BMC of {name} is not in {bridge.network}")
        _refuse_twins(self.name, [str(bridge.ip), *(bmc.address for bmc in bmcs.values())])

    @property
    def racked(self) -> tuple[NodeSpec, ...]:
        """The machines that have a BMC."""
        return tuple(node for node in self.nodes if node.bmc is not None)

    @property
    def leaves(self) -> tuple[str, ...]:
        """Names of the leaf switches that cables end at."""
        ports = [port for node in self.nodes for port in node.leaf_ports if port is not None]
        return tuple(dict.fromkeys(port.leaf for port in ports))

    @property
    def apt_proxy_endpoint(self) -> tuple[str, int]:
        """Address and port of the apt proxy; only for a rack which has one."""
        url = urlsplit(self.apt_proxy or "")
        if url.scheme != "http" or url.hostname is None or url.port is None:
            raise LabError(f"rack {self.name}: apt proxy {self.apt_proxy!r} is not http://ADDRESS:PORT")
        return url.hostname, url.port

    def node(self, name: str) -> NodeSpec:
        """The node of that name."""
        for node in self.nodes:
            if node.name == name:
                return node
        known = ", ".join(node.name for node in self.nodes[:8]) + (", ..." if len(self.nodes) > 8 else "")
        raise LabError(f"rack {self.name} has no node {name!r}", hint=f"nodes: {known}")

    def to_json(self) -> dict[str, Any]:
        """The spec as JSON types, good for every working directory."""
        return asdict(self) | {
            "nodes": [node.to_json() for node in self.nodes],
            "key": str(self.key.absolute()),
            "known_hosts": str(self.known_hosts.absolute()),
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> "RackSpec":
        """The spec which `to_json` wrote."""
        nodes = tuple(NodeSpec.from_json(node) for node in data["nodes"])
        paths = {"key": Path(data["key"]), "known_hosts": Path(data["known_hosts"])}
        return cls(**(data | paths | {"nodes": nodes}))


def check_label(what: str, value: str) -> None:
    """Refuse a name which cannot be a host name label: it becomes part of paths, namespaces and groups."""
    if not _LABEL.fullmatch(value):
        raise LabError(
            f"{what} {value!r} is not a host name label", hint="a-z, 0-9 and -, at most 63 characters"
        )


def _interface(owner: str, cidr: str) -> ipaddress.IPv4Interface:
    try:
        return ipaddress.IPv4Interface(cidr)
    except ValueError as error:
        raise LabError(f"{owner}: {cidr!r} is not an IPv4 address with prefix length: {error}") from None


def _refuse_twins(rack: str, values: list[str]) -> None:
    for value in values:
        if values.count(value) > 1:
            raise LabError(f"rack {rack}: {value} is used twice")

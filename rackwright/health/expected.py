"""The declared state of a node as flat data: it is sent to nodes as JSON."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from rackwright.health.limits import LIMITS
from rackwright.health.records import Unreadable
from rackwright.health.verdict import Action

ANY = "any"
"""In place of a mode: ports whose SKU declares none."""


@dataclass(frozen=True)
class ExpectedGpus:
    """The declared GPUs; None: the SKU does not declare the value."""

    model: str
    count: int
    memory_mib: int
    architecture: str | None = None
    pci_ids: tuple[str, ...] = ()
    display_pci_id: str | None = None
    """A display-only GPU, which does not count."""
    pcie_generation: int | None = None
    pcie_width: int | None = None
    nvlinks: int | None = None
    nvlink_gbs: int | None = None
    nvswitch: str | None = None
    power_watts: int | None = None
    vendor: str = "nvidia"
    """Vendor: nvidia or amd."""
    mig: tuple[str, ...] = ()
    """MIG profiles of every GPU; empty: MIG is off."""
    compute_mode: str = "Default"

    def link_gbs(self) -> float:
        """GB/s of one NVLink in one direction, as sold."""
        if not self.nvlinks or self.nvlink_gbs is None:
            raise Unreadable(f"the SKU declares no NVLink speed for {self.model}")
        return self.nvlink_gbs / self.nvlinks / 2


@dataclass(frozen=True)
class ExpectedPorts:
    """Equal network ports."""

    purpose: str
    kind: str
    speed_gbps: int
    count: int


@dataclass(frozen=True)
class ExpectedAddress:
    """An address the node is declared to have, and the MTU of its network."""

    network: str
    purpose: str
    kind: str
    address: str
    mtu: int


@dataclass(frozen=True)
class ExpectedDrives:
    """Equal NVMe drives."""

    count: int
    size_gb: int


@dataclass(frozen=True)
class ExpectedMount:
    """A filesystem that must be mounted."""

    target: str
    source: str | None = None
    type: str | None = None
    writable: bool = True
    shared: bool = False
    """Whether it is on a server: if the server fails, every node is affected and none is at fault."""
    automount: bool = False
    """Whether an automounter waits for its first use, even while the server is down."""


@dataclass(frozen=True)
class Expected:
    """One node as declared; every check judges against this."""

    node: str | None
    """None: a document is judged without a cluster file, so names and addresses are not checked."""
    sku: str
    platform: str = "bare-metal"
    family: str | None = None
    cpu_architecture: str = "x86_64"
    cpu_model: str | None = None
    os: str | None = None
    """As `debian-13`."""
    sockets: int = 1
    cores: int = 1
    threads: int = 1
    numa_nodes: int | None = None
    memory_mib: int = 1
    gpus: ExpectedGpus | None = None
    ports: tuple[ExpectedPorts, ...] = ()
    unknown_ports: tuple[str, ...] = ()
    """Link kinds of the declared fabrics for which the SKU has no port: their ports are UNKNOWN."""
    bluefields: dict[str, int] = field(default_factory=dict)
    """BlueField-3 ports by mode: nic, dpu, or any."""
    drives: tuple[ExpectedDrives, ...] = ()
    addresses: tuple[ExpectedAddress, ...] = ()
    gateways: tuple[str, ...] = ()
    own_clock_stratum: int | None = None
    """True on the head if its own clock is the site's declared time source."""
    mounts: tuple[ExpectedMount, ...] = (ExpectedMount("/"),)
    bonds: dict[str, tuple[str, ...]] = field(default_factory=dict)
    arrays: tuple[str, ...] = ()
    services: tuple[str, ...] = ()
    dcgm: str | None = None
    """Address of DCGM's host engine, as for dcgmi --host; None: no role declares DCGM."""
    slurmd: bool = False
    manager: str | None = None
    """The workload manager that runs jobs on it, or drains them: a name of rackwright.model.types.WorkloadManager."""
    runs_subnet_manager: bool = False
    driver_version: str | None = None
    driver_open: bool | None = None
    minimum_drivers: dict[str, str] = field(default_factory=dict)
    """The lowest version of each driver branch without a published vulnerability."""
    hold_packages: bool = True
    kernel: str | None = None
    kernel_arguments: tuple[str, ...] = ()
    acs: str = "off"
    pkeys: tuple[str, ...] = ()
    bios: str | None = None
    gpu_vbios: str | None = None
    nic_firmware: dict[str, str] = field(default_factory=dict)
    """By board id."""
    nvme_firmware: dict[str, str] = field(default_factory=dict)
    """By model."""
    lacking: dict[str, str] = field(default_factory=dict)
    """Capabilities that the platform lacks, each with the reason."""
    limits: dict[str, float] = field(default_factory=dict)
    """Only the site's overrides."""
    disabled: dict[str, str] = field(default_factory=dict)
    """Checks switched off, with the reason."""
    xids: dict[int, Action] = field(default_factory=dict)
    """Action by XID; an XID that is not listed is UNKNOWN."""

    def limit(self, name: str) -> float:
        """A threshold: the site's, else the default."""
        return self.limits.get(name, LIMITS[name].value)

    def ports_of(self, *kinds: str) -> tuple[ExpectedPorts, ...]:
        """The ports of these link kinds."""
        return tuple(ports for ports in self.ports if ports.kind in kinds)

    def has_rdma(self, *kinds: str) -> bool:
        """Whether ports of these link kinds are declared, or a fabric that needs them."""
        return bool(self.ports_of(*kinds)) or not set(kinds).isdisjoint(self.unknown_ports)

    def the_gpus(self) -> ExpectedGpus:
        """The declared GPUs; a check that uses them applies only to nodes that declare some."""
        if self.gpus is None:
            raise Unreadable("no GPU is declared")
        return self.gpus

    def to_json(self) -> dict[str, Any]:
        """As plain data."""
        written = asdict(self)
        written["xids"] = {str(code): action.value for code, action in self.xids.items()}
        return written

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Expected:
        """The reverse of `to_json`, through JSON."""
        values = _tuples(data)
        for name, kind in _NESTED.items():
            values[name] = tuple(kind(**one) for one in data[name])
        if data["gpus"] is not None:
            values["gpus"] = ExpectedGpus(**_tuples(data["gpus"]))
        values["bonds"] = {name: tuple(members) for name, members in data["bonds"].items()}
        values["xids"] = {int(code): Action(word) for code, word in data["xids"].items()}
        return cls(**values)


def _tuples(data: dict[str, Any]) -> dict[str, Any]:
    """Lists turned back into tuples, which JSON does not have."""
    return {name: tuple(value) if isinstance(value, list) else value for name, value in data.items()}


_NESTED: dict[str, type] = {
    "ports": ExpectedPorts,
    "drives": ExpectedDrives,
    "addresses": ExpectedAddress,
    "mounts": ExpectedMount,
}

"""The parts of a node model; entries come from rackwright/catalog/ or the cluster file."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from enum import StrEnum
from itertools import pairwise
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from rackwright.model.options import Frozen
from rackwright.model.text import mistake
from rackwright.model.types import LinkKind, NetworkPurpose


class Source(Frozen):
    """Source of a figure and when it was read."""

    text: str = Field(min_length=8, description="Document and publisher, with a URL if there is one.")
    read: date = Field(description="Day it was read, YYYY-MM-DD.")


class Architecture(StrEnum):
    """GPU architectures, oldest first; drivers, kernel modules and CUDA depend on them."""

    VOLTA = "volta"
    TURING = "turing"
    AMPERE = "ampere"
    ADA = "ada"
    HOPPER = "hopper"
    BLACKWELL = "blackwell"
    CDNA3 = "cdna3"


class NvSwitch(StrEnum):
    """Where the switches of the NVLink domain are; determines which daemons a node needs."""

    NONE = "none"
    NODE = "node"
    """On the node's board: the node runs fabricmanager."""
    RACK = "rack"
    """In switch trays of the rack: the node runs IMEX and no fabricmanager."""


PciId = Annotated[str, Field(pattern=r"^[0-9a-f]{4}:[0-9a-f]{4}$")]
PciAddress = Annotated[str, Field(pattern=r"^[0-9a-f]{4}:[0-9a-f]{2}:[01][0-9a-f]\.[0-7]$")]
"""Vendor and device ID as lspci -n prints them, e.g. `10de:2330`."""


class Gpus(Frozen):
    """The GPUs of a node, all of one model. None: unknown."""

    model: str = Field(min_length=1)
    gres_type: str = Field(pattern=r"^[a-z0-9_-]+$")
    """Type= in Slurm's gres.conf, e.g. `h100`."""
    count: int = Field(ge=1, le=72)
    memory_mib: int = Field(ge=1024, le=1048576, description="Memory of one GPU in MiB.")
    architecture: Architecture | None = Field(
        default=None, description="Determines kernel modules, driver branches and CUDA."
    )
    compute_capability: str | None = Field(
        default=None,
        pattern=r"^[0-9]+\.[0-9]$",
        description="As nvidia-smi --query-gpu=compute_cap prints it, e.g. `10.3`; determines the first CUDA release.",
    )
    pci_ids: tuple[PciId, ...] = Field(default=(), description="PCI IDs of this GPU.")
    pci_addresses: tuple[PciAddress, ...] = Field(
        default=(),
        description="PCI address of each GPU in nvidia-smi order, e.g. `0001:00:00.0`; for NCCL's topology file. Empty: unknown.",
    )
    display_pci_id: PciId | None = Field(
        default=None,
        description="PCI ID of a display-only GPU: tools list it too, but it is neither counted nor checked.",
    )
    pcie_generation: int | None = Field(default=None, ge=3, le=7)
    pcie_width: int | None = Field(default=None, ge=1, le=16, description="Lanes.")
    nvlinks: int | None = Field(default=None, ge=0, le=64, description="NVLinks of one GPU; 0: none.")
    nvlink_generation: int | None = Field(default=None, ge=1, le=9)
    nvlink_gbs: int | None = Field(
        default=None, ge=0, le=10000, description="Nominal NVLink GB/s of one GPU, both directions together."
    )
    nvlink_domain: int | None = Field(default=None, ge=1, le=1152, description="GPUs in one NVLink domain.")
    nvswitch: NvSwitch | None = None
    power_watts: int | None = Field(default=None, ge=1, le=5000, description="Maximum power of one GPU.")
    mig: str | None = Field(default=None, description="Row in the table of MIG profiles.")
    minimum_driver: str | None = Field(
        default=None, pattern=r"^[0-9]+(\.[0-9]+)+$", description="First driver that supports this board."
    )


BLUEFIELD_3 = "BlueField-3"


class Nic(Frozen):
    """One network port; a fabric port has the rail that it is cabled to."""

    purpose: NetworkPurpose
    kind: LinkKind
    speed_gbps: int = Field(ge=1, le=1600, description="Gb/s (10^9 bits per second).")
    rail: int | None = Field(default=None, ge=0, le=63, description="Rail, counted from 0.")
    near_gpus: tuple[int, ...] = Field(
        default=(),
        description="GPUs behind the same PCIe switch, in nvidia-smi order; empty: unknown.",
    )
    model: str | None = Field(
        default=None, min_length=1, description="Card model, e.g. `ConnectX-7`, `BlueField-3`."
    )
    mode: Literal["nic", "dpu"] | None = Field(
        default=None,
        description="BlueField-3 mode that `rackwright health` expects: `nic`, the Arm cores are off and it acts as a "
        "ConnectX; `dpu`, they own the ports. None: not compared.",
    )


class Nvme(Frozen):
    """A set of identical NVMe drives."""

    count: int = Field(ge=1, le=64)
    size_gb: int = Field(ge=1, le=262144, description="GB (10^9 bytes) of one drive.")
    use: str = "scratch"
    slots: tuple[PciAddress, ...] = Field(
        default=(),
        description="PCI address of each drive, e.g. `0000:05:00.0`, which the role storage_layout uses to find them "
        "(`sku_disks`). Empty: unknown.",
    )

    @model_validator(mode="after")
    def _has_a_slot_each(self) -> Self:
        if self.slots and (len(self.slots) != self.count or len(set(self.slots)) != self.count):
            raise mistake(
                f"`slots` has {len(set(self.slots))} addresses, but there are {self.count} drives.",
                "`lspci -Dnn -d ::0108` lists the addresses of NVMe drives",
            )
        return self


class BusbwFloor(Frozen):
    """Minimum all-reduce bus bandwidth of a healthy set of nodes."""

    nodes_min: int = Field(default=1, ge=1)
    nodes_max: int | None = Field(default=None, ge=1, description="None: any number.")
    busbw_gbs: float = Field(gt=0, le=10000)
    """GB/s (10^9 bytes per second) at the largest message size."""
    source: Source


class Metric(StrEnum):
    """What a floor measures; the name ends in the unit."""

    IB_WRITE_GBPS = "ib_write_gbps"
    """ib_write_bw of one port, one direction, Gb/s (10^9 bits per second)."""
    H2D_GBS = "h2d_gbs"
    """Host to device, one GPU, pinned memory, GB/s (10^9 bytes per second)."""
    D2H_GBS = "d2h_gbs"
    """Device to host, as above."""
    GEMM_BF16_TFLOPS = "gemm_bf16_tflops"
    """Dense bf16 matrix product on one GPU, TFLOPS."""
    DCGM_LEVEL = "dcgm_level"
    """Level of `dcgmi diag -r` that a node passes before it takes jobs."""


class Floor(Frozen):
    """Minimum of a metric on a healthy node of this model."""

    metric: Metric
    floor: float = Field(gt=0)
    source: Source


class Published(Frozen):
    """A derived or disputed figure: the published values, the chosen one and the reason."""

    field: str
    values: tuple[str, ...] = Field(min_length=1)
    chosen: str
    reason: str


class SkuEntry(Frozen):
    """A node model in the catalogue or a cluster file, without its name."""

    vendor: str = Field(min_length=1)
    description: str = Field(min_length=1)
    sockets: int = Field(ge=1, le=16)
    cores_per_socket: int = Field(ge=1, le=512, description="Physical cores.")
    threads_per_core: int = Field(ge=1, le=8)
    memory_mib: int = Field(ge=256, le=67108864, description="Installed memory.")
    product: str | None = Field(default=None, description="Product name, e.g. `HGX B200`.")
    cpu_model: str | None = None
    cpu_architecture: Literal["x86_64", "aarch64"] = "x86_64"
    numa_nodes: int | None = Field(default=None, ge=1, le=64, description="NUMA nodes as delivered.")
    power_watts: int | None = Field(default=None, ge=1, le=200000, description="Maximum power of the node.")
    rack_units: int | None = Field(
        default=None, ge=1, le=60, description="Height in a rack, in units of 1.75 inches."
    )
    keeps_acs: bool = Field(
        default=False,
        description="Whether the vendor sets the ACS control bits of PCIe bridges individually, for ATS, so that clearing "
        "all of them would be wrong.",
    )
    host_varies: bool = Field(
        default=False,
        description="The board has a source; CPUs, memory, ports and drives are an example and differ by vendor.",
    )
    gpus: Gpus | None = None
    gpu_sockets: tuple[Annotated[int, Field(ge=0, le=15)], ...] = Field(
        default=(),
        description="CPU socket of each GPU, in the order of /dev/nvidiaN; empty: unknown.",
    )
    nics: tuple[Nic, ...] = ()
    nvme: tuple[Nvme, ...] = ()
    busbw_floors: tuple[BusbwFloor, ...] = ()
    floors: tuple[Floor, ...] = ()
    sources: tuple[Source, ...] = Field(min_length=1)
    published: tuple[Published, ...] = ()

    @property
    def cpus(self) -> int:
        """Hardware threads, as Slurm's CPUs= counts them."""
        return self.sockets * self.cores_per_socket * self.threads_per_core

    @property
    def rails(self) -> int:
        """Number of fabric rails the ports are cabled to."""
        return len({nic.rail for nic in self.nics if nic.rail is not None})

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        for message in self._contradictions():
            raise mistake(message)
        return self

    def floor(self, metric: Metric) -> Floor | None:
        """The floor of a metric; None if unknown."""
        return next((floor for floor in self.floors if floor.metric is metric), None)

    def _contradictions(self) -> Iterator[str]:
        if len({floor.metric for floor in self.floors}) != len(self.floors):
            yield "Two floors for the same metric."
        yield from self._socket_mistakes()
        if self.gpus is not None and self.gpus.pci_addresses:
            places = self.gpus.pci_addresses
            if len(places) != self.gpus.count or len(set(places)) != len(places):
                yield f"`pci_addresses` has {len(set(places))} addresses, but the node has {self.gpus.count} GPUs."
        if self.gpus is not None and any(
            gpu >= self.gpus.count for nic in self.nics for gpu in nic.near_gpus
        ):
            yield f"`near_gpus` names a GPU that does not exist; the node has {self.gpus.count}."
        for nic in self.nics:
            if nic.mode is not None and nic.model != BLUEFIELD_3:
                yield f"Only a {BLUEFIELD_3} has a `mode`; the model of the port is {nic.model or 'not declared'}."
        fabric = [nic.rail for nic in self.nics if nic.purpose is NetworkPurpose.FABRIC]
        if any(nic.rail is not None for nic in self.nics if nic.purpose is not NetworkPurpose.FABRIC):
            yield "Only fabric ports can have a rail."
        rails = [rail for rail in fabric if rail is not None]
        if rails and len(rails) != len(fabric):
            yield "Some fabric ports have a rail, but others have none."
        if rails and sorted(set(rails)) != list(range(max(rails) + 1)):
            yield f"The rails are numbered 0 to {max(rails)}, but some of them have no port."
        floors = sorted(self.busbw_floors, key=lambda floor: floor.nodes_min)
        for floor in floors:
            if floor.nodes_max is not None and floor.nodes_max < floor.nodes_min:
                yield f"A bandwidth floor has an empty range: {floor.nodes_min} to {floor.nodes_max} nodes."
        for lower, upper in pairwise(floors):
            if lower.nodes_max is None or lower.nodes_max >= upper.nodes_min:
                yield f"Two bandwidth floors cover {upper.nodes_min} nodes."

    def _socket_mistakes(self) -> Iterator[str]:
        gpus = self.gpus.count if self.gpus is not None else 0
        if self.gpu_sockets and len(self.gpu_sockets) != gpus:
            yield f"`gpu_sockets` has {len(self.gpu_sockets)} entries, but the node has {gpus} GPUs."
        if self.gpu_sockets and max(self.gpu_sockets) >= self.sockets:
            yield f"`gpu_sockets` names socket {max(self.gpu_sockets)}, but the node has {self.sockets}, counted from 0."


class Sku(SkuEntry):
    """One node model."""

    name: str

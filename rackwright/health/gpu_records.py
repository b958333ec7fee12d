"""Sections about GPUs, NVLink and PCI, as the checks read them."""

from __future__ import annotations

from rackwright.health.records import (
    Record,
    Unreadable,
    counts,
    counts_or_none,
    flag,
    many,
    one,
    real,
    real_or_none,
    whole,
    whole_or_none,
    word,
    word_or_none,
    words,
)


class GpuMemory(Record):
    total_mib: int = whole()
    used_mib: int = whole()
    bar1_mib: int = whole()


class EccCounts(Record):
    sram_uncorrectable: int = whole()
    dram_uncorrectable: int = whole()
    sram_correctable: int = whole()
    dram_correctable: int = whole()


class Ecc(Record):
    current: bool = flag()
    pending: bool = flag()
    volatile: EccCounts = one(EccCounts)
    aggregate: EccCounts = one(EccCounts)
    sram_threshold_exceeded: bool = flag()
    channel_repair_pending: bool = flag()
    tpc_repair_pending: bool = flag()
    unrepairable_memory: bool = flag()


class RemappedRows(Record):
    correctable: int = whole()
    uncorrectable: int = whole()
    pending: bool = flag()
    failure: bool = flag()


class RetiredPages(Record):
    single_bit: int = whole()
    double_bit: int = whole()
    pending: bool = flag()


class GpuPcie(Record):
    gen: int = whole()
    gen_max: int = whole()
    width: int = whole()
    width_max: int = whole()
    replays: int = whole()


class Temperature(Record):
    gpu_c: int = whole()
    slowdown_c: int | None = whole_or_none()
    margin_c: int | None = whole_or_none()
    memory_c: int = whole()
    memory_max_c: int | None = whole_or_none()


class Power(Record):
    draw_w: float = real()
    limit_w: float = real()
    default_w: float = real()


class Clocks(Record):
    sm_mhz: int = whole()
    sm_max_mhz: int = whole()
    memory_mhz: int = whole()
    memory_max_mhz: int = whole()


class Throttle(Record):
    hw_slowdown: bool = flag()
    hw_thermal_slowdown: bool = flag()
    hw_power_brake_slowdown: bool = flag()
    sw_thermal_slowdown: bool = flag()
    sw_power_cap: bool = flag()
    applications_clocks_setting: bool = flag()


class Mig(Record):
    current: bool = flag()
    pending: bool = flag()
    instances: int = whole()
    profiles: list[str] = words()


class Fabric(Record):
    state: str = word()
    status: str = word()
    clique: str = word()
    cluster: str = word()
    bandwidth: str = word()
    summary: str = word()


class Process(Record):
    pid: int = whole()


class Gpu(Record):
    index: int = whole()
    address: str = word()
    name: str = word()
    pci_id: str = word()
    lost: bool = flag()
    uuid: str = word()
    vbios: str = word()
    inforom: str | None = word_or_none()
    inforom_corrupted: bool = flag()
    gsp: str = word()
    persistence: bool = flag()
    compute_mode: str = word()
    pstate: str = word()
    recovery_action: str | None = word_or_none()
    reset_required: bool = flag()
    memory: GpuMemory = one(GpuMemory)
    ecc: Ecc = one(Ecc)
    remapped: RemappedRows = one(RemappedRows)
    retired: RetiredPages = one(RetiredPages)
    pcie: GpuPcie = one(GpuPcie)
    temperature: Temperature = one(Temperature)
    power: Power = one(Power)
    clocks: Clocks = one(Clocks)
    throttle: Throttle = one(Throttle)
    mig: Mig = one(Mig)
    fabric: Fabric = one(Fabric)
    utilization: int = whole()
    processes: list[Process] = many(Process)

    @property
    def label(self) -> str:
        """GPU 3 (0000:5d:00.0)."""
        return f"GPU {self.index} ({self.address})"


class GpuSection(Record):
    driver_version: str = word()
    attached: int = whole()
    gpus: list[Gpu] = many(Gpu, most=128)
    said: str | None = word_or_none()
    """What nvidia-smi prints around its document."""

    def some(self) -> list[Gpu]:
        """Every GPU; Unreadable if there is none."""
        found = self.gpus
        if not found:
            raise Unreadable("nvidia-smi lists no GPU")
        return found


class Link(Record):
    link: int = whole()
    gb_per_s: float | None = real_or_none()


class GpuLinks(Record):
    """Links and counters of a GPU; the text is nvidia-smi's in place of links."""

    index: int = whole()
    said: str | None = word_or_none()
    links: list[Link] = many(Link)
    errors: dict[str, int] | None = counts_or_none()


class NvlinkSection(Record):
    gpus: list[GpuLinks] = many(GpuLinks, most=128)
    errors_why: str | None = word_or_none()


class TopologySection(Record):
    """The matrix of `nvidia-smi topo -m`."""

    __slots__ = ()

    @property
    def matrix(self) -> dict[str, dict[str, str]]:
        """Kind of path by pair."""
        table = self._data.get("matrix")
        if not isinstance(table, dict) or not table:
            raise Unreadable("topology.matrix is missing")
        for row in table.values():
            if not isinstance(row, dict) or not all(isinstance(cell, str) for cell in row.values()):
                raise Unreadable("topology.matrix has an invalid row")
        return table

    _data: dict[str, dict[str, dict[str, str]]]


GPU_KINDS = {"10de": ("0302", "0300"), "1002": ("1200", "0380", "0302", "0300")}
"""PCI classes by vendor. AMD Instinct boards are processing accelerators (1200) or display controllers (0380)."""


class Aer(Record):
    correctable: int | None = whole_or_none()
    nonfatal: int | None = whole_or_none()
    fatal: int | None = whole_or_none()


class PciDevice(Record):
    address: str = word()
    vendor: str = word()
    device: str = word()
    driver: str | None = word_or_none()
    numa: int = whole()
    speed_gts: float = real()
    speed_max_gts: float = real()
    width: int = whole()
    width_max: int = whole()
    upstream: list[str] = words()
    """The bridges above it, the nearest last."""
    slot_speed_gts: float | None = real_or_none()
    slot_width: int | None = whole_or_none()
    aer: Aer = one(Aer)

    @property
    def kind(self) -> str:
        """The four hexadecimal digits of its class."""
        found = self._data.get("class")
        if not isinstance(found, str):
            raise Unreadable(f"{self.place}.class is missing")
        return found

    _data: dict[str, object]

    @property
    def is_gpu(self) -> bool:
        """3D or VGA controller of NVIDIA, display controller or accelerator of AMD."""
        return self.kind in GPU_KINDS.get(self.vendor, ())


class PciSection(Record):
    devices: list[PciDevice] = many(PciDevice)
    acs_redirecting: list[str] = words()
    acs_unread: list[str] = words()
    iommu: dict[str, int] = counts()
    nvidia_gpus: int = whole()
    nvswitches: int = whole()

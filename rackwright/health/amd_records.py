"""Sections about AMD GPUs, as the checks read them."""

from __future__ import annotations

from rackwright.health.records import Record, Unreadable, many, real, whole, whole_or_none, word


class AmdGpu(Record):
    """A GPU as amd-smi identifies it."""

    index: int = whole()
    address: str = word()
    name: str = word()
    pci_id: str = word()
    memory_mib: int = whole()
    width_max: int = whole()
    speed_max_gts: float = real()
    hotspot_limit_c: int = whole()
    memory_limit_c: int = whole()
    bad_page_threshold: int | None = whole_or_none()

    @property
    def label(self) -> str:
        """GPU 3 (0000:5d:00.0)."""
        return f"GPU {self.index} ({self.address})"


class AmdGpuSection(Record):
    gpus: list[AmdGpu] = many(AmdGpu, most=128)

    def whole_gpus(self) -> list[AmdGpu]:
        """One entry for each GPU: amd-smi lists the further partitions of one as functions 1 to 7 of its address."""
        return [gpu for gpu in self.gpus if gpu.address.endswith(".0")]


class AmdMetrics(Record):
    index: int = whole()
    hotspot_c: int = whole()
    memory_c: int = whole()
    width: int = whole()
    speed_gts: float = real()
    uncorrectable: int = whole()


class AmdMetricsSection(Record):
    gpus: list[AmdMetrics] = many(AmdMetrics, most=128)

    def of(self, gpu: AmdGpu) -> AmdMetrics:
        """The measurements of this GPU."""
        for one in self.gpus:
            if one.index == gpu.index:
                return one
        raise Unreadable(f"amd-smi metric does not list {gpu.label}")


class AmdBadPages(Record):
    index: int = whole()
    retired: int = whole()
    pending: int = whole()
    unreservable: int = whole()


class AmdBadPagesSection(Record):
    gpus: list[AmdBadPages] = many(AmdBadPages, most=128)

    def of(self, gpu: AmdGpu) -> AmdBadPages:
        """The bad pages of this GPU."""
        for one in self.gpus:
            if one.index == gpu.index:
                return one
        raise Unreadable(f"amd-smi bad-pages does not list {gpu.label}")


class AmdLink(Record):
    address: str = word()
    type: str = word()
    status: str = word()


class AmdLinks(Record):
    address: str = word()
    links: list[AmdLink] = many(AmdLink)


class AmdTopologySection(Record):
    gpus: list[AmdLinks] = many(AmdLinks, most=128)

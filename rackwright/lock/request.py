"""The GPU stack requested for one kind of node, what its package source offers, and what is chosen."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date

from rackwright.catalog.kernels import KernelArchive, KernelOffer, KernelTable
from rackwright.catalog.offers import DriverOffer, Modules, Offer, OfferTable, PackageTable
from rackwright.catalog.table_files import (
    cuda_table,
    driver_table,
    kernel_table,
    offer_table,
    package_table,
    pair_table,
    security_table,
)
from rackwright.catalog.tables import (
    ArchitectureRule,
    Capability,
    CudaTable,
    DriverTable,
    PairTable,
    SecurityTable,
    Table,
)
from rackwright.lock.index import Index
from rackwright.lock.source import kernels_of
from rackwright.model.gpu_stack import GpuStack
from rackwright.model.sku import Gpus, NvSwitch, Sku
from rackwright.osfamily.known import OsRelease


@dataclass(frozen=True)
class Tables:
    """The tables a lock is solved against."""

    drivers: DriverTable
    cuda: CudaTable
    security: SecurityTable
    pairs: PairTable
    offers: OfferTable
    packages: PackageTable
    kernels: KernelTable

    def dates(self) -> dict[str, date]:
        """The day each table was last read from its sources."""
        tables: dict[str, Table] = {
            "cuda": self.cuda,
            "drivers": self.drivers,
            "kernels": self.kernels,
            "offers": self.offers,
            "packages": self.packages,
            "pairs": self.pairs,
            "security": self.security,
        }
        read = {name: max(source.read for source in table.sources) for name, table in tables.items()}
        for name, rows in (("offers", self.offers.rows), ("kernels", self.kernels.rows)):
            read[name] = max(read[name], *(row.read for row in rows))
        return read


def shipped_tables() -> Tables:
    """The tables of this version of rackwright."""
    return Tables(
        driver_table(),
        cuda_table(),
        security_table(),
        pair_table(),
        offer_table(),
        package_table(),
        kernel_table(),
    )


@dataclass(frozen=True)
class StackRequest:
    """One kind of node: equal SKU, OS and package source."""

    sku: Sku
    gpus: Gpus
    os: OsRelease
    wanted: GpuStack
    tables: Tables
    index: Index
    offer: Offer | None
    """None: the tables do not list what this source has for this OS."""

    @property
    def product(self) -> str:
        """The product name of the node."""
        return self.sku.product or self.sku.name

    @property
    def rule(self) -> ArchitectureRule | None:
        """What the GPUs' architecture needs; None if the SKU does not declare it."""
        for rule in self.tables.drivers.architectures:
            if rule.architecture is self.gpus.architecture:
                return rule
        return None

    @property
    def needs_fabricmanager(self) -> bool:
        """NVSwitches on the node's own board."""
        return self.gpus.nvswitch is NvSwitch.NODE

    @property
    def needs_nvlsm(self) -> bool:
        """From NVLink generation 5 on, NVSwitches on the board need their own subnet manager."""
        return self.needs_fabricmanager and (self.gpus.nvlink_generation or 0) >= 5

    @property
    def needs_imex(self) -> bool:
        """An NVLink domain of several nodes."""
        return self.gpus.nvswitch is NvSwitch.RACK

    @property
    def minimum_driver(self) -> str | None:
        """The first driver that supports this board, if known."""
        known = self.gpus.minimum_driver or (self.capability.first_driver if self.capability else None)
        return known or (self.rule.first_driver if self.rule else None)

    @property
    def capability(self) -> Capability | None:
        """What the GPUs' compute capability needs; None if the SKU or the table lacks it."""
        rows = self.tables.cuda.capabilities
        return next((row for row in rows if row.capability == self.gpus.compute_capability), None)

    @property
    def minimum_cuda(self) -> str | None:
        """The first CUDA release that compiles for these GPUs, if known."""
        known = None if self.capability is None else self.capability.first_cuda
        return known or (self.rule.first_cuda if self.rule else None)

    @property
    def archive(self) -> KernelArchive | None:
        """Kernels of the OS's own archive that the tables list."""
        for row in self.tables.kernels.rows:
            if self.os in row.os and row.cpu == self.sku.cpu_architecture:
                return row
        return None

    @property
    def indexed_kernels(self) -> tuple[KernelOffer, ...]:
        """Usual kernels that the package indexes list; (): no index of the OS's archive was read."""
        return kernels_of(self.index, self.os, self.sku.cpu_architecture)

    @property
    def index_has_stack(self) -> bool:
        """Whether the package indexes are the driver source's, and not only the OS archive's."""
        return self.offer is not None and self.offer.indexed


@dataclass(frozen=True)
class Choice:
    """One version of everything. None: left out, or not available; the refusals state which."""

    modules: Modules
    driver: DriverOffer | None
    kernel: KernelOffer | None
    cuda: str | None
    dcgm: str | None
    container_toolkit: str | None
    nccl: str | None
    doca: str | None
    imex: bool
    driver_major: int | None
    """The CUDA major version that the driver supports, independent of the toolkit."""

    @property
    def cuda_major(self) -> int | None:
        """The major of the CUDA toolkit, or else of what the driver brings."""
        return self.driver_major if self.cuda is None else int(self.cuda.split(".")[0])

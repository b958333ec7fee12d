"""What a package source offers for an OS release; the lock chooses only from these."""

from __future__ import annotations

from datetime import date
from typing import Literal

from pydantic import Field

from rackwright.catalog.tables import Table, Version
from rackwright.model.options import Frozen
from rackwright.model.sku import Source
from rackwright.osfamily.known import OsFamily, OsRelease

Modules = Literal["open", "proprietary"]


class DriverOffer(Frozen):
    """One driver version, with the kernel modules that exist at it."""

    version: Version
    revision: str | None = Field(
        default=None, description="Package version, exact; None: known from an index only."
    )
    modules: tuple[Modules, ...] = Field(min_length=1)
    flavour: Literal["current", "tesla-535"] = Field(
        default="current", description="Debian's package family."
    )
    suite: str | None = None
    default: bool = Field(default=True, description="False: only if the cluster file requests it.")

    @property
    def branch(self) -> str:
        """The driver branch, e.g. `580`."""
        return self.version.split(".")[0]


class Offer(Frozen):
    """What one source carries for some OS releases. None: not known; false: known not to be there."""

    source: Literal["nvidia", "distribution", "mirror"]
    name: str = Field(description="Its name in messages, e.g. `Debian's own repository`.")
    os: tuple[OsRelease, ...] = Field(min_length=1)
    whole: bool = Field(
        default=False,
        description="Whether the source itself was read, as a package index. False: public pages that name "
        "packages of it, so that what they do not name may be there all the same.",
    )
    indexed: bool = Field(
        default=False, description="Whether the cluster file's package indexes describe it."
    )
    drivers: tuple[DriverOffer, ...]
    fabricmanager: bool | None = None
    imex: bool | None = None
    nvlsm: bool | None = None
    dcgm: tuple[str, ...] | None = Field(default=None, description="Versions of DCGM 4; (): none there.")
    container_toolkit: tuple[str, ...] | None = None
    cuda: dict[str, str] | None = Field(default=None, description="Release to package version or pattern.")
    nccl: tuple[str, ...] | None = None
    nccl_revision: str | None = Field(default=None, description="NCCL's package version; None: not known.")
    persistenced: str | None = Field(default=None, description="Own package version; None: the driver's.")
    doca: tuple[str, ...] | None = Field(default=None, description="DOCA-Host releases for these systems.")
    sources: tuple[Source, ...] = Field(min_length=1)

    @property
    def read(self) -> date:
        """The day it was last read."""
        return max(source.read for source in self.sources)


class OfferTable(Table):
    """Every known offer, and the defaults for what the cluster file leaves out."""

    default_dcgm: str
    default_container_toolkit: str
    default_nccl: str
    default_doca: str
    doca_dkms_from: Version = Field(description="From here on kernel modules are built by DKMS, unsigned.")
    rows: tuple[Offer, ...]


class ComponentNames(Frozen):
    """Package names of one component on one family and source; {kernel} and the like are filled in."""

    component: str
    family: OsFamily
    source: Literal["nvidia", "distribution"]
    modules: Modules | None = Field(default=None, description="None: the same for both.")
    flavour: str | None = None
    branches_from: int | None = Field(default=None, description="From this driver branch on.")
    branches_until: int | None = Field(default=None, description="Up to and with this driver branch.")
    cpu: Literal["x86_64", "aarch64"] | None = None
    os: tuple[OsRelease, ...] = Field(default=(), description="(): every release of the family.")
    optional: bool = Field(default=False, description="Not every kernel has them.")
    packages: tuple[str, ...] = Field(min_length=1)


class PackageTable(Table):
    """Package names."""

    rows: tuple[ComponentNames, ...]

"""What the shared tables hold: XIDs, MIG, driver branches, CUDA, security, package offers, known pairs.

The data are in rackwright/catalog/tables/*.yaml, one file per table; rackwright.catalog.table_files
reads each on first use, so that a command reads only the tables it needs.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field

from rackwright.model.options import Frozen
from rackwright.model.sku import Architecture, Source
from rackwright.osfamily.known import OsRelease

Version = Annotated[str, Field(pattern=r"^[0-9]+(\.[0-9]+)*$")]
"""An upstream version: numbers and dots."""


class Table(Frozen):
    """A table with its sources; rows may have their own."""

    about: str = Field(min_length=8)
    sources: tuple[Source, ...] = Field(min_length=1)


class XidAction(StrEnum):
    """What the operator or the drain logic does after an XID."""

    NONE = "none"
    RESTART_JOB = "restart-job"
    FOLLOW_OTHER = "follow-other"
    """Look at the XID it came with."""
    RESET_GPU = "reset-gpu"
    REBOOT = "reboot"
    CHECK_CABLES = "check-cables"
    UPDATE_FIRMWARE = "update-firmware"
    INVESTIGATE = "investigate"
    """The vendor's workflow decides; drain until an operator has investigated."""
    OBEY_TEXT = "obey-text"
    """The kernel's line names the action."""


class Xid(Frozen):
    """One GPU error number of the NVIDIA driver."""

    code: int = Field(ge=1, le=999)
    meaning: str = Field(min_length=3)
    action: XidAction
    drain: bool = Field(description="Whether no new job may start on the node.")
    vendor: str | None = Field(
        default=None, description="Immediate action in NVIDIA's catalogue; None: empty."
    )
    published: tuple[str, ...] = Field(default=(), description="What others do, where they differ.")
    reason: str | None = Field(default=None, description="Why this action, where sources differ.")


class XidTable(Table):
    """Every XID with a meaning; numbers that are not listed are not known."""

    rows: tuple[Xid, ...]


class MigProfile(Frozen):
    """One way to partition a GPU, and how often it fits."""

    name: str = Field(pattern=r"^[1-7]g\.[0-9]+gb(\+me)?$")
    most: int = Field(ge=1, le=7)


class MigGpu(Frozen):
    """The profiles of one kind of GPU."""

    gpu: str = Field(pattern=r"^[a-z0-9-]+$")
    pci_ids: tuple[str, ...] = Field(min_length=1)
    profiles: tuple[MigProfile, ...] = Field(min_length=1)
    balanced: dict[str, int] | None = Field(
        default=None, description="The usual mixed layout of one GPU; None: none is published."
    )


class MigTable(Table):
    """MIG profiles by GPU."""

    rows: tuple[MigGpu, ...]


class Branch(Frozen):
    """One driver branch."""

    branch: str = Field(pattern=r"^[0-9]{3}$")
    kind: Literal["long-term", "production", "new-feature", "unknown"]
    end_of_life: str | None = Field(
        default=None, pattern=r"^[0-9]{4}-[0-9]{2}$", description="Month; None: not known."
    )
    cuda: str | None = Field(default=None, description="CUDA release it came with; None: not known.")
    note: str | None = None


class ArchitectureRule(Frozen):
    """What the GPUs of one architecture need from the stack."""

    architecture: Architecture
    modules: tuple[Literal["open", "proprietary"], ...]
    first_driver: Version | None = None
    first_cuda: Version | None = Field(
        default=None, description="First CUDA release that compiles for any GPU of it; None: not known."
    )
    last_branch: str | None = Field(
        default=None, description="Last branch that supports it; None: no end known."
    )
    last_cuda_major: int | None = None
    sources: tuple[Source, ...] = Field(min_length=1)


class DriverTable(Table):
    """Driver branches, and what each GPU architecture needs."""

    default_branch: str
    default_reason: str
    rows: tuple[Branch, ...]
    architectures: tuple[ArchitectureRule, ...]


class CudaRelease(Frozen):
    """One CUDA toolkit release."""

    release: str = Field(pattern=r"^[0-9]+\.[0-9]+$", description="Major and minor, e.g. `13.0`.")
    update: int = Field(default=0, ge=0)
    driver: Version = Field(description="Driver it came with (x86_64 Linux).")
    published: tuple[str, ...] = ()


class CudaMajor(Frozen):
    """The driver every release of one major runs on (minor-version compatibility)."""

    major: int
    driver: Version


class Capability(Frozen):
    """What GPUs of one compute capability need, where it is more than their architecture needs."""

    capability: str = Field(pattern=r"^[0-9]+\.[0-9]$")
    first_cuda: Version = Field(description="First CUDA release that compiles for it.")
    first_driver: Version | None = Field(
        default=None, description="First driver with a GPU of it; None: not known."
    )


class CudaTable(Table):
    """CUDA releases and the drivers they need."""

    floors: tuple[CudaMajor, ...]
    capabilities: tuple[Capability, ...]
    rows: tuple[CudaRelease, ...]


class Minimum(Frozen):
    """The first version of one component without known holes, in one branch where it has branches."""

    component: str
    branch: str | None = None
    version: str
    advisory: str
    source: Source


class SecurityTable(Table):
    """Minimum-security versions: dated data that a site has to renew."""

    rows: tuple[Minimum, ...]


class Pair(Frozen):
    """Whether a driver package is known to build against kernel headers."""

    os: OsRelease
    package: str
    revision: str
    kernel: str = Field(
        description="Upstream version of the kernel whose headers were used, e.g. `6.12.107`."
    )
    builds: bool
    evidence: Literal["built", "sources"] = Field(
        description="built: a real build; sources: the headers and the module's source contradict each other."
    )
    words: str
    source: Source


class PairTable(Table):
    """Known good and known bad pairs; what is not listed is not known."""

    rows: tuple[Pair, ...]

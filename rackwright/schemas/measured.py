"""Documents of what was verified and measured: verify, burn-in, storage, fabric, acceptance."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from rackwright.burnin.alone import GpuFigure
from rackwright.burnin.copies import CopyFigure
from rackwright.burnin.floors import Floor
from rackwright.burnin.pairs import PairFigure, Triage
from rackwright.burnin.per_node import NodeFigure
from rackwright.burnin.port_output import LatencyFigure, PortFigure
from rackwright.burnin.report import Previous
from rackwright.burnin.scopes import ScopeFigure
from rackwright.burnin.soak import Soak
from rackwright.burnin.table import Row
from rackwright.claims.check import CheckResult
from rackwright.schemas.base import ClusterName, Document, ExitStatus, Finding, Open, Part, Sha256
from rackwright.status import Status
from rackwright.storage.report import Figure, NodeRates

Started = Field(description="UTC, ISO 8601.")


class Verify(Document):
    """`verify`: every result of every check on every node."""

    kind: Literal["rackwright.verify"]
    cluster: str = ClusterName
    file: str
    sha256: str = Sha256
    started: str = Started
    seconds: float
    status: Status
    exit_code: int = ExitStatus
    counts: dict[Status, int]
    nodes: tuple[str, ...]
    left_out: tuple[str, ...] = Field(description="Checks of the whole cluster that `--limit` left out.")
    results: tuple[CheckResult, ...]


class Collective(Part):
    """One collective."""

    collective: str
    status: Status
    findings: tuple[Finding, ...]
    rows: tuple[Row, ...]
    average_busbw_gbs: float | None
    hosts: tuple[str, ...]
    seconds: float
    output: str = Field(description="The end of what the program printed, unless it passed.")


class BurninGroup(Part):
    """Nodes of one SKU and MIG layout, measured together."""

    sku: str
    engine: str
    nodes: tuple[str, ...]
    ranks: int
    status: Status
    size: int | None = Field(description="Bytes of the message that is judged.")
    busbw_gbs: float | None
    floor: Floor | None
    findings: tuple[Finding, ...]
    measurements: tuple[Collective, ...]
    gemm: tuple[GpuFigure, ...]
    copies: tuple[CopyFigure, ...]
    ports: tuple[PortFigure, ...]
    latencies: tuple[LatencyFigure, ...]
    per_node: tuple[NodeFigure, ...]
    loopback: tuple[NodeFigure, ...]
    left_out: tuple[str, ...]
    pairs: tuple[PairFigure, ...]
    triage: Triage | None
    scopes: tuple[ScopeFigure, ...]
    culprits: dict[str, Any] | None = Field(
        description="The search for a culprit: `found`, `unresolved`, `runs`, ..."
    )
    soak: Soak | None
    versions: dict[str, str]
    previous: Previous | None


class Burnin(Document):
    """`burnin`: what each group of workers reached, against its floor."""

    kind: Literal["rackwright.burnin"]
    cluster: str = ClusterName
    file: str
    sha256: str = Sha256
    profile: str | None
    started: str = Started
    seconds: float
    status: Status
    exit_code: int = ExitStatus
    groups: tuple[BurninGroup, ...]


class ComparedGroup(Part):
    """The last burn-in of some nodes against earlier ones."""

    nodes: tuple[str, ...]
    engine: str
    versions: dict[str, str]
    started: str
    earlier_runs: int
    other_versions: int
    least_runs: int
    regressions: tuple[str, ...] = Field(description="Names of the series that fell by more than noise.")
    series: tuple[Open, ...]


class Compared(Document):
    """`burnin compare`: the last burn-in against earlier ones."""

    kind: Literal["rackwright.burnin.compare"]
    cluster: str = ClusterName
    groups: tuple[ComparedGroup, ...]


class BenchedFilesystem(Part):
    """One filesystem."""

    name: str
    kind: str
    purpose: str
    path: str
    status: Status
    nodes: tuple[str, ...]
    settings: dict[str, Any]
    mounted: str
    figures: tuple[Figure, ...]
    alone: tuple[NodeRates, ...]
    together: tuple[NodeRates, ...]
    checkpoint: Open | None
    versions: dict[str, str]
    findings: tuple[Finding, ...]


class Storage(Document):
    """`storage bench` and `storage checkpoint`: what each filesystem reached, against its floors."""

    kind: Literal["rackwright.storage"]
    what: Literal["bench", "checkpoint"]
    cluster: str = ClusterName
    file: str
    sha256: str = Sha256
    quick: bool
    started: str = Started
    seconds: float
    status: Status
    exit_code: int = ExitStatus
    filesystems: tuple[BenchedFilesystem, ...]


class DeclaredFilesystem(Open):
    """A filesystem as the cluster file has it, defaults filled in, and where it is measured."""

    name: str
    kind: str
    purpose: str
    measured_on: tuple[str, ...]
    not_measured: str | None = Field(description="Why it is out of scope; null: it is not.")


class StorageShow(Document):
    """`storage show`: the declared filesystems."""

    kind: Literal["rackwright.storage.show"]
    cluster: str = ClusterName
    filesystems: tuple[DeclaredFilesystem, ...]


class Switch(Part):
    """A leaf or a spine."""

    name: str
    level: Literal["leaf", "spine"]
    guid: str | None
    description: str | None
    firmware: str | None
    ports: int | None
    rails: tuple[int, ...]
    nodes: tuple[str, ...]
    node_ports: tuple[int, ...]
    ports_to: dict[str, tuple[int, ...]] = Field(description="Its ports by the switch at the other end.")
    in_place: int | None = Field(description="How many of its cables were found; null: not asked.")


class End(Part):
    """Where a cable ends: a node's rail, or a switch's port."""

    node: str | None = None
    rail: int | None = None
    switch: str | None = None
    port: int | None = None


class Cable(Part):
    """A declared cable."""

    near: End
    far: End
    speed_gbps: int | None
    lanes: int | None
    label: str | None
    declared: str = Field(description="Where in the cluster file.")
    in_place: bool | None = Field(description="null: not asked.")


class ShownFabric(Part):
    """The cabling of one network."""

    network: str
    kind: str
    rails: int
    leaves: tuple[str, ...]
    spines: tuple[str, ...]
    switches: tuple[Switch, ...]
    cables: tuple[Cable, ...]


class Fabric(Document):
    """`fabric show`: the declared cabling."""

    kind: Literal["rackwright.fabric"]
    cluster: str = ClusterName
    fabrics: tuple[ShownFabric, ...]


class FabricFinding(Part):
    """A cable, port or switch that is not as declared."""

    status: Status
    kind: str
    ends: tuple[str, ...]
    text: str


class CheckedFabric(Part):
    """The cabling of one network, compared."""

    network: str
    status: Status
    cables: int
    intact: int
    asked: tuple[str, ...]
    findings: tuple[FabricFinding, ...]


class FabricCheck(Document):
    """`fabric check`: the declared cabling compared with what is there."""

    kind: Literal["rackwright.fabric.check"]
    cluster: str = ClusterName
    exit_code: int = ExitStatus
    fabrics: tuple[CheckedFabric, ...]

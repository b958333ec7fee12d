"""The report of a burn-in."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any

from rackwright.boundary import printable
from rackwright.burnin.alone import GpuFigure
from rackwright.burnin.chase import Chased
from rackwright.burnin.copies import CopyFigure
from rackwright.burnin.finding import Finding
from rackwright.burnin.floors import Floor
from rackwright.burnin.measurement import Measurement, finding_json, finite
from rackwright.burnin.pairs import PairFigure, Triage
from rackwright.burnin.per_node import NodeFigure
from rackwright.burnin.port_output import LatencyFigure, PortFigure
from rackwright.burnin.scopes import ScopeFigure
from rackwright.burnin.soak import Soak
from rackwright.burnin.table import Row
from rackwright.claims.check import worst
from rackwright.errors import ExitCode
from rackwright.model.ranges import fold
from rackwright.status import Status

DOCUMENT_VERSION = 1


@dataclass(frozen=True)
class Previous:
    """The stored run this one is compared with."""

    started: str
    busbw_gbs: float
    change_percent: float


@dataclass(frozen=True)
class SkuGroup:
    """Nodes of one SKU and MIG layout, measured together and judged by one floor."""

    sku: str
    engine: str
    nodes: tuple[str, ...]
    ranks: int
    floor: Floor | None
    findings: tuple[Finding, ...]
    """Findings about the whole group: nodes that are not idle, a missed floor."""
    measurements: tuple[Measurement, ...] = ()
    gemm: tuple[GpuFigure, ...] = ()
    """Each GPU's matrix product, where the cluster file or the profile asks for it."""
    copies: tuple[CopyFigure, ...] = ()
    ports: tuple[PortFigure, ...] = ()
    latencies: tuple[LatencyFigure, ...] = ()
    """ib_read_lat, rail by rail."""
    per_node: tuple[NodeFigure, ...] = ()
    """Results of each node alone; empty if out of scope."""
    loopback: tuple[NodeFigure, ...] = ()
    """What each node reached alone through its network ports."""
    left_out: tuple[str, ...] = ()
    """Nodes that failed alone: the collectives ran without them."""
    pairs: tuple[PairFigure, ...] = ()
    triage: Triage | None = None
    scopes: tuple[ScopeFigure, ...] = ()
    """Units and their rails by themselves."""
    chased: Chased | None = None
    """The search for a culprit, where a floor was missed."""
    soak: Soak | None = None
    versions: dict[str, str] = field(default_factory=dict)
    previous: Previous | None = None

    @property
    def status(self) -> Status:
        """The worst of its findings and measurements; UNKNOWN if nothing was measured."""
        if not self.measurements:
            return worst(Counter(finding.status for finding in self.findings))
        statuses = [finding.status for finding in self.findings]
        return worst(Counter([*statuses, *(measured.status for measured in self.measurements)]))

    @property
    def scopes_failed(self) -> bool:
        """Whether a unit or a rail missed its floor by itself."""
        return any(figure.failed for figure in self.scopes)

    @property
    def row(self) -> Row | None:
        """The all-reduce row of the largest size."""
        table = self.measurements[0].table if self.measurements else None
        return table.largest if table is not None else None

    @property
    def all_findings(self) -> tuple[Finding, ...]:
        """Every finding, FAIL first; those of a collective begin with its name."""
        named = [*self.findings]
        for measured in self.measurements:
            named += [
                Finding(found.status, f"{measured.collective}: {found.text}") for found in measured.findings
            ]
        return tuple(sorted(named, key=lambda found: (found.status is not Status.FAIL, found.status)))

    def to_json(self) -> dict[str, Any]:
        """As plain JSON data."""
        row = self.row
        return {
            "sku": self.sku,
            "engine": self.engine,
            "nodes": list(self.nodes),
            "ranks": self.ranks,
            "status": self.status.value,
            "size": row.size if row is not None else None,
            "busbw_gbs": row.busbw_gbs if row is not None else None,
            "floor": asdict(self.floor) if self.floor is not None else None,
            "findings": [finding_json(finding) for finding in self.findings],
            "measurements": [measured.to_json() for measured in self.measurements],
            "gemm": [asdict(figure) for figure in self.gemm],
            "copies": [asdict(figure) for figure in self.copies],
            "ports": [asdict(figure) for figure in self.ports],
            "latencies": [asdict(figure) for figure in self.latencies],
            "per_node": [asdict(figure) for figure in self.per_node],
            "loopback": [asdict(figure) for figure in self.loopback],
            "left_out": list(self.left_out),
            "pairs": [asdict(figure) for figure in self.pairs],
            "triage": asdict(self.triage) if self.triage is not None else None,
            "scopes": [asdict(figure) for figure in self.scopes],
            "culprits": culprits_json(self.chased) if self.chased is not None else None,
            "soak": asdict(self.soak) if self.soak is not None else None,
            "versions": self.versions,
            "previous": asdict(self.previous) if self.previous is not None else None,
        }


@dataclass(frozen=True)
class BurninReport:
    """Every group of a burn-in."""

    cluster: str
    file: str
    sha256: str
    """Of the cluster file's bytes."""
    groups: tuple[SkuGroup, ...]
    started: datetime
    """UTC."""
    seconds: float
    profile: str | None = None
    """None: no profile was asked for."""

    @property
    def status(self) -> Status:
        """The worst of the groups."""
        return worst(Counter(group.status for group in self.groups))

    @property
    def exit_code(self) -> ExitCode:
        """Exit status: 0 clean, 3 a floor or a check failed, 4 something is UNKNOWN."""
        decided = {Status.FAIL: ExitCode.CHECK_FAILED, Status.UNKNOWN: ExitCode.UNKNOWN}
        return decided.get(self.status, ExitCode.CLEAN)

    @property
    def verdict(self) -> str:
        """One line: nodes, figures, status."""
        shown = []
        for group in self.groups:
            row = group.row
            figure = f"{row.busbw_gbs:g} GB/s at {row.size} B" if row is not None else "no figure"
            floor = f"floor {group.floor.busbw_gbs:g}" if group.floor is not None else "no floor"
            shown.append(f"{fold(group.nodes)} {figure} ({floor})")
        return f"burnin: {'; '.join(shown)}: {self.status.value}"

    def to_json(self) -> dict[str, Any]:
        """The versioned document that is stored and that `--json` prints."""
        return {
            "kind": "rackwright.burnin",
            "version": DOCUMENT_VERSION,
            "cluster": self.cluster,
            "file": self.file,
            "sha256": self.sha256,
            "profile": self.profile,
            "started": self.started.isoformat(timespec="seconds"),
            "seconds": round(self.seconds, 2),
            "status": self.status.value,
            "exit_code": int(self.exit_code),
            "groups": [finite(group.to_json()) for group in self.groups],
        }


def culprits_json(chased: Chased) -> dict[str, Any]:
    """The search as plain JSON data: what was found, and every run in its order."""
    found = chased.found
    return {
        "found": [
            {**asdict(one.culprit), "cables": list(one.cables), "evidence": list(one.evidence)}
            for one in chased.named
        ],
        "unresolved": [list(group) for group in found.unresolved],
        "stopped": found.stopped,
        "limit_gbs": found.limit,
        "runs": [
            {
                "number": step.number,
                "round": step.round,
                "kind": step.run.kind,
                "way": step.run.way,
                "nodes": fold(step.run.nodes),
                "busbw_gbs": step.reading.figure,
                "ports": [
                    {"nodes": list(pair), "rail": rail, "gbps": gbps}
                    for (pair, rail), gbps in sorted(step.reading.ports.items())
                ],
                "problem": printable(step.reading.problem, 200) if step.reading.problem else None,
                "slow": step.slow,
            }
            for step in found.steps
        ],
    }


def bytes_text(size: int) -> str:
    """A message size in the largest unit that divides it: 8 B, 64 MiB, 16 GiB."""
    for unit, factor in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if size >= factor and size % factor == 0:
            return f"{size // factor} {unit}"
    return f"{size} B"

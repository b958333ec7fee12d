"""The report of a storage bench."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any

from rackwright.burnin.finding import Finding
from rackwright.burnin.measurement import finding_json, finite
from rackwright.claims.check import worst
from rackwright.errors import ExitCode
from rackwright.model.ranges import fold
from rackwright.status import Status

DOCUMENT_VERSION = 1


@dataclass(frozen=True)
class Figure:
    """One figure that a floor can be declared for."""

    key: str
    """As in `floor`, e.g. `read_gbs`."""
    name: str
    """For people, e.g. `read, one node alone`."""
    unit: str
    value: float
    """Of nodes alone: the slowest one's."""
    floor: float | None = None
    node: str | None = None
    """The slowest node, where nodes were measured alone."""

    @property
    def under(self) -> bool:
        """Whether it misses its floor."""
        return self.floor is not None and self.value < self.floor


@dataclass(frozen=True)
class NodeRates:
    """What one node reached, GB/s; None: no sound figure."""

    node: str
    read_gbs: float | None = None
    write_gbs: float | None = None


@dataclass(frozen=True)
class CheckpointResult:
    """The checkpoint stage."""

    nodes: tuple[str, ...]
    ranks: int
    rank_bytes: int
    backend: str
    interval_seconds: float
    killed_rank: int
    torch: str = ""
    save_seconds: tuple[float, ...] = ()
    load_seconds: float | None = None
    loaded: str | None = None
    partial_bytes: int | None = None
    """What was in the save that did not end."""

    @property
    def seconds(self) -> float | None:
        """The slowest save."""
        return max(self.save_seconds, default=None)

    @property
    def save_gbs(self) -> float | None:
        """GB/s of the slowest save."""
        return self.ranks * self.rank_bytes / self.seconds / 1e9 if self.seconds else None

    @property
    def percent(self) -> float | None:
        """The slowest save as a share of the declared interval."""
        return 100 * self.seconds / self.interval_seconds if self.seconds is not None else None


@dataclass(frozen=True)
class FilesystemResult:
    """One filesystem."""

    name: str
    kind: str
    purpose: str
    path: str
    nodes: tuple[str, ...] = ()
    """Nodes that took part in the measurement of all together."""
    settings: dict[str, Any] = field(default_factory=dict)
    """What was written and how; runs with other settings are not compared."""
    figures: tuple[Figure, ...] = ()
    alone: tuple[NodeRates, ...] = ()
    together: tuple[NodeRates, ...] = ()
    checkpoint: CheckpointResult | None = None
    mounted: str = ""
    """Source and type on the first node."""
    versions: dict[str, str] = field(default_factory=dict)
    findings: tuple[Finding, ...] = ()

    @property
    def status(self) -> Status:
        """The worst of its findings; PASS where figures stand and nothing is against them."""
        measured = bool(self.figures) or self.checkpoint is not None
        statuses = [finding.status for finding in self.findings]
        if not measured and set(statuses) == {Status.OUT_OF_SCOPE}:
            return Status.OUT_OF_SCOPE
        return worst(Counter([*([Status.PASS] if measured else []), *statuses]))

    def figure(self, key: str) -> Figure | None:
        """A figure by its key."""
        return next((one for one in self.figures if one.key == key), None)

    def to_json(self) -> dict[str, Any]:
        """As plain JSON data."""
        one = self.checkpoint
        return {
            "name": self.name,
            "kind": self.kind,
            "purpose": self.purpose,
            "path": self.path,
            "status": self.status.value,
            "nodes": list(self.nodes),
            "settings": self.settings,
            "mounted": self.mounted,
            "figures": [asdict(figure) for figure in self.figures],
            "alone": [asdict(rates) for rates in self.alone],
            "together": [asdict(rates) for rates in self.together],
            "checkpoint": {**asdict(one), "save_gbs": one.save_gbs, "percent": one.percent}
            if one is not None
            else None,
            "versions": self.versions,
            "findings": [finding_json(finding) for finding in self.findings],
        }


@dataclass(frozen=True)
class BenchReport:
    """Every filesystem of a bench."""

    cluster: str
    file: str
    sha256: str
    """Of the cluster file's bytes."""
    results: tuple[FilesystemResult, ...]
    started: datetime
    """UTC."""
    seconds: float
    quick: bool = False
    what: str = "bench"
    """`bench` or `checkpoint`."""

    @property
    def status(self) -> Status:
        """The worst of the filesystems; those out of scope do not count beside others."""
        statuses = Counter(result.status for result in self.results)
        if set(statuses) == {Status.OUT_OF_SCOPE}:
            return Status.OUT_OF_SCOPE
        return worst(statuses)

    @property
    def exit_code(self) -> ExitCode:
        """Exit status: 0 clean, 3 a floor is missed or data was wrong, 4 something is UNKNOWN."""
        decided = {Status.FAIL: ExitCode.CHECK_FAILED, Status.UNKNOWN: ExitCode.UNKNOWN}
        return decided.get(self.status, ExitCode.CLEAN)

    @property
    def verdict(self) -> str:
        """One line: each filesystem with its figures, and the status."""
        shown = [f"{one.name} {self._figures(one)}" for one in self.results]
        return f"storage {self.what}: {'; '.join(shown) or 'nothing declared'}: {self.status.value}"

    def _figures(self, one: FilesystemResult) -> str:
        keys = ("together_read_gbs", "together_write_gbs", "read_gbs", "write_gbs")
        found = [figure for key in keys if (figure := one.figure(key)) is not None][:2]
        words = [f"{figure.name} {figure.value:.3g} {figure.unit}" for figure in found]
        if one.checkpoint is not None and one.checkpoint.seconds is not None:
            words.append(f"a save takes {one.checkpoint.seconds:.3g} s")
        return f"on {fold(one.nodes)}: {', '.join(words)}" if words else one.status.value

    def to_json(self) -> dict[str, Any]:
        """The versioned document that is stored and that `--json` prints."""
        document = {
            "kind": "rackwright.storage",
            "version": DOCUMENT_VERSION,
            "what": self.what,
            "cluster": self.cluster,
            "file": self.file,
            "sha256": self.sha256,
            "quick": self.quick,
            "started": self.started.isoformat(timespec="seconds"),
            "seconds": round(self.seconds, 2),
            "status": self.status.value,
            "exit_code": int(self.exit_code),
            "filesystems": [result.to_json() for result in self.results],
        }
        found: dict[str, Any] = finite(document)
        return found

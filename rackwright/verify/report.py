"""What a verify run found."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from rackwright.claims.check import CheckResult, worst
from rackwright.errors import ExitCode
from rackwright.model.ranges import fold
from rackwright.result_store import LatestResult
from rackwright.status import Status

DOCUMENT_VERSION = 1
LATEST = LatestResult("verify")
"""Of the whole cluster, with all checks."""
COUNTED = tuple(status for status in Status if status is not Status.DISABLED)
SEVERITY = (Status.FAIL, Status.UNKNOWN, Status.WARN, Status.PASS, Status.OUT_OF_SCOPE)
"""Worst first."""


@dataclass(frozen=True)
class VerifyReport:
    """Every result of a run, ordered by role, check (as the role lists them) and node."""

    cluster: str
    file: str
    sha256: str
    """Of the cluster file's bytes."""
    nodes: tuple[str, ...]
    results: tuple[CheckResult, ...]
    left_out: tuple[str, ...]
    """Cluster-wide checks a `--limit` without the primary head left out."""
    started: datetime
    """UTC."""
    seconds: float

    @property
    def counts(self) -> dict[Status, int]:
        """How many results there are of each status, all five always present."""
        counted = Counter(result.status for result in self.results)
        return {status: counted[status] for status in COUNTED}

    @property
    def status(self) -> Status:
        """The status that decides; UNKNOWN when nothing was checked."""
        return worst(self.counts)

    @property
    def exit_code(self) -> ExitCode:
        """0 clean, 3 a check failed, 4 something is unknown."""
        decided = {Status.FAIL: ExitCode.CHECK_FAILED, Status.UNKNOWN: ExitCode.UNKNOWN}
        return decided.get(self.status, ExitCode.CLEAN)

    @property
    def verdict(self) -> str:
        """The summary line."""
        counts = self.counts
        words = ", ".join(f"{counts[status]} {status.value.lower()}" for status in COUNTED)
        return f"verify: {_number(len(self.nodes), 'node')}, {_number(len(self.results), 'check')}: {words}"

    def remember(self) -> str | None:
        """Store when it ended and its counts for `rackwright metrics`; the reason if that fails, or None."""
        counts = {status.value: count for status, count in self.counts.items()}
        return LATEST.put(
            self.cluster, {"ended": round(self.started.timestamp() + self.seconds, 3), "counts": counts}
        )

    def to_json(self) -> dict[str, Any]:
        """The versioned document behind `--json`."""
        return {
            "kind": "rackwright.verify",
            "version": DOCUMENT_VERSION,
            "cluster": self.cluster,
            "file": self.file,
            "sha256": self.sha256,
            "started": self.started.isoformat(timespec="seconds"),
            "seconds": round(self.seconds, 2),
            "status": self.status.value,
            "exit_code": int(self.exit_code),
            "counts": {status.value: count for status, count in self.counts.items()},
            "nodes": list(self.nodes),
            "left_out": list(self.left_out),
            "results": [asdict(result) for result in self.results],
        }


def folded(results: Sequence[CheckResult]) -> list[tuple[CheckResult, str]]:
    """Results that differ only in the node as one result each, with a nodeset such as gpu[1-3]."""
    groups: dict[tuple[str, str, Status, str], list[CheckResult]] = defaultdict(list)
    for result in results:
        groups[(result.role, result.check, result.status, result.evidence)].append(result)
    return [(group[0], fold(result.node for result in group)) for group in groups.values()]


def _number(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"

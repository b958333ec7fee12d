"""One collective on some nodes, as it was measured and judged."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass, field
from typing import Any

from rackwright.burnin.finding import Finding
from rackwright.burnin.table import NcclTable
from rackwright.claims.check import worst
from rackwright.status import Status

_TAIL_CHARACTERS = 6000


@dataclass(frozen=True)
class Measurement:
    """One collective on all nodes of a group."""

    collective: str
    table: NcclTable | None
    """None: the program printed nothing that can be read."""
    findings: tuple[Finding, ...]
    output: str = field(repr=False, default="")
    """As it came back."""
    seconds: float = 0.0

    @property
    def status(self) -> Status:
        """PASS when there is a table and nothing was found against it."""
        if self.table is None and not self.findings:
            return Status.UNKNOWN
        return worst(Counter([Status.PASS, *(finding.status for finding in self.findings)]))

    def to_json(self) -> dict[str, Any]:
        """As plain JSON data; the end of the output is kept unless the run passed."""
        return {
            "collective": self.collective,
            "status": self.status.value,
            "findings": [finding_json(finding) for finding in self.findings],
            "rows": [asdict(row) for row in self.table.rows] if self.table is not None else [],
            "average_busbw_gbs": self.table.average_busbw_gbs if self.table is not None else None,
            "hosts": list(self.table.hosts) if self.table is not None else [],
            "seconds": round(self.seconds, 2),
            "output": "" if self.status is Status.PASS else self.output[-_TAIL_CHARACTERS:],
        }


def finding_json(finding: Finding) -> dict[str, str]:
    """A finding as plain JSON data."""
    return {"status": finding.status.value, "text": finding.text}

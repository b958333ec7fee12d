"""One collective on some nodes, as it was measured and judged."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import asdict, dataclass, field
from typing import Any

from rackwright.boundary import printable, printable_lines
from rackwright.burnin.finding import Finding
from rackwright.burnin.table import NcclTable
from rackwright.claims.check import worst
from rackwright.status import Status

_TAIL_CHARACTERS = 6000
_ROWS_MAX = 200
"""Sizes of one run: from 1 B to 2^64 B there are 65."""


@dataclass(frozen=True)
class Measurement:
    """One collective on all nodes of a group."""

    collective: str
    table: NcclTable | None
    """None: the output has no readable table."""
    findings: tuple[Finding, ...]
    output: str = field(repr=False, default="")
    """As it came back."""
    seconds: float = 0.0

    @property
    def status(self) -> Status:
        """PASS if there is a table without findings."""
        if self.table is None and not self.findings:
            return Status.UNKNOWN
        return worst(Counter([Status.PASS, *(finding.status for finding in self.findings)]))

    def to_json(self) -> dict[str, Any]:
        """As plain JSON data; the end of the output is kept unless the run passed."""
        return {
            "collective": self.collective,
            "status": self.status.value,
            "findings": [finding_json(finding) for finding in self.findings],
            "rows": [asdict(row) for row in self.table.rows[:_ROWS_MAX]] if self.table is not None else [],
            "average_busbw_gbs": self.table.average_busbw_gbs if self.table is not None else None,
            "hosts": [printable(host, 80) for host in self.table.hosts] if self.table is not None else [],
            "seconds": round(self.seconds, 2),
            "output": "" if self.status is Status.PASS else printable_lines(self.output[-_TAIL_CHARACTERS:]),
        }


def finite(value: Any) -> Any:  # noqa: ANN401 - plain data
    """The same with None for values that JSON cannot represent: a program prints nan if it measured nothing."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: finite(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [finite(one) for one in value]
    return value


def finding_json(finding: Finding) -> dict[str, str]:
    """A finding as plain JSON data."""
    return {"status": finding.status.value, "text": finding.text}

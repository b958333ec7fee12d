"""The kernel's XID, SXid and AER lines as pipelines of other programs find them: by the same patterns as the health check.

Go's and Java's regular expressions (RE2; Oniguruma in grok) know all that these patterns use.
"""

from __future__ import annotations

from typing import NamedTuple

from rackwright.health.probe.kernel_patterns import PATTERNS

KINDS = ("xid", "sxid", "aer_uncorrected", "aer_corrected")


class Complaint(NamedTuple):
    """One pattern; its groups are `pci`, `code`, `severity`, `source` and `rest`, as far as it has them."""

    kind: str
    pattern: str


COMPLAINTS = tuple(Complaint(kind, f"^{pattern}") for kind, pattern in PATTERNS if kind in KINDS)
"""The first that matches decides."""
FIELDS = {"device": "pci", "source": "source", "code": "code", "severity": "severity"}
"""Field of a line -> group of a pattern. An AER names the port in `pci`, and in `source` the device that failed."""

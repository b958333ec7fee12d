"""Loki labels and metadata of a line: written by Alloy on the nodes, read by `read_loki`. Standard library, Python 3.9."""

from __future__ import annotations

LABELS = ("node", "unit", "audit")
"""Few values each: every combination of them is a stream."""
METADATA = (
    "systemd_unit",
    "name",
    "pid",
    "uid",
    "priority",
    "facility",
    "kernel",
    "cgroup",
    "job",
    "kind",
    "device",
    "source",
    "code",
    "severity",
)
"""Structured metadata."""

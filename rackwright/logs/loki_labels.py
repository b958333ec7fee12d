"""What a line has in Loki: written by Alloy on the nodes, read by `read_loki`. Standard library, Python 3.9."""

from __future__ import annotations

LABELS = ("node", "unit", "audit")
"""Few values each: a stream for every combination of them."""
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

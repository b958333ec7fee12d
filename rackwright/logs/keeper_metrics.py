"""Metrics of the central journal and its keeper, for node_exporter. Standard library, Python 3.9."""

from __future__ import annotations

from typing import Any

from rackwright.logs.journal_files import journal_files

NAME = "rackwright_logs.prom"


def metrics(settings: dict[str, Any], ran_at: float, failed: bool, left_out: int) -> str:
    """Age of each node's lines, total size, and result of the keeper's last pass."""
    try:
        files = journal_files(settings["folder"], settings["sources"])
    except (OSError, ValueError):
        files = {}
    name = "rackwright_logs_newest_timestamp_seconds"
    lines = [f"# HELP {name} When the newest line of a node was written.", f"# TYPE {name} gauge"]
    for node in sorted(files):
        times = [one.times() for one in files[node]]
        newest = max((time[1] for time in times if time), default=None)
        if newest is not None:
            lines.append(f'{name}{{node="{node}"}} {newest:.3f}')
    gauges = {
        "bytes": ("Size of the central journal.", sum(one.size for found in files.values() for one in found)),
        "keeper_last_run_timestamp_seconds": ("When its keeper last ran.", round(ran_at, 3)),
        "keeper_failed": (
            "1 if the audit trail could not be copied whole, or its pass failed otherwise.",
            int(failed),
        ),
        "audit_left_out_entries": (
            "Entries of users that the keeper's last pass left out of the audit trail: a flood, or a full disk.",
            left_out,
        ),
    }
    for short, (about, value) in gauges.items():
        metric = f"rackwright_logs_{short}"
        lines += [f"# HELP {metric} {about}", f"# TYPE {metric} gauge", f"{metric} {value}"]
    return "\n".join(lines) + "\n"

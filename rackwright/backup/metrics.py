"""Metrics of backups, as text for node_exporter's textfile collector. Standard library only."""

from __future__ import annotations

from typing import Any

_GAUGES = {
    "last_success_timestamp_seconds": ("success", "When the newest backup started."),
    "last_attempt_timestamp_seconds": ("attempt", "When a backup last started, whether or not it succeeded."),
    "duration_seconds": ("seconds", "How long the newest backup took."),
    "size_bytes": ("size", "Size of the newest backup, compressed and encrypted."),
    "count": ("count", "Backups of this installation in the place."),
}


def text(cluster: str, node: str, last: dict[str, Any]) -> str:
    """All samples; a gauge without a value yet is left out."""
    labels = f'{{cluster="{cluster}",node="{node}"}}'
    lines = []
    for name, (key, about) in _GAUGES.items():
        if isinstance(last.get(key), (int, float)):
            metric = f"rackwright_backup_{name}"
            lines += [f"# HELP {metric} {about}", f"# TYPE {metric} gauge", f"{metric}{labels} {last[key]}"]
    failed = "rackwright_backup_failed"
    lines += [f"# HELP {failed} 1 if the last attempt failed.", f"# TYPE {failed} gauge"]
    lines.append(f"{failed}{labels} {int(bool(last.get('error')))}")
    return "\n".join(lines) + "\n"

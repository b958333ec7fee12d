"""A pass as text for node_exporter's textfile collector."""

from __future__ import annotations

from collections import Counter
from typing import Any

from rackwright.health.verdict import SEVERITY

_HELP = {
    "checks": "Results of the last pass by status.",
    "failed": "1 for each check that failed in the last pass.",
    "acts": "1 if the node acts on its verdict, 0 if it only observes.",
    "would_drain": "1 for each check that would drain the node if it did not only observe.",
    "drained": "1 if this node is drained by its health check.",
    "alert": "1 if the health check may not act and an operator has to decide.",
    "clean_passes": "Clean passes in a row.",
    "reboots_24h": "Reboots in the last 24 h.",
    "gpu_query_timestamp_seconds": "When the GPUs were last queried with nvidia-smi.",
    "last_pass_timestamp_seconds": "When the last pass ended.",
    "pass_duration_seconds": "How long it took.",
}


def _when(at: float | None) -> list[str]:
    return [f" {at:.3f}"] if at is not None else []


def metrics(last: dict[str, Any]) -> str:
    """The whole file, from the record of the last pass (`last.json`)."""
    memory, results = last["memory"], last["results"]
    counts = Counter(one["status"] for one in results)
    samples: dict[str, list[str]] = {
        "checks": [f'{{status="{status.value}"}} {counts[status.value]}' for status in SEVERITY],
        "failed": [
            f'{{check="{check}",action="{action}"}} 1'
            for check, action in sorted(
                {(one["check"], one["action"]) for one in results if one["status"] == "FAIL"}
            )
        ],
        "acts": [f" {int(last['policy']['act'])}"],
        "would_drain": [f'{{check="{check}"}} 1' for check in (last["would_drain"] or {}).get("checks", ())],
        "drained": [f" {int(memory['drained'])}"],
        "alert": [f" {int(memory['alert'] is not None)}"],
        "clean_passes": [f" {memory['clean']}"],
        "reboots_24h": [f" {sum(last['at'] - at < 86400 for at in memory['reboots'])}"],
        "gpu_query_timestamp_seconds": _when(last["gpus"]["at"]),
        "last_pass_timestamp_seconds": [f" {last['at']:.3f}"],
        "pass_duration_seconds": [f" {last['seconds']:.3f}"],
    }
    lines = []
    for name, values in samples.items():
        family = f"rackwright_health_{name}"
        lines += [f"# HELP {family} {_HELP[name]}", f"# TYPE {family} gauge"]
        lines += [family + value for value in values]
    return "\n".join(lines) + "\n"

"""The JSON of `rackwright drift`, and when each node was last in sync."""

from __future__ import annotations

import json
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rackwright import __version__
from rackwright.atomic_write import write_atomically
from rackwright.boundary import read_json
from rackwright.plan.node_plan import PlanResult
from rackwright.result_store import LatestResult

SCHEMA_VERSION = 1
STATES = ("in sync", "drifted", "unreachable", "unknown")
LATEST = LatestResult("drift")
"""Check of the whole cluster, run by hand."""


@dataclass(frozen=True)
class LastInSync:
    """When each node was last in sync (seconds since the epoch)."""

    times: dict[str, float] = field(default_factory=dict)

    @classmethod
    def read(cls, path: Path) -> LastInSync:
        """From the state folder; empty if the file is missing or damaged."""
        try:
            times = {str(node): float(at) for node, at in read_json(path.read_bytes()).items()}
        except (OSError, ValueError, AttributeError, TypeError):
            return cls()
        return cls(times)

    def updated(self, plan: PlanResult, now: float) -> LastInSync:
        """Updated with every node that is in sync now; times in the future, from a wrong clock, are dropped."""
        past = {name: at for name, at in self.times.items() if at <= now}
        return LastInSync({**past, **dict.fromkeys(in_sync(plan), now)})

    def write(self, path: Path) -> None:
        """Replace the file atomically."""
        write_atomically(path, json.dumps(self.times))


def remember(plan: PlanResult, now: float) -> str | None:
    """Store the state of each node for `rackwright metrics` and `map`; the reason if that fails, or None."""
    states = {name: state(plan, name) for name in plan.nodes}
    counts = Counter(states.values())
    return LATEST.put(
        plan.cluster,
        {
            "ended": round(now, 3),
            "counts": {name: counts[name] for name in STATES},
            "sha256": plan.sha256,
            "nodes": states,
        },
    )


def in_sync(plan: PlanResult) -> list[str]:
    """Nodes that are as declared."""
    return [name for name, node in plan.nodes.items() if node.as_declared]


def document(plan: PlanResult, seconds: float, last_in_sync: LastInSync) -> dict[str, Any]:
    """The JSON `rackwright drift --json` prints."""
    return {
        "version": SCHEMA_VERSION,
        "rackwright": __version__,
        "cluster": plan.cluster,
        "file_sha256": plan.sha256,
        "checked_at": time.time(),
        "seconds": round(seconds, 3),
        "nodes": [
            {
                "node": name,
                "state": state(plan, name),
                "error": node.error,
                "note": node.note,
                "evaluated": node.evaluated,
                "last_in_sync": last_in_sync.times.get(name),
                "reboot": [change.to_json() for change in node.reboot],
                "operations": [operation.to_json() for operation in node.operations],
            }
            for name, node in plan.nodes.items()
        ],
    }


def state(plan: PlanResult, name: str) -> str:
    """One of STATES."""
    node = plan.nodes[name]
    if node.error is not None:
        return "unreachable" if node.unreachable else "unknown"
    return "in sync" if node.as_declared else "drifted"

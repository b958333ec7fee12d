"""What a drift check found, as JSON and as metrics."""

from __future__ import annotations

import json
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rackwright import __version__
from rackwright.atomic_write import write_atomically
from rackwright.drift.prometheus import Families
from rackwright.plan.node_plan import PlanResult

SCHEMA_VERSION = 1


@dataclass(frozen=True)
class History:
    """Since when each node is known to have been in sync (seconds since the epoch)."""

    in_sync: dict[str, float] = field(default_factory=dict)

    @classmethod
    def read(cls, path: Path) -> History:
        """From the state folder; empty if nothing usable is there."""
        try:
            return cls({str(node): float(at) for node, at in json.loads(path.read_text()).items()})
        except (OSError, ValueError, AttributeError):
            return cls()

    def updated(self, plan: PlanResult, now: float) -> History:
        """With every node that is in sync now."""
        return History({**self.in_sync, **dict.fromkeys(in_sync(plan), now)})

    def write(self, path: Path) -> None:
        """Replace the file atomically."""
        write_atomically(path, json.dumps(self.in_sync))


def in_sync(plan: PlanResult) -> list[str]:
    """Nodes that are known to be as declared."""
    return [name for name, node in plan.nodes.items() if node.error is None and not node.changes]


def document(plan: PlanResult, seconds: float, history: History) -> dict[str, Any]:
    """The JSON `rackwright drift --json` prints."""
    return {
        "schema": SCHEMA_VERSION,
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
                "last_in_sync": history.in_sync.get(name),
                "operations": [operation.to_json() for operation in node.operations],
            }
            for name, node in plan.nodes.items()
        ],
    }


def state(plan: PlanResult, name: str) -> str:
    """`in sync`, `drifted`, `unreachable` or `unknown`."""
    node = plan.nodes[name]
    if node.error is not None:
        return "unreachable" if node.unreachable else "unknown"
    return "drifted" if node.changes else "in sync"


def metrics(plan: PlanResult, seconds: float, history: History, now: float) -> str:
    """Text for node_exporter's textfile collector."""
    families = Families(
        {
            "operations": "Operations that would change something, by node and role.",
            "drifted": "1 if the node is not as declared.",
            "unreachable": "1 if the node could not be reached or not be evaluated.",
            "last_in_sync_timestamp_seconds": "When the node was last seen as declared.",
            "last_check_timestamp_seconds": "When the last check ended.",
            "check_duration_seconds": "How long the last check took.",
        }
    )
    cluster = plan.cluster
    for name, node in plan.nodes.items():
        for role, count in sorted(Counter(operation.role for operation in node.operations).items()):
            families.add("operations", count, cluster=cluster, node=name, role=role)
        if node.error is None and not node.operations:
            families.add("operations", 0, cluster=cluster, node=name, role="")
        families.add("drifted", int(node.error is None and bool(node.changes)), cluster=cluster, node=name)
        families.add("unreachable", int(node.error is not None), cluster=cluster, node=name)
        if name in history.in_sync:
            at = f"{history.in_sync[name]:.0f}"
            families.add("last_in_sync_timestamp_seconds", at, cluster=cluster, node=name)
    families.add("last_check_timestamp_seconds", f"{now:.0f}", cluster=cluster)
    families.add("check_duration_seconds", f"{seconds:.3f}", cluster=cluster)
    return families.text()


def write_metrics(path: Path, text: str) -> None:
    """Replace the textfile atomically, readable by node_exporter."""
    write_atomically(path, text, mode=0o644, durable=False)

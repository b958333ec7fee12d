"""Patches of nodes that the API server carries out only where a node still is as it was seen.

A JSON patch (RFC 6902) whose `test` fails changes nothing. Standard library only, Python 3.9: runs on nodes too.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence

from rackwright.workload.kubernetes.output import BY, MANAGER, REASON

_UNSCHEDULABLE = "/spec/unschedulable"


def _annotation(name: str) -> str:
    return f"/metadata/annotations/{name.replace('~', '~0').replace('/', '~1')}"


def author(user: str = "root") -> str:
    """Who sets a reason, and when, in UTC."""
    return f"{user}@{time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime())}"


def cordon(reason: str, by: str) -> str:
    """Take a node out of service that is in service."""
    return json.dumps(
        [
            {"op": "test", "path": _UNSCHEDULABLE, "value": None},
            {"op": "add", "path": _UNSCHEDULABLE, "value": True},
            {"op": "add", "path": _annotation(REASON), "value": reason},
            {"op": "add", "path": _annotation(BY), "value": by},
        ]
    )


def explain(before: str, reason: str, by: str) -> str:
    """Change the reason of a drain."""
    return json.dumps(
        [
            {"op": "test", "path": _UNSCHEDULABLE, "value": True},
            {"op": "test", "path": _annotation(REASON), "value": before or None},
            {"op": "add", "path": _annotation(REASON), "value": reason},
            {"op": "add", "path": _annotation(BY), "value": by},
        ]
    )


def uncordon(reason: str, *, has_by: bool) -> str:
    """Put a node back whose reason still is this one; empty: it has none."""
    path = _annotation(REASON)
    gone = [{"op": "remove", "path": _annotation(BY)}] if has_by else []
    return json.dumps(
        [
            {"op": "test", "path": path, "value": reason or None},
            *([{"op": "remove", "path": path}] if reason else []),
            {"op": "remove", "path": _UNSCHEDULABLE},
            *gone,
        ]
    )


def patch(nodes: Sequence[str], change: str) -> list[str]:
    """Arguments of kubectl."""
    return ["patch", "node", *nodes, f"--field-manager={MANAGER}", "--type=json", "-p", change]

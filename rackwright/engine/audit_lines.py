"""Lines about a run for the head's systemd journal: who changed what, where and when, for the audit trail (docs/logs.md).

Standard library, Python 3.9: `lock_holder` runs on the head. The text comes from another machine, so each line is
printable and limited in length.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

TEXT_MAX = 400
NODES_MAX = 40


def began(cluster: str, by: dict[str, Any]) -> str:
    """Line for a run that takes the lock."""
    who = _plain(f"{by.get('user')}@{by.get('host')}", 120)
    return f"run {by['run']} of {_plain(cluster)} began, by {who}: {_plain(by.get('command'))}"


def ended(cluster: str, run: str) -> str:
    """Line for a run that releases the lock, after success or failure."""
    return f"run {run} of {_plain(cluster)} released the lock"


def line_of(run: str, event: bytes) -> str | None:
    """Audit line for one line of a run's journal; None if it is irrelevant to auditors, or damaged."""
    try:
        found = json.loads(event)
        kind = found["event"]
    except (ValueError, KeyError, TypeError):
        return None
    said = _SAID.get(kind) if isinstance(kind, str) else None
    text = said(found) if said is not None else None
    return None if text is None else f"run {run} {text}"


def _plan(event: dict[str, Any]) -> str | None:
    changes = event.get("changes")
    if not isinstance(changes, dict):
        return None
    counts = [f"{node}: {count}" for node, count in sorted(changes.items()) if count]
    return f"changes {_several(counts)}" if counts else None


def _failed(event: dict[str, Any]) -> str | None:
    if event.get("ok") is not False:
        return None
    return f"failed on {_plain(event.get('node'), 100)}: {_plain(event.get('error'))}"


def _rotation(event: dict[str, Any]) -> str | None:
    if event.get("step") != "switch":
        return None
    return f"replaces the secret {_plain(event.get('secret'), 100)} on {_nodes(event)}"


def _nodes(event: dict[str, Any]) -> str:
    nodes = event.get("nodes")
    return _several(nodes) if isinstance(nodes, list) else "?"


def _several(words: list[Any]) -> str:
    more = f" and {len(words) - NODES_MAX} more" if len(words) > NODES_MAX else ""
    return ", ".join(_plain(word, 100) for word in words[:NODES_MAX]) + more


_SAID: dict[str, Callable[[dict[str, Any]], str | None]] = {
    "plan": _plan,
    "drain": lambda event: f"drains {_nodes(event)}",
    "reboot": lambda event: f"reboots {_nodes(event)}",
    "resume": lambda event: f"puts back into service {_nodes(event)}",
    "rotation": _rotation,
    "node": _failed,
    "end": lambda event: f"ended: {_plain(event.get('outcome'), 100)}",
}


def _plain(word: Any, limit: int = TEXT_MAX) -> str:  # noqa: ANN401 - of JSON
    text = "".join(one if one.isprintable() else "?" for one in str(word)[: limit + 1])
    return text if len(text) <= limit else f"{text[: limit - 3]}..."

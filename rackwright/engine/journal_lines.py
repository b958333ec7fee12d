"""Parses journal lines into runs. Any line may be damaged: a killed run, a power cut, a broken head."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from rackwright.boundary import Refused, read_json

_LINE_MAX_BYTES = 1 << 20
_LATEST = 253402300800.0
"""The year 10000: no clock shows it, and no calendar of Python's goes further."""


@dataclass
class Run:
    """One run, read back."""

    run: str
    begin: dict[str, Any] = field(default_factory=dict)
    plan: dict[str, Any] | None = None
    nodes: dict[str, dict[str, Any]] = field(default_factory=dict)
    open_operations: list[dict[str, Any]] = field(default_factory=list)
    """Started and not known to have finished."""
    result: dict[str, Any] | None = None
    end: dict[str, Any] | None = None
    events: list[dict[str, Any]] = field(default_factory=list)
    alive: bool = False
    """Whether it is still running, if its end is not recorded."""

    @property
    def state(self) -> str:
        """`running`, `finished`, `failed` (some node) or `interrupted`."""
        if self.end is None:
            return "running" if self.alive else "interrupted"
        if self.end["outcome"] != "finished":
            return "interrupted"
        return "finished" if all(node["ok"] for node in self.nodes.values()) else "failed"

    @property
    def exit_status(self) -> int | None:
        """Exit status of its command, 1 if it was interrupted; None while it runs."""
        if self.state == "running":
            return None
        if self.result is not None and self.end is not None:
            return int(self.result["exit_status"])
        return 0 if self.state == "finished" else 1  # a journal of an earlier version has no result

    @property
    def by(self) -> str:
        """The operator, e.g. `ada@laptop`."""
        return f"{self.begin.get('user', '?')}@{self.begin.get('host', '?')}"

    @property
    def left_drained(self) -> list[str]:
        """Nodes that it drained, or was about to, and that no run has resumed."""
        out: dict[str, None] = {}
        for event in self.events:
            if event["event"] == "drain":
                out.update(dict.fromkeys(event["nodes"]))
            elif event["event"] in ("resume", "released"):  # released: this run no longer drains it
                for node in event["nodes"]:
                    out.pop(node, None)
        return list(out)

    @property
    def rebooted(self) -> set[str]:
        """Nodes that it rebooted, or was about to."""
        return {name for event in self.events if event["event"] == "reboot" for name in event["nodes"]}


def gather(run: str, lines: Iterable[str], alive: Callable[[dict[str, Any]], bool]) -> Run:
    """A run from its journal; `alive` is called with its first event if the journal has no end."""
    found = Run(run)
    for line in lines:
        event = _event(line)
        if event is None:
            continue  # e.g. the line being written when the run was killed
        found.events.append(event)
        kind = event["event"]
        if kind == "begin":
            found.begin = event
        elif kind == "plan":
            found.plan = event
        elif kind == "node":
            found.nodes[event["node"]] = event
        elif kind == "result":
            found.result = event
        elif kind == "end":
            found.end = event
        elif kind == "start":
            found.open_operations.append(event)
        elif kind == "finish":
            _close(found.open_operations, event)
    found.alive = found.end is None and alive(found.begin)
    return found


def _event(line: str) -> dict[str, Any] | None:
    """One complete event with every field that readers rely on, or None."""
    try:
        event = read_json(line, _LINE_MAX_BYTES)
    except Refused:
        return None
    if not isinstance(event, dict) or not isinstance(event.get("event"), str):
        return None
    at = event.get("at")
    if not isinstance(at, (int, float)) or not 0 <= at < _LATEST:
        return None
    wanted = _WANTED.get(event["event"], {})
    return event if all(good(event.get(key)) for key, good in wanted.items()) else None


def _text(value: object) -> bool:
    return isinstance(value, str)


def _text_or_none(value: object) -> bool:
    return value is None or isinstance(value, str)


def _texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(one, str) for one in value)


def _texts_or_none(value: object) -> bool:
    return value is None or _texts(value)


def _policy(value: object) -> bool:
    return value is None or isinstance(value, dict)


def _flag(value: object) -> bool:
    return isinstance(value, bool)


def _whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


_Wanted = dict[str, Callable[[object], bool]]
_NODES: _Wanted = {"nodes": _texts}
_OPERATION: _Wanted = {"node": _text, "role": _text, "name": _text}
_WANTED: dict[str, _Wanted] = {
    "begin": {
        **dict.fromkeys(("file", "user", "host", "command", "cluster"), _text),
        **dict.fromkeys(("limit", "deploy"), _text_or_none),
        "roles": _texts_or_none,
        "policy": _policy,
    },
    "plan": {"file_sha256": _text},
    "wave": _NODES,
    "drain": _NODES,
    "drained": _NODES,
    "resume": _NODES,
    "released": _NODES,
    "reboot": _NODES,
    "rebooted": _NODES,
    "verified": _NODES,
    "node": {"node": _text, "ok": _flag, "error": _text_or_none},
    "start": _OPERATION,
    "finish": {**_OPERATION, "outcome": _text},
    "result": {"exit_status": _whole},
    "end": {"outcome": _text},
}
"""Fields that readers rely on, by event."""


def _close(started: list[dict[str, Any]], ended: dict[str, Any]) -> None:
    for event in started:
        if all(event[key] == ended[key] for key in ("node", "role", "name")):
            started.remove(event)
            return

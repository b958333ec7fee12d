"""Which state each node is in, since when, and which changes of state somebody has to be told."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from pathlib import Path


class State(StrEnum):
    """What a check found."""

    IN_SYNC = "in sync"
    DRIFTED = "drifted"
    UNREACHABLE = "unreachable"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Found:
    """One node in one check."""

    state: State
    detail: tuple[str, ...] = ()
    """What drifted, or why it is not known."""
    count: int = 0
    """Answers that are not the expected ones."""
    operations: dict[str, int] = field(default_factory=dict)
    """Operations with such answers, by role; empty where that is not known."""


@dataclass(frozen=True)
class Known:
    """One node over all checks; times are seconds since the epoch."""

    state: State
    since: float
    last_in_sync: float | None = None
    told: State = State.IN_SYNC
    """The state somebody was last told of. A node never seen before counts as in sync."""


@dataclass(frozen=True)
class Change:
    """One node that is not in the state anymore that was told."""

    node: str
    before: State
    found: Found


History = dict[str, Known]


def advanced(history: Mapping[str, Known], found: Mapping[str, Found], now: float) -> History:
    """The history after one more check; nodes that are no longer asked are forgotten."""
    after = {}
    for name, one in found.items():
        before = history.get(name)
        in_sync = now if one.state is State.IN_SYNC else before.last_in_sync if before else None
        if before is None:
            after[name] = Known(one.state, now, in_sync)
        else:
            since = before.since if before.state is one.state else now
            after[name] = replace(before, state=one.state, since=since, last_in_sync=in_sync)
    return after


def untold(history: Mapping[str, Known], found: Mapping[str, Found]) -> list[Change]:
    """Changes of state that nobody was told of yet, in the order of the nodes."""
    return [
        Change(name, history[name].told, one)
        for name, one in found.items()
        if history[name].told is not one.state
    ]


def told(history: Mapping[str, Known]) -> History:
    """The history once everything in it was told."""
    return {name: replace(known, told=known.state) for name, known in history.items()}


def read_history(path: Path) -> History:
    """From its file; empty if nothing usable is there."""
    try:
        data = json.loads(path.read_text())["nodes"]
        return {
            name: Known(**{**one, "state": State(one["state"]), "told": State(one["told"])})
            for name, one in data.items()
        }
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}


def history_text(history: Mapping[str, Known]) -> str:
    """The content of its file."""
    return json.dumps({"version": 1, "nodes": {name: asdict(known) for name, known in history.items()}})

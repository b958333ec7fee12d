"""The state of each node, since when, and which state changes have not been reported yet."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from pathlib import Path

from rackwright.boundary import printable, read_json

_OLD_KEY = "told"
"""Name of `reported` in files written until 0.1."""

_DETAIL_MAX = 1000


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
    """What drifted, or why the state is unknown."""
    count: int = 0
    """Answers that are not the expected ones."""
    operations: dict[str, int] = field(default_factory=dict)
    """Operations with such answers, by role; empty if unknown."""

    def __post_init__(self) -> None:
        """A node's answer is made printable: it goes into mails and chats."""
        object.__setattr__(self, "detail", tuple(printable(one, _DETAIL_MAX) for one in self.detail))


@dataclass(frozen=True)
class Known:
    """A node over all checks; times are seconds since the epoch."""

    state: State
    since: float
    last_in_sync: float | None = None
    reported: State = State.IN_SYNC
    """The state of the last notification. A new node counts as in sync."""


@dataclass(frozen=True)
class Change:
    """A node whose state has changed since the last report."""

    node: str
    before: State
    found: Found


History = dict[str, Known]


def advanced(history: Mapping[str, Known], found: Mapping[str, Found], now: float) -> History:
    """The history after one more check; nodes that were not checked are dropped."""
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


def unreported(history: Mapping[str, Known], found: Mapping[str, Found]) -> list[Change]:
    """Changes of state that were not reported yet, in the order of the nodes."""
    return [
        Change(name, history[name].reported, one)
        for name, one in found.items()
        if history[name].reported is not one.state
    ]


def reported(history: Mapping[str, Known]) -> History:
    """The history once every change in it was reported."""
    return {name: replace(known, reported=known.state) for name, known in history.items()}


def read_history(path: Path) -> History:
    """From its file; empty if that is missing or damaged."""
    try:
        return parsed_history(path.read_text())
    except (OSError, ValueError):
        return {}


def parsed_history(text: str) -> History:
    """From the content of its file; ValueError if that is damaged."""
    try:
        return {name: _known(**entry) for name, entry in read_json(text)["nodes"].items()}
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"it is not a history of drift: {type(error).__name__}") from error


def _known(state: str, since: float, last_in_sync: float | None, **last: str) -> Known:
    reported = last[_OLD_KEY] if _OLD_KEY in last else last["reported"]
    return Known(State(state), since, last_in_sync, State(reported))


def history_text(history: Mapping[str, Known]) -> str:
    """The content of its file."""
    return json.dumps({"version": 1, "nodes": {name: asdict(known) for name, known in history.items()}})

"""Records what would have drained a node while it only observes: episodes, each with its length.

An episode begins with the first pass that would drain the node and ends, as a drain would, after a streak of
clean passes. It covers the whole outage, not only the moments at which a check failed.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any

from rackwright.boundary import printable
from rackwright.health.guard.found import Found
from rackwright.health.records import time_of

KEPT = 50
KEPT_SECONDS = 30 * 86400.0
VERSION = 1
PASSES_MAX = 10**9
CHECKS_MAX = 300
"""Larger than the number of checks."""


@dataclass(frozen=True)
class Episode:
    """One period for which the node would have been out of service."""

    since: float
    last: float
    """The last pass that would have drained it."""
    passes: int
    """How many passes would have drained it."""
    checks: tuple[str, ...]
    action: str
    reason: str
    until: float | None = None
    """When it would have been resumed; None: still open."""


@dataclass(frozen=True)
class Would:
    """The record of a node."""

    acts: bool
    since: float
    """Since when the node has been observing, or acting."""
    at: float
    """The last pass."""
    current: Episode | None = None
    past: tuple[Episode, ...] = ()

    @property
    def episodes(self) -> tuple[Episode, ...]:
        """The earliest first."""
        return (*self.past, *((self.current,) if self.current is not None else ()))

    def to_json(self) -> dict[str, Any]:
        """As plain data."""
        return {"version": VERSION, **asdict(self)}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Would:
        """The reverse of `to_json`, its texts printable; KeyError, TypeError or ValueError for anything else."""
        if data["version"] != VERSION:
            raise ValueError(f"version {str(data['version'])[:20]}, not {VERSION}")
        if (
            type(data["acts"]) is not bool
            or not isinstance(data["past"], (list, tuple))
            or len(data["past"]) > KEPT
        ):
            raise ValueError("its members have the wrong type, or there are too many")
        current = data["current"]
        return cls(
            data["acts"],
            time_of(data["since"]),
            time_of(data["at"]),
            _episode(current) if current is not None else None,
            tuple(_episode(one) for one in data["past"]),
        )


def _episode(data: dict[str, Any]) -> Episode:
    passes, checks, words = data["passes"], data["checks"], (data["action"], data["reason"])
    if type(passes) is not int or not 0 <= passes < PASSES_MAX or not isinstance(checks, (list, tuple)):
        raise ValueError("an episode has no number of passes, or no checks")
    if not all(isinstance(one, str) for one in (*checks, *words)):
        raise ValueError("an episode has a field that is not text")
    return Episode(
        since=time_of(data["since"]),
        last=time_of(data["last"]),
        passes=passes,
        checks=tuple(printable(check, 80) for check in checks[:CHECKS_MAX]),
        action=printable(words[0], 80),
        reason=printable(words[1], 400),
        until=time_of(data["until"]) if data["until"] is not None else None,
    )


def recorded(would: Would | None, acts: bool, bad: Found | None, recovered: bool, at: float) -> Would:
    """The record after another pass. `bad`: what would drain the node; `recovered`: it would be resumed."""
    if would is None or would.acts is not acts:
        past = would.past if would is not None else ()
        if would is not None and would.current is not None:
            past = (*past, replace(would.current, until=at))
        would = Would(acts, at, at, None, past)
    current = _not_after(would.current, at) if would.current is not None else None
    past = tuple(_not_after(one, at) for one in would.past)
    would = replace(would, since=min(would.since, at))
    if bad is not None and not acts:
        current = _longer(current, bad, at)
    elif current is not None and recovered:
        past, current = (*past, replace(current, until=at)), None
    past = tuple(one for one in past if at - (one.until or at) < KEPT_SECONDS)[-KEPT:]
    return replace(would, at=at, current=current, past=past)


def _not_after(episode: Episode, at: float) -> Episode:
    """The episode without future times, after the clock was set back."""
    until = min(episode.until, at) if episode.until is not None else None
    return replace(episode, since=min(episode.since, at), last=min(episode.last, at), until=until)


def _longer(current: Episode | None, bad: Found, at: float) -> Episode:
    if current is None:
        return Episode(at, at, 1, bad.checks, bad.action.value, bad.reason)
    checks = tuple(dict.fromkeys((*current.checks, *bad.checks)))
    return replace(
        current,
        last=at,
        passes=current.passes + 1,
        checks=checks,
        action=bad.action.value,
        reason=bad.reason,
    )

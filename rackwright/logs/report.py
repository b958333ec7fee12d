"""Results of `rackwright logs`, as plain data that views print."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from rackwright.health.records import TIME_MAX
from rackwright.logs.entries import MESSAGE_MAX, NAME_MAX
from rackwright.workload.protocol import JobTrace

LINES_MAX = 10_000
"""Limit of one answer."""
_Name = Annotated[str, Field(max_length=NAME_MAX)]
_Time = Annotated[float, Field(ge=0, le=TIME_MAX)]
_Number = Annotated[int, Field(ge=0, lt=2**63)]


class _Strict(BaseModel):
    model_config = ConfigDict(strict=True, frozen=True)


class Line(_Strict):
    """One line of a node's journal."""

    node: _Name
    at: _Time
    message: Annotated[str, Field(max_length=MESSAGE_MAX)]
    name: _Name | None = None
    """Program identifier (syslog tag)."""
    pid: _Number | None = None
    unit: _Name | None = None
    priority: _Number | None = None
    facility: _Number | None = None
    kernel: bool | None = None
    """Whether the kernel itself wrote it."""
    uid: _Number | None = None
    trusted: bool | None = None
    """Whether the kernel or a process of root wrote it."""
    fields: Annotated[dict[_Name, _Name | _Number], Field(max_length=20)] | None = None
    """Meaning of an XID, an SXid, an AER or another kernel complaint."""


class Answer(_Strict):
    """Output of a reader."""

    version: int
    now: _Time
    """Time of the server's clock."""
    lines: Annotated[list[Line], Field(max_length=LINES_MAX)]
    more: bool
    newest: Annotated[dict[_Name, _Time | None], Field(max_length=100_000)]
    problems: Annotated[list[_Name], Field(max_length=100)]


ANSWER = TypeAdapter(Answer)


@dataclass(frozen=True)
class LogsReport:
    """Lines, oldest first, and what is unknown about them."""

    cluster: str
    store: str
    server: str
    since: float
    until: float
    lines: tuple[Line, ...] = ()
    more: bool = False
    """Whether older ones were dropped because of the requested limit."""
    newest: dict[str, float | None] = field(default_factory=dict)
    """By queried node: time of its newest line there."""
    unknown: tuple[str, ...] = ()
    """Sentences: what could not be read, and nodes whose lines are missing or late."""
    trace: JobTrace | None = None

    def to_json(self) -> dict[str, Any]:
        """JSON form."""
        return {
            "version": 1,
            "cluster": self.cluster,
            "store": self.store,
            "server": self.server,
            "since": self.since,
            "until": self.until,
            "job": None if self.trace is None else _job(self.trace),
            "lines": [line.model_dump(exclude_none=True) for line in self.lines],
            "more": self.more,
            "newest": dict(self.newest),
            "unknown": list(self.unknown),
        }


def _job(trace: JobTrace) -> dict[str, Any]:
    return {
        "id": trace.id,
        "nodes": list(trace.nodes),
        "submitted": trace.submitted,
        "started": trace.started,
        "ended": trace.ended,
    }

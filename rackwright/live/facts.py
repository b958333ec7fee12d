"""A fact about a node: its value, or why there is none."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar, Union

from rackwright.boundary import printable

REASON_MAX_CHARACTERS = 400
T = TypeVar("T")


@dataclass(frozen=True)
class Unknown:
    """It should be known and is not: never to be shown as good."""

    reason: str

    def __post_init__(self) -> None:
        """The reason may hold a node's own words."""
        object.__setattr__(self, "reason", printable(self.reason, REASON_MAX_CHARACTERS))


@dataclass(frozen=True)
class Absent:
    """There is nothing to know: the cluster file declares no source of it, or it does not concern this node."""

    reason: str


Fact: TypeAlias = Union[T, Unknown, Absent]  # noqa: UP007 - `T | Unknown` cannot be subscripted in Python 3.11


def fact_json(fact: Fact[T], value_json: Callable[[T], Any]) -> dict[str, Any]:
    """{"value": ...}, {"unknown": reason} or {"absent": reason}."""
    if isinstance(fact, Unknown):
        return {"unknown": fact.reason}
    if isinstance(fact, Absent):
        return {"absent": fact.reason}
    return {"value": value_json(fact)}

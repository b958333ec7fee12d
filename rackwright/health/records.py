"""Strict, typed views of plain data: a value is validated when a check reads it.

A check that reads `gpu.temperature.gpu_c` from a document in which it is missing or not a number stops with
Unreadable, which makes it UNKNOWN; other checks are not affected.
"""

from __future__ import annotations

import math
from typing import Any, cast

TRACE: set[str] | None = None
"""Tests set this to see which values the checks read."""


WHOLE_MAX = 2**128
"""Limit of a whole number. NVMe counts in 128 bits; a larger number does not fit a float."""
TIME_MAX = 253402300799.0
"""The last second of the year 9999, since the epoch."""
MISSING = " is missing"
"""How the text of Unreadable ends when the document lacks a value, as opposed to holding None."""


class Unreadable(Exception):  # noqa: N818 - becomes UNKNOWN
    """A value is missing or has the wrong type; the text names the value and its place."""


class Missing(Unreadable):
    """A value is missing; `place` names it, so that the caller can ask whether this node has one."""

    def __init__(self, place: str, text: str) -> None:
        super().__init__(text)
        self.place = place


class Record:
    """A frozen view of one object of the document."""

    __slots__ = ("_data", "place")

    def __init__(self, data: Any, place: str) -> None:  # noqa: ANN401 - unchecked until here
        if not isinstance(data, dict):
            raise Unreadable(f"{place} is {describe(data)}, not an object")
        object.__setattr__(self, "_data", data)
        object.__setattr__(self, "place", place)

    place: str

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a record is frozen: {name}")


class _Field:
    def __init__(
        self,
        kind: Any,  # noqa: ANN401
        *,
        optional: bool = False,
        many: bool = False,
        most: int | None = None,
    ) -> None:
        self.kind, self.optional, self.many, self.most = kind, optional, many, most
        self.name = ""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, record: Any, owner: type | None = None) -> Any:  # noqa: ANN401
        if record is None:
            return self
        place = f"{record.place}.{self.name}"
        if TRACE is not None:
            TRACE.add(place)
        if self.name not in record._data:
            raise Missing(place, place + MISSING)
        value = record._data[self.name]
        if value is None:
            if self.optional:
                return None
            raise Missing(place, f"{place} has no value")
        if not self.many:
            return read(value, self.kind, place)
        if self.kind is dict:
            return read_counts(value, place)
        if not isinstance(value, list):
            raise Unreadable(f"{place} is {describe(value)}, not a list")
        if self.most is not None and len(value) > self.most:
            raise Unreadable(f"{place} has {len(value)} elements, more than the {self.most} a node can have")
        return [read(one, self.kind, f"{place}[{index}]") for index, one in enumerate(value)]

    def __set__(self, record: Any, value: object) -> None:  # noqa: ANN401
        raise AttributeError(f"a record is frozen: {self.name}")


def read(value: Any, kind: Any, place: str) -> Any:  # noqa: ANN401
    """A value of this type, or Unreadable; true and false do not count as numbers."""
    if issubclass(kind, Record):
        return kind(value, place)
    right = type(value) in (int, float) if kind is float else type(value) is kind
    if not right:
        raise Unreadable(f"{place} is {describe(value)}, not {NAMES[kind]}")
    if kind in (int, float) and not (
        math.isfinite(value) if type(value) is float else abs(value) < WHOLE_MAX
    ):
        raise Unreadable(f"{place} is too large or not a finite number")
    return value


def is_time(value: Any) -> bool:  # noqa: ANN401
    """Whether a value can be seconds since the epoch."""
    return type(value) in (int, float) and 0 <= value <= TIME_MAX


def time_of(value: Any) -> float:  # noqa: ANN401
    """Seconds since the epoch, or ValueError."""
    if not is_time(value):
        raise ValueError("not a valid time")
    return float(value)


def read_counts(value: Any, place: str) -> dict[str, int]:  # noqa: ANN401
    if not isinstance(value, dict):
        raise Unreadable(f"{place} is {describe(value)}, not an object")
    return {key: read(count, int, f"{place}.{key}") for key, count in value.items()}


NAMES = {int: "a whole number", float: "a number", str: "a text", bool: "true or false"}


def describe(value: Any) -> str:  # noqa: ANN401
    """A value for a message, shortened without formatting a large value in full."""
    if value is None:
        return "nothing"
    if isinstance(value, list):
        return f"a list of {len(value)}"
    if isinstance(value, dict):
        return f"an object of {len(value)}"
    if isinstance(value, int) and abs(value) >= WHOLE_MAX:
        return "a huge number"
    return repr(value[:60] if isinstance(value, str) else value)[:60]


def whole() -> int:
    """A whole number."""
    return cast(int, _Field(int))


def whole_or_none() -> int | None:
    """A whole number, or None if the node has none."""
    return cast("int | None", _Field(int, optional=True))


def real() -> float:
    """A number."""
    return cast(float, _Field(float))


def real_or_none() -> float | None:
    """A number, or None if the node has none."""
    return cast("float | None", _Field(float, optional=True))


def word() -> str:
    """A text."""
    return cast(str, _Field(str))


def word_or_none() -> str | None:
    """A text, or None if the node has none."""
    return cast("str | None", _Field(str, optional=True))


def flag() -> bool:
    """True or false."""
    return cast(bool, _Field(bool))


def flag_or_none() -> bool | None:
    """True, false, or None if the node does not report it."""
    return cast("bool | None", _Field(bool, optional=True))


def words() -> list[str]:
    """A list of texts."""
    return cast("list[str]", _Field(str, many=True))


def words_or_none() -> list[str] | None:
    """A list of texts, or None if unknown."""
    return cast("list[str] | None", _Field(str, many=True, optional=True))


def numbers() -> list[int]:
    """A list of whole numbers."""
    return cast("list[int]", _Field(int, many=True))


def counts() -> dict[str, int]:
    """Whole numbers by name."""
    return cast("dict[str, int]", _Field(dict, many=True))


def counts_or_none() -> dict[str, int] | None:
    """Whole numbers by name, or None if the node has none."""
    return cast("dict[str, int] | None", _Field(dict, many=True, optional=True))


def one(kind: type[Any]) -> Any:  # noqa: ANN401 - the annotation at the class has the type
    """A record."""
    return _Field(kind)


def one_or_none(kind: type[Any]) -> Any:  # noqa: ANN401
    """A record, or None if the node has none."""
    return _Field(kind, optional=True)


def many(kind: type[Any], most: int | None = None) -> Any:  # noqa: ANN401
    """A list of records; `most`: a limit for quadratic checks, more than any node has."""
    return _Field(kind, many=True, most=most)


def many_or_none(kind: type[Any], most: int | None = None) -> Any:  # noqa: ANN401
    """A list of records, or None if the node could not be queried."""
    return _Field(kind, many=True, optional=True, most=most)

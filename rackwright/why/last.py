"""The displayed part of the last record of a node's health check (last.json): untrusted input, parsed strictly."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from rackwright.boundary import Refused, printable_data, read_json, validated
from rackwright.health.records import TIME_MAX

LAST_MAX_BYTES = 4 * 2**20
"""The verdict of every check of a node is about 100 KiB."""
_Text = Annotated[str, Field(max_length=4096)]


class _Strict(BaseModel):
    model_config = ConfigDict(strict=True, frozen=True)


class _Memory(_Strict):
    alert: _Text | None
    drained: bool
    clean: Annotated[int, Field(ge=0, lt=2**63)]


class _Policy(_Strict):
    clean_passes: Annotated[int, Field(ge=0, lt=2**63)]
    act: bool | None = None


class _Episode(_Strict):
    since: Annotated[float, Field(ge=0, le=TIME_MAX)]
    passes: Annotated[int, Field(ge=0, lt=2**63)]
    reason: _Text


class Last(_Strict):
    """The members that are shown; the others travel in `data`."""

    version: int
    memory: _Memory
    policy: _Policy
    disabled: Annotated[dict[_Text, _Text], Field(max_length=1000)]
    would_drain: _Episode | None = None
    data: dict[str, Any] = Field(default_factory=dict, exclude=True)
    """The whole document, its texts printable."""


_LAST = TypeAdapter(Last)


def read_last(text: str) -> Last:
    """Refused where it is anything else."""
    value = printable_data(read_json(text, LAST_MAX_BYTES))
    if not isinstance(value, dict) or value.get("version") != 1:
        raise Refused("its version is not 1")
    return validated(_LAST, {**value, "data": value})

"""The file between the two programs: metrics, and when and how they were collected.

Times are of the monotonic clock, which is the same for all programs of a host until it boots, as is the file in /run.
"""

from __future__ import annotations

import json
import math
import os
from contextlib import suppress
from typing import NamedTuple

_FORMAT = 1
_MARK = b"# rackwright-slurm-metrics "


class Snapshot(NamedTuple):
    """The collector's last results."""

    attempted: float
    """When Slurm was last queried."""
    collected: float | None = None
    """When it last answered; None: never."""
    error: str | None = None
    """Why it did not answer the last query; None: it did."""
    metrics: bytes = b""
    """Metrics of the last answer, as Prometheus' text."""


class Unreadable(Exception):  # noqa: N818 - reads as the sentence it is
    """There is no snapshot, or it is not one of this version."""


def write(path: str, snapshot: Snapshot) -> None:
    """Replaces the file at once, so that the server reads the old one or the new one."""
    head = {"format": _FORMAT, **snapshot._asdict()}
    del head["metrics"]
    temporary = f"{path}.new"
    with open(temporary, "wb") as file:
        os.fchmod(file.fileno(), 0o640)
        file.write(_MARK + json.dumps(head).encode() + b"\n" + snapshot.metrics)
    os.replace(temporary, path)


def read(path: str) -> Snapshot:
    """The collector's last snapshot; raises Unreadable if there is none."""
    try:
        with open(path, "rb") as file:
            first, metrics = file.readline(), file.read()
    except OSError as error:
        raise Unreadable(f"{path}: {error.strerror}") from None
    with suppress(ValueError, KeyError, TypeError):
        head = json.loads(first[len(_MARK) :])
        if first.startswith(_MARK) and head["format"] == _FORMAT:
            collected = head["collected"]
            return Snapshot(
                attempted=_finite(head["attempted"]),
                collected=None if collected is None else _finite(collected),
                error=None if head["error"] is None else str(head["error"]),
                metrics=metrics,
            )
    raise Unreadable(f"{path} is not a snapshot of this version")


def _finite(value: float) -> float:
    number = float(value)
    if not math.isfinite(number):
        raise ValueError
    return number

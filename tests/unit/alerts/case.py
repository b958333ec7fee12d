"""What is tested of a rule, as data, and the notation of its series."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

Series = Mapping[str, str]
"""Values by series: one a step, `value*count`, `first+step*count`, `_*count` (no sample) or `stale`."""
_PART = re.compile(
    r"(?:(?P<gap>_)|(?P<first>-?[0-9.]+)(?P<step>[+-][0-9.]+)?)\*(?P<count>[0-9]+)|(?P<stale>stale)"
)


@dataclass(frozen=True)
class Case:
    """An alert: when it fires with exactly what, that it keeps quiet just under the line, and that it resolves."""

    alert: str
    series: Series
    """From healthy to broken to healed."""
    fires: int
    """Seconds: it fires then, and a step before it does not."""
    labels: Mapping[str, str]
    """All of them but `alertname` and `severity`."""
    severity: str
    summary: str
    description: str
    heals: int | None
    """Seconds: it does not fire any more; None: it never resolves."""
    under: tuple[Series, ...]
    """Changes of the series, with each of which it never fires."""
    every: int = 60
    """Seconds between samples, and between evaluations."""


@dataclass(frozen=True)
class Recorded:
    """A recording rule: what it makes of some series."""

    record: str
    series: Series
    gives: Mapping[str, float]
    """Value by series, at `at`."""
    at: int = 300
    every: int = 60
    labels: Mapping[str, str] = field(default_factory=dict)


def values(text: str) -> str:
    """In promtool's notation; ValueError where it is none."""
    found = []
    for part in text.split():
        read = _PART.fullmatch(part)
        if read is None:
            raise ValueError(f"{part!r} in {text!r}")
        if read["stale"]:
            found.append("stale")
            continue
        count = int(read["count"])
        found.append(f"_x{count}" if read["gap"] else f"{read['first']}{read['step'] or '+0'}x{count - 1}")
    return " ".join(found)


def steps(text: str) -> int:
    """How many steps they are."""
    return sum(1 if part == "stale" else int(part.rpartition("*")[2]) for part in text.split())

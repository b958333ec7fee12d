"""How long steps of commands took on this control node, for the next run to show how long they usually take."""

from __future__ import annotations

import contextlib
import json
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Protocol

from rackwright.atomic_write import write_atomically
from rackwright.boundary import read_json
from rackwright.errors import RackwrightError
from rackwright.state_folder import state_folder, state_root

KEPT = 9
"""Newest durations of a step that count."""
_STEPS_MAX = 500


def duration(seconds: float) -> str:
    """E.g. `42 s`, `3 min 5 s`, `2 h 10 min`."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    if minutes < 60:
        return f"{minutes} min {rest} s" if rest else f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if minutes else f"{hours} h"


def usual_words(seconds: list[float]) -> str | None:
    """`usually 1 min 40 s`: the median; of one run alone `last time 1 min 40 s`; None where nothing is known."""
    if not seconds:
        return None
    return f"{'usually' if len(seconds) > 1 else 'last time'} {duration(median(seconds))}"


class History(Protocol):
    """Durations of former runs, in seconds."""

    def of(self, step: str) -> list[float]:
        """The newest of a step, oldest first; empty where none is known."""

    def record(self, step: str, seconds: float) -> None:
        """One more, of a step that ended well."""


class NoHistory:
    """Nothing is known and nothing is kept."""

    def of(self, step: str) -> list[float]:
        """Never any."""
        return []

    def record(self, step: str, seconds: float) -> None:
        """Forget it."""


@dataclass
class Durations:
    """Those of one command for one cluster, in a file of the state folder. A file that cannot be used is done without."""

    cluster: str
    command: str
    """E.g. `lab-up`; the file's name."""
    _steps: dict[str, list[float]] | None = field(default=None, init=False)

    @property
    def path(self) -> Path:
        """Its file."""
        return state_root() / self.cluster / "durations" / f"{self.command}.json"

    def of(self, step: str) -> list[float]:
        """The newest of a step, oldest first."""
        return list(self._read().get(step, ()))

    def record(self, step: str, seconds: float) -> None:
        """Keep one more."""
        steps = self._read()
        kept = [*steps.pop(step, ()), round(seconds, 1)][-KEPT:]
        steps[step] = kept  # at the end: those that were not seen for longest go first
        for old in list(steps)[:-_STEPS_MAX]:
            del steps[old]
        with contextlib.suppress(OSError, RackwrightError):
            state_folder(self.cluster)
            self.path.parent.mkdir(mode=0o700, exist_ok=True)
            write_atomically(self.path, json.dumps(steps, indent=1) + "\n", mode=0o600)

    def _read(self) -> dict[str, list[float]]:
        if self._steps is None:
            try:
                document = read_json(self.path.read_bytes())
            except (OSError, ValueError):
                document = {}
            found = document.items() if isinstance(document, dict) else ()
            self._steps = {step: taken for step, taken in found if _is_seconds(taken)}
        return self._steps


def _is_seconds(value: object) -> bool:
    return isinstance(value, list) and all(
        isinstance(one, (int, float)) and not isinstance(one, bool) and 0 <= one < 1e9 for one in value
    )

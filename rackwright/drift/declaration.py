"""The declaration of `rackwright drift install`, in a file next to the cluster file.

It is not in a user's state folder, so that it can be committed, and so that every user's
apply updates the expected digests.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Literal

from pydantic import ValidationError

from rackwright.atomic_write import write_atomically
from rackwright.errors import RackwrightError
from rackwright.model.options import Frozen
from rackwright.textfiles import TEXTFILES

_HOUR, _DAY = 3600, 86400
_EVERY = re.compile(r"([1-9]\d{0,3})\s*(m|min|h|d)")
_UNITS = {"m": 60, "min": 60, "h": _HOUR, "d": _DAY}


class Declaration(Frozen):
    """How this cluster is checked for drift."""

    version: Literal[1] = 1
    every_seconds: int
    mode: Literal["push", "pull"] = "push"
    on: Literal["head", "here"] = "here"
    """The checker, in push mode."""
    textfiles: str = TEXTFILES
    python: str | None = None
    """The interpreter on the checker that has rackwright, in push mode."""
    notify: bool = False
    """Whether the secrets store has notification URLs."""
    agreed: bool = True
    """False until its plan is confirmed: if rackwright is killed before, no later apply installs it."""

    @property
    def calendar(self) -> str:
        """The interval as systemd's OnCalendar, which catches up after a power-off."""
        if self.every_seconds < _HOUR:
            return f"*-*-* *:00/{self.every_seconds // 60}:00"
        if self.every_seconds < _DAY:
            return f"*-*-* 00/{self.every_seconds // _HOUR}:00:00"
        return "*-*-* 00:00:00"

    @property
    def delay_seconds(self) -> int:
        """Random delay of a machine's checks, the same every time."""
        return min(self.every_seconds // 4, 900)


def seconds_of(text: str) -> int:
    """`30m`, `2h`, `1d`; RackwrightError if it does not divide an hour or a day evenly."""
    match = _EVERY.fullmatch(text.strip())
    seconds = int(match[1]) * _UNITS[match[2]] if match else 0
    even = (seconds <= _HOUR and seconds and _HOUR % seconds == 0) or (
        seconds % _HOUR == 0 and seconds and _DAY % seconds == 0
    )
    if not even:
        raise RackwrightError(
            f"--every {text} does not divide an hour or a day evenly.",
            hint="use one of: 5m, 10m, 15m, 20m, 30m, 1h, 2h, 3h, 4h, 6h, 8h, 12h, 1d",
        )
    return seconds


def path_of(cluster_file: Path) -> Path:
    """`<stem>.drift.json` beside the cluster file."""
    return cluster_file.with_suffix(".drift.json")


def read_declaration(cluster_file: Path) -> Declaration | None:
    """The declaration, None if there is none; RackwrightError if the file cannot be read."""
    path = path_of(cluster_file)
    try:
        text = path.read_text()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise RackwrightError(f"Cannot read {path}: {error.strerror}.") from error
    try:
        return Declaration.model_validate_json(text)
    except ValidationError as error:
        raise RackwrightError(
            f"{path} is not a valid drift declaration: {error.errors()[0]['msg']}.",
            hint="replace it: rackwright drift install FILE --every 30m",
        ) from None


def write_declaration(cluster_file: Path, declared: Declaration) -> None:
    """Replace the file atomically; if it is a symbolic link, replace its target."""
    path = path_of(cluster_file).resolve()
    write_atomically(path, declared.model_dump_json(indent=2) + "\n", mode=0o644)

"""What `rackwright drift install` declares, in a file beside the cluster file.

It stands there and not in somebody's state folder, so that whoever applies the cluster file knows
that expected digests have to move along, and so that it can be committed with it.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Literal

from pydantic import ValidationError

from rackwright.atomic_write import write_atomically
from rackwright.drift.paths import TEXTFILES
from rackwright.errors import RackwrightError
from rackwright.model.options import Frozen

_HOUR, _DAY = 3600, 86400
_EVERY = re.compile(r"([1-9]\d{0,3})\s*(m|min|h|d)")
_UNITS = {"m": 60, "min": 60, "h": _HOUR, "d": _DAY}


class Declaration(Frozen):
    """How drift is looked for on this cluster."""

    version: Literal[1] = 1
    every_seconds: int
    mode: Literal["push", "pull"] = "push"
    on: Literal["head", "here"] = "here"
    """Which machine asks, in push mode."""
    textfiles: str = TEXTFILES
    python: str | None = None
    """The interpreter of the asking machine that has rackwright, in push mode."""
    notify: bool = False
    """Whether there are URLs in the secrets store."""
    agreed: bool = True
    """False while its first plan is shown: a program killed then leaves nothing that an apply would install."""

    @property
    def calendar(self) -> str:
        """The interval as systemd's OnCalendar, which knows what was missed while a machine was off."""
        if self.every_seconds < _HOUR:
            return f"*-*-* *:00/{self.every_seconds // 60}:00"
        if self.every_seconds < _DAY:
            return f"*-*-* 00/{self.every_seconds // _HOUR}:00:00"
        return "*-*-* 00:00:00"

    @property
    def delay_seconds(self) -> int:
        """Checks are spread over so much time, the same for a machine each time."""
        return min(self.every_seconds // 4, 900)


def seconds_of(text: str) -> int:
    """`30m`, `2h`, `1d`; RackwrightError for what no calendar repeats evenly."""
    match = _EVERY.fullmatch(text.strip())
    seconds = int(match[1]) * _UNITS[match[2]] if match else 0
    even = (seconds <= _HOUR and seconds and _HOUR % seconds == 0) or (
        seconds % _HOUR == 0 and seconds and _DAY % seconds == 0
    )
    if not even:
        raise RackwrightError(
            f"--every {text} does not divide an hour or a day evenly.",
            hint="one of 5m, 10m, 15m, 20m, 30m, 1h, 2h, 3h, 4h, 6h, 8h, 12h, 1d",
        )
    return seconds


def path_of(cluster_file: Path) -> Path:
    """`<stem>.drift.json` beside the cluster file."""
    return cluster_file.with_suffix(".drift.json")


def read_declaration(cluster_file: Path) -> Declaration | None:
    """What is declared, None if nothing is; RackwrightError if the file is unreadable."""
    path = path_of(cluster_file)
    try:
        text = path.read_text()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise RackwrightError(f"{path} cannot be read: {error.strerror}.") from error
    try:
        return Declaration.model_validate_json(text)
    except ValidationError as error:
        raise RackwrightError(
            f"{path} is no drift declaration: {error.errors()[0]['msg']}.",
            hint="write it anew with: rackwright drift install FILE --every 30m",
        ) from None


def write_declaration(cluster_file: Path, declared: Declaration) -> None:
    """Replace the file atomically; where it is a symbolic link, the file it points to."""
    path = path_of(cluster_file).resolve()
    write_atomically(path, declared.model_dump_json(indent=2) + "\n", mode=0o644)

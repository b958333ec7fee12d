"""Times as people write them, in Slurm's own spelling.

Slurm reads `minutes`, `minutes:seconds`, `hours:minutes:seconds`, `days-hours`, `days-hours:minutes` and
`days-hours:minutes:seconds` (slurm.conf(5), MaxTime, read 2026-11-23). The first two are refused here: `24:00` is
24 minutes, which is rarely meant.
"""

from __future__ import annotations

import re

from rackwright.documents.yaml_data import Data
from rackwright.model.text import mistake

EXAMPLE = "14d"
PATTERN = (
    r"^(UNLIMITED|\d+-\d{1,2}(:\d{2}){0,2}|\d{1,3}:\d{2}:\d{2}"
    r"|(\d+ *(w|d|h|m|s|weeks?|days?|hours?|min(ute)?s?|sec(ond)?s?) *)+)$"
)
"""For editors; `duration` decides."""
_FORMS = "e.g. `90m`, `12h`, `14d`, `1-12:00:00` (days-hours:minutes:seconds) or `UNLIMITED`"
_OWN = re.compile(r"\d+-\d{2}:\d{2}:\d{2}|\d{1,3}:\d{2}:\d{2}")
_DAYS = re.compile(r"(\d+)-(\d{1,2})(?::(\d{2}))?")
_UNITS = {"w": 604800, "d": 86400, "h": 3600, "m": 60, "s": 1}
_PART = re.compile(r"(\d{1,6}) *(w|weeks?|d|days?|h|hrs?|hours?|m|mins?|minutes?|s|secs?|seconds?)")
_SHORT = re.compile(rf"(?:{_PART.pattern} *)+")


def duration(value: Data) -> str:
    """`D-HH:MM:SS`, `HH:MM:SS` below a day, or UNLIMITED; raises a validation error with an example."""
    if isinstance(value, int) and not isinstance(value, bool):
        raise mistake("A time needs a unit.", f"e.g. `{value}m` for minutes, `{value}h` for hours")
    if not isinstance(value, str):
        raise mistake("Expected a time.", _FORMS)
    text = value.strip().lower()
    if text in ("unlimited", "infinite"):
        return "UNLIMITED"
    if _OWN.fullmatch(text):
        return text
    days = _DAYS.fullmatch(text)
    if days is not None:
        return f"{int(days[1])}-{int(days[2]):02}:{days[3] or '00'}:00"
    if _SHORT.fullmatch(text):
        return _spelled(sum(int(number) * _UNITS[unit[0]] for number, unit in _PART.findall(text)))
    if re.fullmatch(r"\d+:\d{2}", text):
        first = text.partition(":")[0]
        raise mistake(
            "This can be hours and minutes, or minutes and seconds.", f"e.g. `{first}h` or `{first}m`"
        )
    if text.isdigit():
        raise mistake("A time needs a unit.", f"e.g. `{text}m` for minutes, `{text}h` for hours")
    raise mistake("Not a valid time.", _FORMS)


def _spelled(seconds: int) -> str:
    days, rest = divmod(seconds, 86400)
    clock = f"{rest // 3600:02}:{rest // 60 % 60:02}:{rest % 60:02}"
    return f"{days}-{clock}" if days else clock

"""Points in time as users write them."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from rackwright.boundary import printable
from rackwright.errors import RackwrightError

_AGO = re.compile(r"([0-9]{1,6})(s|min|m|h|d|w)")
_SECONDS = {"s": 1, "m": 60, "min": 60, "h": 3600, "d": 86400, "w": 7 * 86400}
_FORMS = ("%Y-%m-%d", "%Y-%m-%d %H:%M", "%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M", "%Y-%m-%dT%H:%M:%S")
_TODAY = ("%H:%M", "%H:%M:%S")


def moment(text: str, now: float) -> float:
    """`2h` is two hours ago; otherwise a date, a time of today or both, in UTC. RackwrightError for anything else.

    Never before 1970: no line is that old, and journal tools accept no negative time.
    """
    found = _AGO.fullmatch(text.strip())
    if found:
        return max(0.0, now - int(found[1]) * _SECONDS[found[2]])
    written = text.strip().removesuffix("Z")
    for form in (*_FORMS, *_TODAY):
        try:
            at = datetime.strptime(written, form).replace(tzinfo=UTC)
        except ValueError:
            continue
        if form in _TODAY:
            today = datetime.fromtimestamp(now, UTC)
            at = at.replace(year=today.year, month=today.month, day=today.day)
            at -= timedelta(days=at.timestamp() > now)  # 23:50 at five past midnight is yesterday's
        return max(0.0, at.timestamp())
    raise RackwrightError(
        f"{printable(text, 60)} is not a valid time.",
        hint="e.g. 2h, 30m, 3d, 10:30 or 2026-11-27 10:30, in UTC",
    )

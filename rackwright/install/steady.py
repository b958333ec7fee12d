"""The time of day as this process counts it: right when it began, and without the jumps of a clock that is set."""

from __future__ import annotations

import time

_BEGAN = time.time() - time.monotonic()


def now() -> float:
    """Seconds since 1970."""
    return _BEGAN + time.monotonic()

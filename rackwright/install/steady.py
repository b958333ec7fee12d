"""The time of day, correct at process start and unaffected by later clock changes."""

from __future__ import annotations

import time

_BEGAN = time.time() - time.monotonic()


def now() -> float:
    """Seconds since 1970."""
    return _BEGAN + time.monotonic()

"""Figures as people read them."""

from __future__ import annotations


def duration(seconds: float) -> str:
    """E.g. `42 s`, `3 min 5 s`, `2 h 0 min`."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    if minutes < 60:
        return f"{minutes} min {rest} s" if rest else f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if minutes else f"{hours} h"

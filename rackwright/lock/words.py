"""A refusal, and lists as its sentences print them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Refusal:
    """One reason why a combination cannot be locked: a full sentence, and what to do."""

    message: str
    hint: str | None = None


def listed(words: Sequence[str]) -> str:
    """`a`, `a and b`, `a, b and c`; nothing: `nothing`."""
    if not words:
        return "nothing"
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"

"""`did you mean ...?`"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches

_LISTED = 12
_WORD = 60


def short(word: object) -> str:
    """A word of the file as messages quote it, cut to 60 characters."""
    text = " ".join(str(word).split())
    return text if len(text) <= _WORD else text[: _WORD - 3] + "..."


def suggest(word: object, known: Iterable[str], *, what: str = "known") -> str | None:
    """A hint for an unknown word: the nearest known one, else the list; None if nothing is known."""
    names = list(dict.fromkeys(known))
    return nearest(word, names) or (f"{what}: {listed(names)}" if names else None)


def nearest(word: object, known: Iterable[str]) -> str | None:
    """A hint with the nearest known word, None if none is near."""
    close = get_close_matches(short(word).lower(), list(known), n=1, cutoff=0.6)
    return f"did you mean `{close[0]}`?" if close else None


def listed(names: Sequence[str]) -> str:
    """The first names and the number of the others."""
    more = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
    return f"{', '.join(names[:_LISTED])}{more}"

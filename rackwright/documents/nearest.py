"""`did you mean ...?`"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

_LISTED = 12
_WORD = 60


def short(word: object) -> str:
    """A word of the file as messages repeat it: whole, unless it is absurdly long."""
    text = " ".join(str(word).split())
    return text if len(text) <= _WORD else text[: _WORD - 3] + "..."


def suggest(word: object, known: Iterable[str], *, what: str = "known") -> str | None:
    """A hint for a word nobody knows: the nearest known one, else the list; None if nothing is known."""
    names = list(dict.fromkeys(known))
    close = get_close_matches(short(word).lower(), names, n=1, cutoff=0.6)
    if close:
        return f"did you mean `{close[0]}`?"
    if not names:
        return None
    more = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
    return f"{what}: {', '.join(names[:_LISTED])}{more}"

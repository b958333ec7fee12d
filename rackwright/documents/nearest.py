"""`did you mean ...?`, only where a known word is really near."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from heapq import nsmallest

from rackwright.boundary import printable
from rackwright.documents.synonyms import SYNONYMS

MANY = 12
"""Known words from which a hint does not list them all."""
_WORD = 60
_CHOICE = 3
"""Most words that a hint offers."""
_NEAREST = 5
"""Known words that a hint lists where they are many and none is near."""
_COMPARED = 2000
"""Most words that are compared with the unknown one, in some 0.05 s."""
_SHORTEST_PART = 4
"""Length from which a part of a known word is enough to suggest the word."""


def short(word: object) -> str:
    """A word of the file as messages quote it, cut to 60 characters."""
    text = printable(" ".join(str(word).split()))
    return text if len(text) <= _WORD else text[: _WORD - 3] + "..."


def suggest(word: object, known: Iterable[str], *, what: str = "known") -> str | None:
    """A hint for an unknown word: the known one that was meant, else all, or of many the nearest; None if there are none."""
    names = list(dict.fromkeys(known))
    if not names:
        return None
    if (meant := nearest(word, names)) is not None:
        return meant
    if len(names) <= MANY:
        return f"{what}: {', '.join(names)}"
    return f"{what}, the nearest of {len(names)}: {', '.join(_closest(short(word), names))}"


def nearest(word: object, known: Iterable[str]) -> str | None:
    """A hint with the nearest known word, or a few that are equally near; None if none is near."""
    names = list(dict.fromkeys(known))
    text = short(word[0] if isinstance(word, list) and len(word) == 1 else word)
    found = _same(text, names) or _synonym(text, names) or _misspelt(text, names) or _part(text, names)
    words = [f"`{name}`" for name in found[:_CHOICE]]
    return (
        f"did you mean {', '.join(words[:-1])}{' or ' if len(words) > 1 else ''}{words[-1]}?"
        if words
        else None
    )


def _closest(word: str, names: list[str]) -> list[str]:
    """The few that share most with a word: its parts first, then the fewest edits for their length."""
    text, parts = word.lower(), set(_parts(word))

    def distance(name: str) -> tuple[int, float]:
        return -len(parts & set(_parts(name))), _edits(text, name.lower()) / max(len(text), len(name))

    return nsmallest(_NEAREST, names[:_COMPARED], key=distance)


def listed(names: Sequence[str]) -> str:
    """The first names and the number of the others."""
    more = f" and {len(names) - MANY} more" if len(names) > MANY else ""
    return f"{', '.join(names[:MANY])}{more}"


def _parts(word: str) -> list[str]:
    """`maxTime`, `max-time` and `Max Time` as `max`, `time`."""
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", word)
    return [part.lower() for part in re.split(r"[\s_-]+", spaced) if part]


def _plain(word: str) -> str:
    """Without case, separators and a plural's ending."""
    joined = "".join(_parts(word))
    for ending, instead in (("ies", "y"), ("sses", "ss"), ("ches", "ch"), ("s", "")):
        if joined.endswith(ending) and not joined.endswith("ss") and len(joined) > len(ending) + 1:
            return joined.removesuffix(ending) + instead
    return joined


def _same(word: str, known: list[str]) -> list[str]:
    return [name for name in known if _plain(name) == _plain(word)]


def _synonym(word: str, known: list[str]) -> list[str]:
    return [name for name in SYNONYMS.get(_plain(word), ()) if name in known][:1]


def _misspelt(word: str, known: list[str]) -> list[str]:
    """The words that are fewest edits away, as few as a slip of the fingers makes."""
    text = word.lower()
    best = len(text)
    found: list[str] = []
    for name in known:
        longer = max(len(text), len(name))
        most = 0 if longer < 3 else 1 if longer < 6 else 2 if longer < 12 else 3
        if abs(len(text) - len(name)) <= most:
            distance = _edits(text, name.lower())
            if distance <= most and distance <= best:
                found = [name] if distance < best else [*found, name]
                best = distance
    return found


def _edits(one: str, other: str) -> int:
    """Letters to insert, remove, replace or swap with their neighbour (optimal string alignment)."""
    before: list[int] = []
    row = list(range(len(other) + 1))
    for i, letter in enumerate(one, 1):
        last, row, before = row, [i], row if i == 1 else before
        for j, there in enumerate(other, 1):
            cost = min(last[j] + 1, row[j - 1] + 1, last[j - 1] + (letter != there))
            if i > 1 and j > 1 and letter == other[j - 2] and one[i - 2] == there:
                cost = min(cost, before[j - 2] + 1)
            row.append(cost)
        before = last
    return row[-1]


def _part(word: str, known: list[str]) -> list[str]:
    """The one known word that has this one as a whole part: `driver` of `nvidia_driver`."""
    text = _parts(word)
    if len("".join(text)) < _SHORTEST_PART:
        return []
    found = [
        name
        for name in known
        if any(_parts(name)[at : at + len(text)] == text for at in range(len(_parts(name))))
    ]
    return found if len(found) == 1 else []

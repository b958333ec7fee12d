"""Text in the cluster file must be one line of visible characters.

A line break inside a value would become a second line of a file on a node, e.g. `Trusted: yes` in a package source;
escape sequences and zero-width characters could make a plan show something other than what is applied. So each model
refuses them in every text, including keys. A model that accepts several lines in a field lists it in
`several_lines`.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping
from pathlib import PurePath

from pydantic_core import PydanticCustomError

from rackwright.boundary import printable

TextPath = tuple[str | int, ...]

REFUSED = "unprintable"
"""Pydantic error type for such a text."""

_CATEGORIES = ("Cc", "Cf", "Cs", "Co", "Zl", "Zp")
"""Control, format (zero width, direction), surrogate, private; separators of lines and paragraphs (Unicode 15, 4.5)."""
_BREAKS = "\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029"
"""What Python's splitlines and some parsers treat as the end of a line."""
_DIRECTION = re.compile("[\u200e\u200f\u202a-\u202e\u2066-\u2069]")


def mistake_in(text: str, *, several_lines: bool = False, what: str = "text") -> tuple[str, str] | None:
    """What is wrong with text that contains more than visible characters, and a hint; None if it is clean.

    `several_lines`: allow line feeds and tabs. `what`: name of the text in the message.
    """
    if text.isprintable():
        return None
    for one in text:
        if unicodedata.category(one) not in _CATEGORIES or (several_lines and one in "\n\t"):
            continue
        return _sentence(text, one, what)
    return None


def refuse_unprintable(value: object, *, several_lines: bool = False) -> None:
    """Raise pydantic's error for the first such text in a value; nested models have already checked theirs."""
    for path, text, is_key in texts_in(value):
        what = "key" if is_key else "text"
        place = "" if is_key or not path else f" at `{'.'.join(printable(str(part)) for part in path)}`"
        found = mistake_in(text, several_lines=several_lines and not is_key, what=what + place)
        if found is not None:
            raise PydanticCustomError(REFUSED, "{message}", {"message": found[0], "hint": found[1]})


def texts_in(value: object, path: TextPath = ()) -> Iterator[tuple[TextPath, str, bool]]:
    """Path, text, and whether it is a key, for each text in plain data."""
    if isinstance(value, str):
        yield path, value, False
    elif isinstance(value, PurePath):
        yield path, str(value), False
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            if isinstance(key, str):
                yield (*path, key), key, True
            yield from texts_in(inner, (*path, key))
    elif isinstance(value, list | tuple | set | frozenset):
        for index, inner in enumerate(value):
            yield from texts_in(inner, (*path, index))


def hidden_direction(text: str) -> Iterator[int]:
    """Positions of characters that reverse the text direction: they make comments look like values (CVE-2021-42574)."""
    return (found.start() for found in _DIRECTION.finditer(text))


def _sentence(text: str, one: str, what: str) -> tuple[str, str]:
    if one in _BREAKS:
        ends = text.rstrip(_BREAKS)
        if one == "\n" and not any(character in ends for character in _BREAKS):
            return (
                f"The {what} ends with a line break.",
                "write it on one line, in quotes; a block after `|` or `>` ends with a line break",
            )
        return f"The {what} contains a line break.", "write it on one line, in quotes"
    if one == "\t":
        return f"The {what} contains a tab.", "use a space"
    if unicodedata.category(one) == "Cc":
        return f"The {what} contains the control character {printable(one)}.", "remove it"
    return (
        f"The {what} contains the invisible character {printable(one)}.",
        "remove it; retype the text if it was pasted",
    )

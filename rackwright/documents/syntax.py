"""What the YAML parser says, in our words."""

from __future__ import annotations

import re
from dataclasses import dataclass

import yaml


@dataclass(frozen=True, slots=True)
class SyntaxMistake:
    """A mistake below the level of keys and values; line and column count from 1."""

    line: int
    column: int
    message: str
    hint: str | None


class DocumentError(Exception):
    """The file has no data at all to speak of; `mistakes` says why."""

    def __init__(self, *mistakes: SyntaxMistake) -> None:
        super().__init__(mistakes[0].message)
        self.mistakes = mistakes


_TABBED = re.compile(r"^ *\t+\s*\S")

_SENTENCES: tuple[tuple[str, str, str | None], ...] = (
    (
        "mapping values are not allowed",
        "A second `:` stands where the value already began.",
        "indent the line as its neighbours are, or quote a value that contains `: `",
    ),
    (
        "could not find expected ':'",
        "This line has no `:` after its key.",
        "write `key: value`, with a space after the colon",
    ),
    (
        "did not find expected key",
        "This line is not indented as its neighbours are.",
        "keys of one mapping start in the same column",
    ),
    (
        "did not find expected '-' indicator",
        "This list ends in a line that is no list item.",
        "every item of a list starts with `- ` in the same column",
    ),
    (
        "found unexpected end of stream",
        "A quote that opens before is never closed.",
        "close the quote",
    ),
    (
        "did not find expected ',' or ']'",
        "A list in `[` `]` is not closed, or lacks a comma.",
        'quote text that contains brackets, e.g. "gpu[01-32]"',
    ),
    (
        "did not find expected ',' or '}'",
        "A mapping in `{` `}` is not closed, or lacks a comma.",
        "close it with `}`",
    ),
    (
        "found character that cannot start any token",
        "A value cannot start with this character.",
        "put the value in quotes",
    ),
    (
        "control characters are not allowed",
        "The file contains a control character.",
        "remove it",
    ),
    (
        "block sequence entries are not allowed",
        "A list item cannot start here.",
        "put the `- ` on a line of its own below the key",
    ),
    (
        "did not find expected node content",
        "A value is missing here.",
        "quote text that contains `,` `[` `]` `{` or `}`",
    ),
    (
        "found undefined tag handle",
        "Tags are not allowed.",
        "quote a value that starts with `!`",
    ),
    (
        "found unknown escape character",
        "Text in double quotes contains a `\\` that means nothing.",
        "use single quotes",
    ),
)


def explain(error: yaml.YAMLError, text: str) -> tuple[SyntaxMistake, ...]:
    """The parser's complaint as sentences; every tab of the file where tabs are the reason."""
    line, column = _position(error, text)
    lines = text.splitlines()
    tabs = [number for number, content in enumerate(lines, 1) if _TABBED.match(content)]
    if tabs and line >= tabs[0]:
        return tuple(
            SyntaxMistake(
                number,
                lines[number - 1].index("\t") + 1,
                "A tab stands in the indentation.",
                "YAML is indented with spaces",
            )
            for number in tabs
        )
    said = str(getattr(error, "problem", None) or getattr(error, "reason", None) or "")
    for words, sentence, hint in _SENTENCES:
        if words in said:
            return (SyntaxMistake(line, column, sentence, hint),)
    return (SyntaxMistake(line, column, f"This is not YAML: {said or 'it cannot be parsed'}.", None),)


def _position(error: yaml.YAMLError, text: str) -> tuple[int, int]:
    mark = getattr(error, "problem_mark", None)
    if mark is not None:
        return mark.line + 1, mark.column + 1
    offset = getattr(error, "position", None)
    if isinstance(offset, int):
        before = text[:offset]
        return before.count("\n") + 1, len(before) - before.rfind("\n")
    return 1, 1

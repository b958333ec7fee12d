"""YAML parser errors as plain messages."""

from __future__ import annotations

import re
from dataclasses import dataclass

import yaml


@dataclass(frozen=True, slots=True)
class SyntaxMistake:
    """A mistake in the YAML itself; line and column count from 1."""

    line: int
    column: int
    message: str
    hint: str | None


class DocumentError(Exception):
    """The file has no usable data; `mistakes` has the reasons."""

    def __init__(self, *mistakes: SyntaxMistake) -> None:
        super().__init__(mistakes[0].message)
        self.mistakes = mistakes


_TABBED = re.compile(r"^ *\t+\s*\S")

_SENTENCES: tuple[tuple[str, str, str | None], ...] = (
    (
        "mapping values are not allowed",
        "A second `:` after the value has already begun.",
        "indent the line like its neighbours, or quote a value that contains `: `",
    ),
    (
        "could not find expected ':'",
        "This line has no `:` after its key.",
        "write `key: value`, with a space after the colon",
    ),
    (
        "did not find expected key",
        "This line is not indented like its neighbours.",
        "start the keys of one mapping in the same column",
    ),
    (
        "did not find expected '-' indicator",
        "A line in this list is not a list item.",
        "start every item of a list with `- ` in the same column",
    ),
    (
        "found unexpected end of stream",
        "A quote opened before this line is never closed.",
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
        "put the `- ` on a separate line below the key",
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
        "Text in double quotes contains an unknown `\\` escape.",
        "use single quotes",
    ),
)


def explain(error: yaml.YAMLError, text: str) -> tuple[SyntaxMistake, ...]:
    """The parser's error as messages; one per tab if tabs are the cause."""
    line, column = _position(error, text)
    lines = text.splitlines()
    tabs = [number for number, content in enumerate(lines, 1) if _TABBED.match(content)]
    if tabs and line >= tabs[0]:
        return tuple(
            SyntaxMistake(
                number,
                lines[number - 1].index("\t") + 1,
                "The indentation contains a tab.",
                "indent with spaces",
            )
            for number in tabs
        )
    problem = str(getattr(error, "problem", None) or getattr(error, "reason", None) or "")
    for words, sentence, hint in _SENTENCES:
        if words in problem:
            return (SyntaxMistake(line, column, sentence, hint),)
    return (SyntaxMistake(line, column, f"Not valid YAML: {problem or 'it cannot be parsed'}.", None),)


def _position(error: yaml.YAMLError, text: str) -> tuple[int, int]:
    mark = getattr(error, "problem_mark", None)
    if mark is not None:
        return mark.line + 1, mark.column + 1
    offset = getattr(error, "position", None)
    if isinstance(offset, int):
        before = text[:offset]
        return before.count("\n") + 1, len(before) - before.rfind("\n")
    return 1, 1

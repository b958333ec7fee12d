"""Pieces of Markdown that the generated pages are made of."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from html import escape

ROOT_LINK = "../"
"""From a generated page, all of which are in a folder, to docs/."""


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table, or nothing where it has no rows; cells are Markdown of one line."""
    lines = [f"| {' | '.join(cell(text) for text in row)} |" for row in rows]
    if not lines:
        return ""
    return "\n".join([f"| {' | '.join(head)} |", "|" + "---|" * len(head), *lines])


def cell(text: str) -> str:
    """Text for a cell: one line, with bars that end no cell."""
    return re.sub(r"\s+", " ", text).strip().replace("|", "\\|")


def code(text: str) -> str:
    """Inline code, also of text that holds backticks."""
    fence = "`" * (1 + max((len(run) for run in re.findall("`+", text)), default=0))
    pad = " " if "`" in text else ""
    return f"{fence}{pad}{text}{pad}{fence}"


def prose(text: str) -> str:
    """Text of the code as Markdown: what HTML and Markdown would take for markup is escaped, backticks stay."""
    pieces = re.split(r"(`+[^`]+`+)", text)
    return "".join(
        piece if number % 2 else re.sub(r"([\\*_\[\]{}])", r"\\\1", escape(piece, quote=False))
        for number, piece in enumerate(pieces)
    )


def page(*parts: str) -> str:
    """The parts that are not empty, a blank line between them."""
    return "\n\n".join(part.strip("\n") for part in parts if part.strip()) + "\n"


def section(title: str, body: str, level: int = 2) -> str:
    """A heading with its text; nothing where there is no text."""
    return f"{'#' * level} {title}\n\n{body.strip()}" if body.strip() else ""

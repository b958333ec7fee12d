"""CSV files that a cluster file refers to: rows as column-to-cell mappings, each with its line number."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from rackwright.documents.nearest import short, suggest
from rackwright.model.plain_text import mistake_in

MAX_BYTES = 16 * 2**20
MAX_LINE = 1000
_ENDS_OF_LINES = re.compile(r"\r\n|\r|\n")

Hint = str | Callable[[], str | None] | None


class Wrong(Exception):  # noqa: N818 - the reason why a row or a file is rejected
    """What is wrong with a row or a file."""

    def __init__(self, message: str, hint: Hint = None) -> None:
        super().__init__(message)
        self.message = message
        self._hint = hint

    @property
    def hint(self) -> str | None:
        """What to do; computed only when needed, because near names are slow to find."""
        return self._hint() if callable(self._hint) else self._hint


@dataclass(frozen=True, slots=True)
class ListMistake:
    """One mistake in a list; the message starts with file and line."""

    message: str
    hint: str | None = None


@dataclass(frozen=True)
class Columns:
    """Column names of a list."""

    required: tuple[str, ...]
    optional: tuple[str, ...]

    @property
    def every(self) -> tuple[str, ...]:
        """Required and optional columns."""
        return (*self.required, *self.optional)

    @property
    def hint(self) -> str:
        """Hint for the header line."""
        return f"start the list with the header `{','.join(self.required)}`; optional: {', '.join(self.optional)}"


@dataclass(frozen=True)
class Table:
    """A list whose header has been read; its rows follow."""

    header: tuple[str, ...]
    lines: Iterator[tuple[int, str]]
    columns: Columns

    def row(self, line: str) -> dict[str, str]:
        """The cells of a row by column, empty if missing; raises Wrong."""
        cells = _cells(line)
        if any(cells[len(self.header) :]):
            raise Wrong(
                f"The row has {len(cells)} columns, but the header has {len(self.header)}.",
                "quote text that contains commas",
            )
        row = dict.fromkeys(self.columns.every, "") | dict(zip(self.header, cells, strict=False))
        for column, text in row.items():
            wrong = mistake_in(text, what=f"column {column}")
            if wrong is not None:
                raise Wrong(*wrong)
        return row


def open_table(path: Path, columns: Columns) -> Table:
    """Open a list and read its header; raises Wrong if the file cannot be read or the header is invalid."""
    lines = _lines(_text(path))
    return Table(_header(path, lines, columns), lines, columns)


def _text(path: Path) -> str:
    try:
        if path.exists() and not path.is_file():
            hint = "name a file in this directory" if path.is_dir() else None
            raise Wrong(f"{path} is not a file.", hint)
        with path.open("rb") as stream:
            raw = stream.read(MAX_BYTES + 1)
    except FileNotFoundError:
        raise Wrong(f"{path} does not exist.", "the path is relative to the cluster file") from None
    except OSError as error:
        reason = (error.strerror or type(error).__name__).lower()
        raise Wrong(f"Cannot read {path}: {reason}.") from None
    if len(raw) > MAX_BYTES:
        raise Wrong(f"{path.name} is larger than {MAX_BYTES // 2**20} MiB.")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = len(_ENDS_OF_LINES.findall(raw[: error.start].decode())) + 1
        byte = f"byte 0x{raw[error.start]:02x} is invalid"
        raise Wrong(
            f"{path.name}:{line}: The file is not valid UTF-8: {byte}.", "save the file as UTF-8"
        ) from None


def _lines(text: str) -> Iterator[tuple[int, str]]:
    """Lines that are neither blank nor comments, with their numbers."""
    for number, line in enumerate(_ENDS_OF_LINES.split(text), 1):
        if line.strip() and not line.lstrip().startswith("#"):
            yield number, line


def _header(path: Path, lines: Iterator[tuple[int, str]], columns: Columns) -> tuple[str, ...]:
    """The column names in the header line."""
    number, line = next(lines, (0, ""))
    if not number:
        raise Wrong(f"{path.name} is empty.", columns.hint)
    where = f"{path.name}:{number}: "
    try:
        header = tuple(cell.lower() for cell in _cells(line.rstrip(", \t")))
    except Wrong as wrong:
        raise Wrong(f"{where}{wrong.message}", wrong.hint) from None
    missing = [column for column in columns.required if column not in header]
    if missing:
        other = next((sign for sign in (";", "\t") if sign in line), None)
        hint = "separate the columns with commas" if other else columns.hint
        raise Wrong(f"{where}Missing columns in the header: {', '.join(missing)}.", hint)
    for index, column in enumerate(header):
        if column in header[:index]:
            raise Wrong(
                f"{where}The header has {short(column) or 'a column without a name'} twice.", "remove one"
            )
        if column not in columns.every:
            known = suggest(column, columns.every, what="columns")
            raise Wrong(
                f"{where}Unknown column {short(column)}." if column else f"{where}A column has no name.",
                known,
            )
    return header


def _cells(line: str) -> list[str]:
    if len(line) > MAX_LINE:
        raise Wrong(f"The line is longer than {MAX_LINE} characters.")
    try:
        return [cell.strip() for cell in next(csv.reader([line], strict=True, skipinitialspace=True))]
    except csv.Error as error:
        hint = 'quote text that contains commas or quotes, and double each quote in it: "K17 ""spare"""'
        if "unexpected end" in str(error):
            raise Wrong("The line has an unclosed quote.", hint) from None
        raise Wrong("A quote closes before the end of the cell.", hint) from None

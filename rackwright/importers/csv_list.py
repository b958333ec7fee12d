"""Lists of nodes: CSV as spreadsheets save it, one row for each node."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from pathlib import Path

from rackwright.documents.nearest import short, suggest
from rackwright.errors import RackwrightError
from rackwright.importers.columns import field_of, header_of
from rackwright.importers.records import Cell, Field, Record, Source, quoted, read_text
from rackwright.model.plain_text import mistake_in

_DELIMITERS = ",;\t|"
_MAX_CELL = 1000


def read_csv(path: Path) -> Source:
    """The nodes of a list. Every cell that cannot be used is a mistake with its line and column."""
    source = Source("list", [path.name], strict=True)
    rows = _rows(path)
    if not rows:
        raise RackwrightError(
            f"{path} is empty.", hint="begin the list with a header, e.g. `name,role,ip,model`"
        )
    (line, header), *rest = rows
    columns = _columns(source, f"{path.name}:{line}", header)
    if "name" not in columns.values():
        raise RackwrightError(
            f"{path.name}:{line}: No column has the names of the nodes: {', '.join(short(cell) for cell in header)}.",
            hint="name it `name` or `hostname`",
        )
    for number, row in rest:
        record = _record(source, path.name, number, row, header, columns)
        if record is not None:
            source.records.append(record)
    return source


def _rows(path: Path) -> list[tuple[int, list[str]]]:
    """The rows that are neither empty nor a comment, with the number of their first line."""
    text = read_text(path)
    first = next(
        (line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")), ""
    )
    delimiter = max(_DELIMITERS, key=first.count)
    reader = csv.reader(
        io.StringIO(text, newline=""), delimiter=delimiter, strict=True, skipinitialspace=True
    )
    rows: list[tuple[int, list[str]]] = []
    start = 1
    try:
        for row in reader:
            cells = [cell.strip() for cell in row]
            if any(cells) and not cells[0].startswith("#"):
                rows.append((start, cells))
            start = reader.line_num + 1
    except csv.Error:
        raise RackwrightError(
            f"{path.name}:{start}: The row is not CSV: a quote is not closed, or ends before its text does.",
            hint=f'put a text with {"tabs" if delimiter == chr(9) else f"`{delimiter}`"} or quotes in quotes: "K17 ""spare"""',
        ) from None
    return rows


def _columns(source: Source, where: str, header: Sequence[str]) -> dict[int, Field]:
    """The field of each column that has one; others are ignored, and two of one field are a mistake."""
    found: dict[int, Field] = {}
    for index, title in enumerate(header):
        field = field_of(title)
        if field is None:
            if title:
                source.ignored.append(f"{where}: column {quoted(title)}: a cluster file has nothing of it")
        elif field in found.values():
            first = header[next(at for at, one in found.items() if one == field)]
            source.mistakes.append(
                f"{where}: The columns {quoted(first)} and {quoted(title)} are both about the {header_of(field)}; remove one."
            )
        else:
            found[index] = field
    if not found:
        source.mistakes.append(
            f"{where}: No column is known; {suggest(header[0], ('name', 'role', 'ip'), what='columns')}."
        )
    return found


def _record(
    source: Source,
    file: str,
    number: int,
    row: Sequence[str],
    header: Sequence[str],
    columns: dict[int, Field],
) -> Record | None:
    where = f"{file}:{number}"
    if any(row[len(header) :]):
        source.mistakes.append(f"{where}: The row has {len(row)} columns, the header {len(header)}.")
        return None
    cells: dict[Field, Cell] = {}
    for index, text in enumerate(row[: len(header)]):
        wrong = (
            mistake_in(text)
            if len(text) <= _MAX_CELL
            else (f"The text has more than {_MAX_CELL} characters.", None)
        )
        place = f"{where}, column {index + 1}"
        if wrong is not None:
            source.mistakes.append(f"{place}: {wrong[0]}")
        elif index in columns and text:
            cells[columns[index]] = Cell(text, place)
    return Record(where, cells)

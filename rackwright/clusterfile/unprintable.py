"""Finds line breaks, control characters and invisible characters in every text of the file."""

from __future__ import annotations

from rackwright.clusterfile.fields import may_have_lines
from rackwright.clusterfile.report import Report
from rackwright.documents.document import DataPath
from rackwright.documents.syntax import SyntaxMistake
from rackwright.model.plain_text import hidden_direction, mistake_in, texts_in


def find_unprintable(report: Report) -> None:
    """Report each such text, and characters that reverse a line of the file, including comments.

    Keys with such characters are dropped from the data, so that no name contains them.
    """
    wrong_keys: list[DataPath] = []
    for path, text, is_key in texts_in(report.document.data):
        if text.isprintable():
            continue
        allowed = not is_key and _takes_lines(report, path)
        found = mistake_in(text, several_lines=allowed, what="key" if is_key else "text")
        if found is not None:
            report.add_unprintable(path, *found, key=is_key)
            wrong_keys += [path] * is_key
    for path in reversed(wrong_keys):
        parent = report.document.value(path[:-1])
        if isinstance(parent, dict):  # None below a dropped key
            parent.pop(path[-1], None)
    _scan_lines(report)


def _takes_lines(report: Report, path: DataPath) -> bool:
    """Whether the option at a path of the file may span several lines."""
    if path[:1] == ("roles",):
        role, below = path[1:2], path[2:]
    elif path[:1] == ("nodes",) and path[2:3] == ("options",):
        role, below = path[3:4], path[4:]
    else:
        return False
    name = role[0] if role else None
    known = isinstance(name, str) and name in report.roles.names
    return known and may_have_lines(report.roles.options_class(str(name)), below)


def _scan_lines(report: Report) -> None:
    for number, line in enumerate(report.document.text.split("\n"), 1):
        for at in () if line.isprintable() else hidden_direction(line):
            report.add_at(
                SyntaxMistake(
                    number,
                    at + 1,
                    f"The character U+{ord(line[at]):04X} reverses the text direction, so this line does not show "
                    "what rackwright reads.",
                    "remove it",
                )
            )
            break

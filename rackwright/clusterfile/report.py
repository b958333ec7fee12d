"""Collects the mistakes and warnings of one file, each with line and column."""

from __future__ import annotations

import re
from collections.abc import Iterable

from rackwright.boundary import printable
from rackwright.clusterfile.roles import Roles
from rackwright.documents.document import DataPath, Document
from rackwright.documents.syntax import SyntaxMistake
from rackwright.documents.yaml_data import Data
from rackwright.errors import Problem

_PLAIN_KEY = re.compile(r"[A-Za-z0-9_-]+")
_VALUE_WIDTH = 80
_FRAGMENT = 8
"""Messages that repeat at least this many characters of a secret are dropped."""


class Report:
    """Mistakes found so far; each message is reported once per path."""

    def __init__(self, document: Document, roles: Roles | None = None) -> None:
        self.document = document
        self.roles = roles or Roles()
        """Those that the file may declare."""
        self._found: dict[tuple[DataPath, str], Problem] = {}
        self._last: list[Problem] = []
        self._warned: dict[tuple[DataPath, str], Problem] = {}
        self._paths: set[DataPath] = set()
        self._roots: set[DataPath] = set()
        self._secret: set[DataPath] = set()
        self._unprintable: set[DataPath] = set()
        self._short_of_keys: set[DataPath] = set()
        self._fragments: set[str] = set()

    def add(self, path: DataPath, message: str, hint: str | None = None, *, key: bool = False) -> None:
        """Report a mistake in the value at a path, or in its key if `key` is set."""
        problem = self._problem(path, message, hint, key)
        if problem is not None:
            self._note(path, problem)

    def add_last(self, path: DataPath, message: str, hint: str | None = None) -> None:
        """Report a mistake outside the file itself; listed after those in the file."""
        problem = self._problem(path, message, hint, key=True)
        if problem is not None:
            self._last.append(problem)

    def warn(self, path: DataPath, message: str, hint: str | None = None, *, key: bool = False) -> None:
        """Report a setting that is valid but rarely intended."""
        problem = self._problem(path, message, hint, key)
        if problem is not None:
            self._warned.setdefault((path, message), problem)

    def _problem(self, path: DataPath, message: str, hint: str | None, key: bool) -> Problem | None:
        if _below(path, self._secret) or self._repeats_secret(f"{message} {hint}"):
            return None  # the secret is already reported, and this message would reveal it
        if _below(path, self._unprintable) or path in self._short_of_keys:
            return None  # its characters are already reported, and everything else follows from them
        line, column = self.document.position(path, key=key)
        value = show_value(self.document.value(path))
        return Problem(self.document.file, line, column, show_path(path), value, message, hint)

    def add_secret(self, path: DataPath, message: str, hint: str) -> None:
        """Report a plaintext secret; its value and any other mistakes in it are never shown."""
        line, column = self.document.position(path)
        self._note(path, Problem(self.document.file, line, column, show_path(path), None, message, hint))
        self._secret.add(path)
        value = str(self.document.value(path))
        self._fragments.update(
            value[start : start + _FRAGMENT] for start in range(max(1, len(value) - _FRAGMENT))
        )

    def add_unprintable(self, path: DataPath, message: str, hint: str, *, key: bool) -> None:
        """Report text with control characters; other mistakes in it are not shown."""
        self.add(path, message, hint, key=key)
        self._unprintable.add(path)
        if key:
            self._short_of_keys.add(path[:-1])

    def add_at(self, mistake: SyntaxMistake) -> None:
        """Report a mistake at a text position instead of a path."""
        self._note(
            ("", mistake.line, mistake.column),
            Problem(
                self.document.file, mistake.line, mistake.column, "", None, mistake.message, mistake.hint
            ),
        )

    def clean(self, path: DataPath) -> bool:
        """Whether nothing is wrong at a path, below it, or in an enclosing value as a whole."""
        if path in self._roots:
            return False
        return not any(path[:length] in self._paths for length in range(1, len(path) + 1))

    def __len__(self) -> int:
        return len(self._found) + len(self._last)

    def problems(self) -> tuple[Problem, ...]:
        """Every mistake, in file order; then those outside the file."""
        return (*_in_order(self._found.values()), *self._last)

    def warnings(self) -> tuple[Problem, ...]:
        """Every warning, in file order."""
        return tuple(_in_order(self._warned.values()))

    def _note(self, path: DataPath, problem: Problem) -> None:
        self._found.setdefault((path, problem.message), problem)
        self._paths.add(path)
        self._roots.update(path[:length] for length in range(len(path)))

    def _repeats_secret(self, text: str) -> bool:
        """Whether a message repeats a secret of the file."""
        return any(fragment in text for fragment in self._fragments)


def _below(path: DataPath, roots: set[DataPath]) -> bool:
    """Whether a path is one of these or below one."""
    return any(path[:length] in roots for length in range(len(path) + 1))


def _in_order(problems: Iterable[Problem]) -> list[Problem]:
    return sorted(problems, key=lambda problem: (problem.line, problem.column))


def show_path(path: DataPath) -> str:
    """Path as text, e.g. `nodes[2].addresses.management`; unusual keys are quoted."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        elif _PLAIN_KEY.fullmatch(part):
            text += f".{part}" if text else part
        else:
            text += f'["{printable(part[:40])}"]'
    return text


def show_value(value: Data) -> str | None:
    """A scalar shortened to one line; lists and mappings only by size, since they may hold secrets."""
    if value is None:
        return None
    if isinstance(value, dict):
        return f"a mapping with {len(value)} key{'' if len(value) == 1 else 's'}"
    if isinstance(value, list):
        return f"a list of {len(value)}"
    if isinstance(value, bool):
        return str(value).lower()
    text = printable(str(value))
    return text if len(text) <= _VALUE_WIDTH else text[: _VALUE_WIDTH - 3] + "..."

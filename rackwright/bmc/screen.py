"""Emulates the terminal of a serial console, which firmware and boot loaders draw on.

UEFI's terminal driver moves the cursor (ESC [ row ; column H), clears (J, K) and colours (m); a menu's selected item
differs only in its background. Source: edk2, MdeModulePkg/Universal/Console/TerminalDxe (read 2026-11-27); ECMA-48.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from rackwright.boundary import printable

ROWS, COLUMNS = 100, 250
"""Larger than any console mode of firmware, which positions its text and never scrolls."""
_PENDING_MAX = 64
_TOKEN = re.compile(
    r"\x1b\[(?P<numbers>[0-9;?=]*)[ -/]*(?P<command>[@-~])"
    r"|(?P<other>\x1b(?:[()#][A-Za-z0-9]|[^\[()#]))|(?P<control>[\x00-\x1a\x1c-\x1f\x7f])|(?P<text>[^\x00-\x1f\x7f]+)"
)
_FRAME = re.compile(r"[\ufffd|]+|[+\-=]{2,}|^[+|]|[+|]$")
"""Box-drawing lines, which an ASCII terminal gets as + - and |."""
_LINE = re.compile(rb"\xe2[\x94-\x96][\x80-\xbf]")
_HALF_LINE = re.compile(rb"\xe2[\x94-\x96]?\Z")
_NOT_ASCII = re.compile("[\x80-\xff]")
_BLACK = 40


@dataclass(frozen=True, slots=True)
class Label:
    """Text in one row, without box lines."""

    text: str
    row: int
    background: int
    """SGR number: 40 black, 44 blue."""


class Screen:
    """Text and backgrounds of the screen, updated as bytes arrive."""

    def __init__(self) -> None:
        self._bytes = b""
        self._pending = ""
        self._clear()

    def feed(self, data: bytes) -> None:
        """Draw the new bytes; an incomplete escape sequence waits for its rest."""
        text = self._pending + self._decoded(data)
        self._pending, at = "", 0
        while at < len(text):
            found = _TOKEN.match(text, at)
            if found is None:
                if text[at] == "\x1b" and len(text) - at <= _PENDING_MAX:
                    self._pending = text[at:]
                    return
                at += 1  # not a terminal sequence
                continue
            at = found.end()
            self._draw(found)

    def labels(self) -> list[Label]:
        """Every text on the screen, from top to bottom."""
        found = []
        for number, characters in enumerate(self._text):
            row, start = "".join(characters), 0
            if row.isspace():
                continue
            for frame in [*_FRAME.finditer(row), None]:
                end = len(row) if frame is None else frame.start()
                if text := row[start:end].strip():
                    at = start + len(row[start:end]) - len(row[start:end].lstrip())
                    found.append(Label(text, number, self._backgrounds[number][at]))
                start = end if frame is None else frame.end()
        return found

    def lines(self) -> list[str]:
        """The non-empty rows, printable."""
        return [printable(text, 200) for row in self._text if (text := _plain("".join(row)))]

    def _decoded(self, data: bytes) -> str:
        """ASCII, and U+FFFD for each other character: box lines in UTF-8, or bytes of a PC code page.

        Not decoded as UTF-8: two bytes of a code page, e.g. the corner of a box, can form one character.
        """
        data = self._bytes + data
        whole = _HALF_LINE.sub(b"", data)
        self._bytes = data[len(whole) :]
        return _NOT_ASCII.sub("\ufffd", _LINE.sub(b"\xff", whole).decode("latin-1"))

    def _draw(self, found: re.Match[str]) -> None:
        if found["text"] is not None:
            for character in found["text"]:
                self._put(character)
        elif found["command"] is not None:
            numbers = [int(one) for one in re.findall(r"[0-9]{1,4}", found["numbers"])]
            self._command(found["command"], numbers)
        elif found["control"] is not None:
            self._control(found["control"])
        elif found["other"] == "\x1bc":
            self._clear()

    def _clear(self) -> None:
        self._row, self._column, self._background = 0, 0, _BLACK
        self._text = [[" "] * COLUMNS for _ in range(ROWS)]
        self._backgrounds = [[_BLACK] * COLUMNS for _ in range(ROWS)]

    def _put(self, character: str) -> None:
        if self._column >= COLUMNS:
            self._column = 0
            self._down()
        self._text[self._row][self._column] = character
        self._backgrounds[self._row][self._column] = self._background
        self._column += 1

    def _down(self) -> None:
        if self._row < ROWS - 1:
            self._row += 1
            return
        for grid, empty in ((self._text, " "), (self._backgrounds, _BLACK)):
            del grid[0]
            grid.append([empty] * COLUMNS)  # type: ignore[list-item]

    def _control(self, character: str) -> None:
        if character == "\r":
            self._column = 0
        elif character == "\n":
            self._down()
        elif character == "\b":
            self._column = max(self._column - 1, 0)
        elif character == "\t":
            self._column = min((self._column // 8 + 1) * 8, COLUMNS - 1)

    def _command(self, command: str, numbers: list[int]) -> None:
        first = numbers[0] if numbers else 0
        if command in "Hf":
            second = numbers[1] if len(numbers) > 1 else 1
            self._row, self._column = min(max(first, 1), ROWS) - 1, min(max(second, 1), COLUMNS) - 1
        elif command in "ABCD":
            step = max(first, 1)
            rows, columns = {"A": (-step, 0), "B": (step, 0), "C": (0, step), "D": (0, -step)}[command]
            self._row = min(max(self._row + rows, 0), ROWS - 1)
            self._column = min(max(self._column + columns, 0), COLUMNS - 1)
        elif command == "J":
            self._erase(first, self._row * COLUMNS + self._column, 0, ROWS * COLUMNS)
        elif command == "K":
            start = self._row * COLUMNS
            self._erase(first, start + self._column, start, start + COLUMNS)
        elif command == "m":
            for number in numbers or [0]:
                if number == 0 or number == 49:
                    self._background = _BLACK
                elif 40 <= number <= 47:
                    self._background = number

    def _erase(self, what: int, cursor: int, start: int, end: int) -> None:
        """From the cursor to the end (0), from the start to the cursor (1), or all (2)."""
        first, last = {0: (cursor, end), 1: (start, cursor + 1)}.get(what, (start, end))
        for place in range(first, min(last, ROWS * COLUMNS)):
            row, column = divmod(place, COLUMNS)
            self._text[row][column], self._backgrounds[row][column] = " ", self._background


def _plain(row: str) -> str:
    return " ".join(_FRAME.sub(" ", row).split())

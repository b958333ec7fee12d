"""A YAML file as data, with the position of each value."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

from rackwright.documents.syntax import DocumentError, SyntaxMistake
from rackwright.documents.yaml_data import Data, Place, YamlBuilder

DataPath = tuple[str | int, ...]
"""Keys and list indices from the top of the file to a value."""

MAX_BYTES = 8 * 1024 * 1024


@dataclass(frozen=True)
class Document:
    """A parsed file. `data` holds dicts with text keys, lists and scalars."""

    file: str
    sha256: str
    text: str
    data: Data
    root: Place
    mistakes: tuple[SyntaxMistake, ...]
    """Mistakes that do not stop the parser: duplicate keys and tags."""

    def value(self, path: DataPath) -> Data:
        """The value at a path, or None if there is none."""
        value = self.data
        for part in path:
            try:
                value = value[part]
            except (LookupError, TypeError):
                return None
        return value

    def holds(self, path: DataPath) -> bool:
        """Whether the file has a value at this path, null included."""
        parent = self.value(path[:-1]) if path else None
        if isinstance(parent, dict):
            return path[-1] in parent
        if isinstance(parent, list):
            return isinstance(path[-1], int) and path[-1] < len(parent)
        return not path

    def position(self, path: DataPath, *, key: bool = False) -> tuple[int, int]:
        """Line and column of the deepest existing part of a path; `key`: of its key."""
        place, found = self.root, 0
        for part in path:
            child = place.children.get(part)
            if child is None:
                break
            place, found = child, found + 1
        container = bool(place.children) or isinstance(self.value(path[:found]), dict | list)
        if place.key is not None and (key or container):
            return place.key
        return place.line, place.column


def read_document(path: Path) -> Document:
    """Read and parse a file. Raises DocumentError if it cannot be read or parsed."""
    return parse_document(_read(path), str(path))


def parse_document(raw: bytes, file: str) -> Document:
    """Parse a file's bytes; `file` is its name in messages."""
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = raw[: error.start]
        column = len(before[before.rfind(b"\n") + 1 :].decode("utf-8", "replace")) + 1
        raise DocumentError(
            SyntaxMistake(
                before.count(b"\n") + 1,
                column,
                f"The file is not valid UTF-8: byte 0x{raw[error.start]:02x} is invalid.",
                "save the file as UTF-8",
            )
        ) from None
    builder = YamlBuilder(text)
    return Document(
        file=file,
        sha256=hashlib.sha256(raw).hexdigest(),
        text=text,
        data=builder.data,
        root=builder.root,
        mistakes=tuple(builder.mistakes),
    )


def _read(path: Path) -> bytes:
    try:
        with path.open("rb") as stream:
            raw = stream.read(MAX_BYTES + 1)
    except FileNotFoundError:
        raise DocumentError(SyntaxMistake(1, 1, "The file does not exist.", None)) from None
    except IsADirectoryError:
        raise DocumentError(
            SyntaxMistake(1, 1, "This is a directory, not a file.", "name a file in this directory")
        ) from None
    except OSError as error:
        reason = (error.strerror or type(error).__name__).lower()
        raise DocumentError(SyntaxMistake(1, 1, f"Cannot read the file: {reason}.", None)) from None
    if len(raw) > MAX_BYTES:
        raise DocumentError(
            SyntaxMistake(
                1,
                1,
                "The file is larger than 8 MiB.",
                "declare identical nodes as one group, e.g. gpu[001-128]",
            )
        )
    return raw

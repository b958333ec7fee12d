"""YAML text as plain data, with the line and column of each value.

Built from the parser's events instead of a constructor: keys keep their positions, duplicate keys and tags
are found, and alias expansion is limited. Plain scalars follow YAML 1.2, so `52:54:00:12:34:56`
and `no` stay text and `0640` is not an octal number.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import yaml

from rackwright.documents.nearest import short
from rackwright.documents.syntax import DocumentError, SyntaxMistake, explain

Data: TypeAlias = Any
"""Parsed YAML: dicts with text keys, lists, text, numbers, booleans, None."""

MAX_DEPTH = 40
MAX_ALIASED = 50_000
"""Limit of values repeated by aliases in one file, ten times what a large site needs."""

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_INT = re.compile(r"[-+]?(?:0|[1-9][0-9]{0,17})|0x[0-9a-fA-F]{1,16}")
_FLOAT = re.compile(r"[-+]?(?:[0-9]+\.[0-9]*|\.[0-9]+|[0-9]+(?=[eE]))(?:[eE][-+]?[0-9]{1,2})?")
_WORDS: dict[str, bool | None] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}


@dataclass(slots=True)
class Place:
    """Position of a value; lines and columns count from 1."""

    line: int
    column: int
    key: tuple[int, int] | None = None
    """Line and column of the value's key, None for list items."""
    children: dict[str | int, Place] = field(default_factory=dict)


@dataclass(slots=True)
class _Frame:
    """A list or mapping that is being read."""

    data: dict[str, Data] | list[Data]
    place: Place
    anchor: str | None
    start: int
    key: str | None = None
    key_at: tuple[int, int] = (0, 0)
    merges: list[dict[str, Data]] = field(default_factory=list)
    skip: bool = False


class YamlBuilder:
    """Turns the parser's events into data and places."""

    def __init__(self, text: str) -> None:
        self.data: Data = None
        self.root = Place(1, 1)
        self.mistakes: list[SyntaxMistake] = []
        self._frames: list[_Frame] = []
        self._anchors: dict[str, tuple[Data, int] | None] = {}
        self._count = 0
        self._aliased = 0
        documents = 0
        try:
            for event in yaml.parse(text, Loader=_LOADER):
                if isinstance(event, yaml.DocumentStartEvent):
                    documents += 1
                    if documents == 2:
                        line, column = _at(event)
                        raise DocumentError(
                            SyntaxMistake(
                                line, column, "A second YAML document starts here.", "remove the line `---`"
                            )
                        )
                self._feed(event)
        except yaml.YAMLError as error:
            raise DocumentError(*explain(error, text)) from None
        if documents == 0 or self.data is None:
            raise DocumentError(SyntaxMistake(1, 1, "The file is empty.", "start with `version: 1`"))

    def _feed(self, event: yaml.Event) -> None:
        if isinstance(event, yaml.ScalarEvent):
            self._scalar(event)
        elif isinstance(event, yaml.MappingStartEvent | yaml.SequenceStartEvent):
            self._open(event)
        elif isinstance(event, yaml.MappingEndEvent | yaml.SequenceEndEvent):
            self._close()
        elif isinstance(event, yaml.AliasEvent):
            self._alias(event)

    def _scalar(self, event: yaml.ScalarEvent) -> None:
        line, column = _at(event)
        self._tag(event)
        frame = self._frames[-1] if self._frames else None
        if frame is not None and isinstance(frame.data, dict) and frame.key is None:
            self._take_key(frame, event.value, line, column)
            if event.anchor is not None:
                self._anchors[event.anchor] = (event.value, 1)
            return
        value = _resolve(event.value) if event.implicit[0] and event.tag is None else event.value
        self._count += 1
        if event.anchor is not None:
            self._anchors[event.anchor] = (value, 1)
        self._put(value, Place(line, column))

    def _take_key(self, frame: _Frame, key: str, line: int, column: int) -> None:
        frame.key, frame.key_at = key, (line, column)
        if key in frame.data and key != "<<":
            first = frame.place.children[key].key or (line, column)
            self.mistakes.append(
                SyntaxMistake(
                    line,
                    column,
                    f"The key `{short(key)}` appears twice in this mapping.",
                    f"the first is at line {first[0]}; keep one",
                )
            )
            frame.skip = True

    def _open(self, event: yaml.MappingStartEvent | yaml.SequenceStartEvent) -> None:
        line, column = _at(event)
        self._tag(event)
        if len(self._frames) >= MAX_DEPTH:
            raise DocumentError(
                SyntaxMistake(line, column, f"Values are nested more than {MAX_DEPTH} levels deep.", None)
            )
        parent = self._frames[-1] if self._frames else None
        if parent is not None and isinstance(parent.data, dict) and parent.key is None:
            raise DocumentError(SyntaxMistake(line, column, "A key must be plain text.", None))
        data: dict[str, Data] | list[Data] = {} if isinstance(event, yaml.MappingStartEvent) else []
        if event.anchor is not None:
            self._anchors[event.anchor] = None  # still open: an alias to it here would contain itself
        self._frames.append(_Frame(data, Place(line, column), event.anchor, self._count))

    def _close(self) -> None:
        frame = self._frames.pop()
        if isinstance(frame.data, dict):
            for merged in reversed(frame.merges):
                for key, value in merged.items():
                    frame.data.setdefault(key, value)
        self._count += 1
        if frame.anchor is not None:
            self._anchors[frame.anchor] = (frame.data, self._count - frame.start)
        self._put(frame.data, frame.place)

    def _alias(self, event: yaml.AliasEvent) -> None:
        line, column = _at(event)
        name = event.anchor or ""
        if name not in self._anchors:
            raise DocumentError(
                SyntaxMistake(line, column, f"The alias `*{name}` has no preceding anchor.", None)
            )
        target = self._anchors[name]
        if target is None:
            raise DocumentError(SyntaxMistake(line, column, f"The alias `*{name}` contains itself.", None))
        value, size = target
        self._count += size
        self._aliased += size
        if self._aliased > MAX_ALIASED:
            raise DocumentError(
                SyntaxMistake(
                    line,
                    column,
                    f"Aliases repeat more than {MAX_ALIASED} values.",
                    "use node ranges and `defaults:` instead of nested aliases",
                )
            )
        frame = self._frames[-1] if self._frames else None
        if frame is not None and isinstance(frame.data, dict) and frame.key is None:
            if not isinstance(value, str):
                raise DocumentError(SyntaxMistake(line, column, "A key must be plain text.", None))
            self._take_key(frame, value, line, column)
            return
        self._put(value, Place(line, column))

    def _put(self, value: Data, place: Place) -> None:
        if not self._frames:
            self.data, self.root = value, place
            return
        frame = self._frames[-1]
        if isinstance(frame.data, list):
            frame.place.children[len(frame.data)] = place
            frame.data.append(value)
            return
        key, place.key = frame.key or "", frame.key_at
        frame.key = None
        if frame.skip:
            frame.skip = False
        elif key == "<<" and _mergeable(value):
            frame.merges.extend(value if isinstance(value, list) else [value])
        else:
            frame.data[key] = value
            frame.place.children[key] = place

    def _tag(self, event: yaml.NodeEvent) -> None:
        tag = getattr(event, "tag", None)
        if tag is not None:
            line, column = _at(event)
            self.mistakes.append(
                SyntaxMistake(
                    line,
                    column,
                    f"Tags such as `{short(tag.replace('tag:yaml.org,2002:', '!!'))}` are not allowed.",
                    "remove the tag; put text in quotes",
                )
            )


def _mergeable(value: Data) -> bool:
    items = value if isinstance(value, list) else [value]
    return all(isinstance(item, dict) for item in items)


def _at(event: yaml.Event) -> tuple[int, int]:
    mark = event.start_mark
    if mark is None:  # libyaml always sets it; its type is optional
        return 1, 1
    return mark.line + 1, mark.column + 1


def _resolve(text: str) -> Data:
    if text in _WORDS:
        return _WORDS[text]
    first = text[0]
    if first.isdigit() or first in "+-.":
        if _INT.fullmatch(text):
            return int(text, 0) if text[:2] == "0x" else int(text)
        if _FLOAT.fullmatch(text):
            return float(text)
    return text

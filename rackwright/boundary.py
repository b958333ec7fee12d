"""The boundary to nodes: a node's answers are untrusted until they have passed here.

A node that is broken, or taken over, may answer anything. What it may not do is end a run that concerns other
nodes, exhaust the memory of this machine, or write to the operator's terminal. So every answer is limited in size
and depth, decompressed within bounds and validated, and its text is made printable before a person reads it. What is
refused raises Refused, which the caller turns into that node's own UNKNOWN.

The standard library alone, from Python 3.9 on: programs that run on nodes use it as well.
"""

from __future__ import annotations

import json
import math
import re
import unicodedata
import zlib
from typing import Any, Protocol, TypeVar

T_co = TypeVar("T_co", covariant=True)
T = TypeVar("T")


class Adapter(Protocol[T_co]):
    """The part of pydantic's TypeAdapter that is used; nodes have no pydantic."""

    def validate_python(self, value: Any, /) -> T_co: ...  # noqa: ANN401


ANSWER_MAX_BYTES = 16 * 2**20
"""Of one answer, decompressed. A working head with every role answers some 100 KiB."""
DEPTH_MAX = 32
"""Nesting limit of lists and objects. The deepest document that our programs send, the probe's, has ten levels."""
ITEMS_MAX = 1_000_000
"""Of list elements and object members. Each takes up to 100 bytes of memory once read, and two to write."""
_SURROGATE_ESCAPE = re.compile(r"\\u[dD][89a-fA-F]")
_UNPRINTABLE = ("Cc", "Cf", "Cn", "Cs", "Co", "Zl", "Zp")
"""Categories of characters that move the cursor, reorder or hide text, have no meaning yet, or cannot be encoded."""


class Refused(ValueError):  # noqa: N818 - reads as the sentence it is
    """An answer of a node that is not used. Its text is printable, one line of at most 300 characters."""

    def __init__(self, message: str) -> None:
        super().__init__(printable(message, 300))


def printable(text: str, limit: int | None = None) -> str:
    """The text in one line, each character that is not printable as its escape, e.g. `\\x1b`.

    Longer text than `limit` characters is cut off, with `...` as its end.
    """
    if limit is not None and len(text) > limit:
        text = text[: limit - 3] + "..."  # cut first: escaping 16 MiB takes seconds
    shown = text if _is_plain(text) else "".join(map(_escaped, text))
    return shown if limit is None or len(shown) <= limit else shown[: limit - 3] + "..."


def printable_lines(text: str) -> str:
    """As `printable`, with the text's own line breaks and tabs."""
    if _is_plain(text):
        return text
    return "".join(one if one in "\n\t" else _escaped(one) for one in text)


def printable_block(text: str, limit: int) -> str:
    """As `printable_lines`, at most `limit` characters, each line but the first indented by four spaces or more.

    So a line from a node never looks like our own output.
    """
    first, *rest = printable_lines(text[:limit]).split("\n")
    shown = "\n".join([first, *(line if line.startswith("    ") else f"    {line}" for line in rest)])
    return shown if len(shown) <= limit and len(text) <= limit else shown[: limit - 3] + "..."


def printable_data(value: Any) -> Any:  # noqa: ANN401 - JSON data
    """The JSON value with each of its strings made printable; it came from `read_json`, so its depth is limited."""
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, list):
        return [printable_data(one) for one in value]
    if isinstance(value, dict):
        return {printable(key): printable_data(one) for key, one in value.items()}
    return value


def last_line(stdout: str, stderr: str = "") -> str:
    """The last line that a command printed, on stderr if there is one, for a message; `nothing` without."""
    lines = (stderr[-4096:].strip() or stdout[-4096:].strip()).splitlines()
    return printable(lines[-1].strip(), 200) if lines else "nothing"


def decompressed(data: bytes, limit: int = ANSWER_MAX_BYTES) -> bytes:
    """What zlib makes of the data; Refused where that is damaged, incomplete or more than `limit` bytes."""
    stream = zlib.decompressobj()
    try:
        content = stream.decompress(data, limit + 1)
    except zlib.error as error:
        raise Refused(f"cannot decompress it: {error}") from None
    if len(content) > limit:
        raise Refused(f"it is more than {_size(limit)} when decompressed")
    if not stream.eof or stream.unused_data:
        raise Refused("its compressed data is incomplete, or more follows it")
    return content


def read_json(text: str | bytes, limit: int = ANSWER_MAX_BYTES) -> Any:  # noqa: ANN401 - JSON data
    """The JSON value; Refused where it is too large, too deep, not JSON, or holds a number that is not finite.

    A lone surrogate in a string becomes U+FFFD, so that every string can be encoded.
    """
    if len(text) > limit:
        raise Refused(f"it is {_size(len(text))}, but the limit is {_size(limit)}")
    if isinstance(text, bytes):
        text = text.decode("utf-8", "replace")
    if sum(map(text.count, ",[{")) > ITEMS_MAX and _structure(text) > ITEMS_MAX:
        raise Refused(f"it has more than {ITEMS_MAX} values")
    try:
        value = json.loads(text, parse_constant=_refuse_constant)
    except RecursionError:
        raise Refused(f"it is nested deeper than {DEPTH_MAX} levels") from None
    except Refused:
        raise
    except ValueError as error:
        raise Refused(f"it is not valid JSON: {error}") from None
    _check(value)
    lone = _SURROGATE_ESCAPE.search(text) is not None or not _is_encodable(text)
    return _encodable(value) if lone else value


def read_json_as(adapter: Adapter[T], text: str | bytes, limit: int = ANSWER_MAX_BYTES) -> T:
    """As `read_json`, validated against a pydantic type."""
    return validated(adapter, read_json(text, limit))


def validated(adapter: Adapter[T], value: Any) -> T:  # noqa: ANN401 - JSON data
    """The value as a pydantic type; Refused names the first member that does not match."""
    try:
        return adapter.validate_python(value)
    except ValueError as error:  # pydantic's ValidationError
        first = error.errors()[0] if hasattr(error, "errors") else {"loc": (), "msg": str(error)}
        place = ".".join(str(part) for part in first["loc"]) or "the answer"
        raise Refused(f"{place}: {first['msg']}") from None


def _size(count: int) -> str:
    return f"{count >> 20} MiB" if count >= 2**20 else f"{count / 1024:.3g} KiB"


def _is_plain(text: str) -> bool:
    return text.isprintable()


def _escaped(one: str) -> str:
    if one.isprintable() or unicodedata.category(one) not in _UNPRINTABLE:
        return one
    number = ord(one)
    return (
        f"\\x{number:02x}"
        if number < 0x100
        else f"\\u{number:04x}"
        if number < 0x10000
        else f"\\U{number:08x}"
    )


def _structure(text: str) -> int:
    """Commas and opening brackets outside strings."""
    # escapes first: an alternative within the repetition takes 100 bytes of memory for each character of a string
    outside = re.sub(r'"[^"]*"', "", text.replace("\\\\", "").replace('\\"', ""))
    return sum(map(outside.count, ",[{"))


def _refuse_constant(name: str) -> None:
    raise Refused(f"it contains {name}, which is not a JSON number")


def _check(value: Any) -> None:  # noqa: ANN401 - JSON data
    """Refused where it is too deep, or a number is too large."""
    members: list[Any] = [value]
    for _ in range(DEPTH_MAX + 1):
        below: list[Any] = []
        for one in members:
            if isinstance(one, dict):
                below += one.values()
            elif isinstance(one, list):
                below += one
            elif isinstance(one, float) and not math.isfinite(one):
                raise Refused("it contains a number that is too large")
        members = below
        if not members:
            return
    raise Refused(f"it is nested deeper than {DEPTH_MAX} levels")


def _is_encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _encodable(value: Any) -> Any:  # noqa: ANN401 - JSON data
    """The same, lone surrogates replaced; its depth was checked."""
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, list):
        return [_encodable(one) for one in value]
    if isinstance(value, dict):
        return {_encodable(key): _encodable(one) for key, one in value.items()}
    return value

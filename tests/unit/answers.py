"""What a broken or hostile node may answer: strategies of hypothesis for fuzz tests, and a limit on memory.

A fuzz test takes each entry by which an answer comes in, and requires a result or that node's own refusal:
no other exception, no text that is not printable, no more memory than `memory_limit` allows.
"""

from __future__ import annotations

import base64
import copy
import json
import resource
import unicodedata
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

EXAMPLES = 10_000
"""Of each fuzz test in `make proof SUITE=fuzz`; the variants that run with every change have FEW."""
FEW = 300

many = settings(max_examples=EXAMPLES, suppress_health_check=list(HealthCheck), database=None)
few = settings(many, max_examples=FEW, derandomize=True)

NASTY_TEXT = (
    "",
    "\x1b[2J\x1b[1;1Hnothing to change on 3 of 3 nodes",
    "\x1b]0;owned\x07",
    "\x9b31m",
    "a\rb",
    "a\nhint: run rm -rf /",
    "\u202egnp.exe",
    "\u2028",
    "\x00",
    "\ud800",
    "[bold]markup[/bold]",
    "9" * 5000,
    "x" * 100_000,
    "-1",
    "1e999",
    "NaN",
    "\u0663",  # a digit for str.isdigit, not for everybody
)
"""Strings that move the cursor, forge lines, cannot be encoded or are not numbers."""

_LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.sampled_from((2**63, -(2**70), 10**400)),
    st.floats(),  # NaN and the infinities are among them
    st.sampled_from(NASTY_TEXT),
    st.text(max_size=20),
    st.text(st.characters(), max_size=8),  # with lone surrogates
)
values = st.recursive(
    _LEAVES,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=8,
)
"""Any value that JSON can hold, and some that it cannot."""


@cache
def bomb(mebibytes: int = 64) -> bytes:
    """A compressed answer that is a thousand times larger than it looks."""
    packer = zlib.compressobj(9)
    return b"".join(packer.compress(b'"' + b"x" * (2**20 - 1)) for _ in range(mebibytes)) + packer.flush()


@cache
def hostile() -> dict[str, str]:
    """Answers as text, by what is wrong with them."""
    return {
        "nothing": "",
        "infinity": "Infinity",
        "nan inside": '{"same": NaN}',
        "overflow": "1e999",
        "brackets": "[" * 100_000,
        "objects": '{"a":' * 100_000,
        "surrogate": r'"\ud800"',
        "surrogate key": r'{"\udfff": 1}',
        "object": "{}",
        "list": "[]",
        "null": "null",
        "true": "true",
        "digits": "9" * 5000,
        "escapes": '"\\u001b[2J\\u001b]0;owned\\u0007"',
        "raw escapes": "\x1b[2J\x1b[1;1H\x1b]0;owned\x07 nothing to change\r",
        "twice": '{"same": true}{"same": true}',
        "bomb": base64.b64encode(bomb()).decode(),
        "many values": "[" + "0," * 1_100_000 + "0]",
        "17 MiB": "x" * (17 * 2**20),
    }


_LARGE = ("bomb", "many values", "17 MiB")
"""Of `hostile`: those that take a tenth of a second each, for separate tests."""


def small_hostile() -> st.SearchStrategy[str]:
    """The quick ones of `hostile`."""
    return st.sampled_from([text for name, text in hostile().items() if name not in _LARGE])


@st.composite
def mutated(draw: st.DrawFn, valid: Any) -> Any:
    """A valid value with up to three members replaced, removed, doubled, renamed or swapped for another type."""
    value = copy.deepcopy(valid)
    for _ in range(draw(st.integers(0, 3))):
        value = _changed(draw, value)
    return value


@st.composite
def json_texts(draw: st.DrawFn, valid: Any) -> str:
    """An answer as JSON text: valid, mutated, cut off, with bytes in it that do not belong there, or not JSON at all."""
    kind = draw(st.integers(0, 9))
    if kind == 0:
        return draw(small_hostile())
    if kind == 1:
        return draw(any_text())
    value = draw(values) if kind == 2 else draw(mutated(valid))
    text = json.dumps(value, ensure_ascii=draw(st.booleans()))
    if kind == 3:
        return text[: draw(st.integers(0, len(text)))]
    if kind == 4:
        at = draw(st.integers(0, len(text)))
        return text[:at] + draw(st.sampled_from(NASTY_TEXT) | st.text(max_size=4)) + text[at:]
    return text


def any_text() -> st.SearchStrategy[str]:
    """What arrives when it is anything at all: bytes, decoded as rackwright.ssh does."""
    return st.one_of(
        st.binary(max_size=200).map(lambda data: data.decode(errors="replace")),
        st.text(max_size=200),
        st.sampled_from(NASTY_TEXT),
    )


def lines(*valid: str) -> st.SearchStrategy[list[str]]:
    """Lines of a command's output: valid ones, mixed, cut, repeated, with fields swapped, or anything."""
    known = st.sampled_from(valid) if valid else st.nothing()
    cut = known.flatmap(lambda line: st.integers(0, len(line)).map(lambda at: line[:at])) if valid else known
    fields = known.flatmap(_with_other_field) if valid else known
    return st.lists(st.one_of(known, known, cut, fields, any_text()), max_size=8)


def _with_other_field(line: str) -> st.SearchStrategy[str]:
    """One field of a line replaced."""
    separator = next((one for one in "\t|:= " if one in line), " ")
    parts = line.split(separator)

    def put(choice: tuple[int, str]) -> str:
        at, text = choice
        return separator.join([*parts[:at], text, *parts[at + 1 :]])

    texts = st.sampled_from(NASTY_TEXT) | st.text(max_size=10) | st.integers().map(str)
    return st.tuples(st.integers(0, len(parts) - 1), texts).map(put)


def _changed(draw: st.DrawFn, value: Any) -> Any:
    """One change, at this level or further down."""
    here = not isinstance(value, (list, dict)) or not value or draw(st.integers(0, 3)) == 0
    if here:
        return draw(values)
    if isinstance(value, dict):
        key = draw(st.sampled_from(sorted(value)))
        what = draw(st.integers(0, 5))
        if what == 0:
            return {name: one for name, one in value.items() if name != key}
        if what == 1:
            return {**value, draw(st.text(max_size=8)): draw(values)}
        return {**value, key: _changed(draw, value[key])}
    at = draw(st.integers(0, len(value) - 1))
    what = draw(st.integers(0, 5))
    if what == 0:
        return value[:at] + value[at + 1 :]
    if what == 1:
        return [*value[:at], value[at], *value[at:]]
    return [*value[:at], _changed(draw, value[at]), *value[at + 1 :]]


def strings_of(value: Any) -> Iterator[str]:
    """Every string in a JSON value, keys among them."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, one in value.items():
            yield from strings_of(key)
            yield from strings_of(one)
    elif isinstance(value, (list, tuple)):
        for one in value:
            yield from strings_of(one)


def is_harmless(text: str, allowed: str = "") -> bool:
    """Whether no character of it moves the cursor, hides text or cannot be encoded; blanks of any width are fine."""
    return text.isprintable() or all(  # as a whole first: nearly every text is
        one.isprintable() or one in allowed or unicodedata.category(one) == "Zs" for one in text
    )


@contextmanager
def memory_limit(mebibytes: int = 1536) -> Iterator[None]:
    """Within the block this process gets so much more memory and no more; MemoryError beyond it."""
    with open("/proc/self/statm") as handle:
        now = int(handle.read().split()[0]) * resource.getpagesize()
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (now + mebibytes * 2**20, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))

"""The boundary to nodes: what is refused, and that what is accepted is harmless."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import zlib
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter

from rackwright.boundary import (
    DEPTH_MAX,
    ITEMS_MAX,
    Refused,
    decompressed,
    last_line,
    printable,
    printable_block,
    printable_data,
    printable_lines,
    read_json,
    read_json_as,
    validated,
)


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        ("", "it is not valid JSON: Expecting value: line 1 column 1 (char 0)"),
        (
            "{",
            "it is not valid JSON: Expecting property name enclosed in double quotes: line 1 column 2 (char 1)",
        ),
        ("Infinity", "it contains Infinity, which is not a JSON number"),
        ('{"seconds": NaN}', "it contains NaN, which is not a JSON number"),
        ('{"seconds": 1e999}', "it contains a number that is too large"),
        ("[" * 100_000, "it is nested deeper than 32 levels"),
        ("[" * 33 + "0" + "]" * 33, "it is nested deeper than 32 levels"),
        ('{"a":' * 900 + "1" + "}" * 900, "it is nested deeper than 32 levels"),
        ("[" + "0," * ITEMS_MAX + "0]", "it has more than 1000000 values"),
        ("9" * 5000, "it is not valid JSON: "),
        (" " * (17 * 2**20), "it is 17 MiB, but the limit is 16 MiB"),
    ],
    ids=[
        "empty",
        "cut",
        "infinity",
        "nan",
        "overflow",
        "brackets",
        "33",
        "objects",
        "items",
        "digits",
        "size",
    ],
)
def test_an_answer_is_refused_with_its_reason(answer: str, why: str) -> None:
    with pytest.raises(Refused) as refused:
        read_json(answer)
    assert str(refused.value).startswith(why)


def test_an_answer_within_the_limits_is_read_as_it_is() -> None:
    deep: Any = "the bottom"
    for _ in range(DEPTH_MAX - 1):
        deep = [deep]
    document = {
        "deep": deep,
        "text": 'a "quoted, [text] {' * 100,
        "number": -1.5e3,
        "zürich": "日本",
        "😀": "😀",
    }
    assert read_json(json.dumps(document)) == document
    assert read_json(json.dumps(document, ensure_ascii=False).encode()) == document
    marks = ",[{" * (ITEMS_MAX // 3 + 1)
    for odd in (f'"{marks}"', f"{marks}\\", f'\\\\"{marks}\n\\', f'{marks}\\\\\\"'):
        assert read_json(json.dumps({odd: [odd]})) == {odd: [odd]}
    commas = json.dumps([","] * 10 + ["," * (ITEMS_MAX + 1)])
    assert read_json(commas)[-1] == "," * (ITEMS_MAX + 1)


def test_a_lone_surrogate_is_replaced_and_a_pair_is_kept() -> None:
    assert read_json(r'{"\ud800": ["\udfff", "\ud83d\ude00"]}') == {"�": ["�", "😀"]}
    assert read_json('["\ud800"]') == ["�"]


def test_decompression_is_bounded() -> None:
    assert decompressed(zlib.compress(b"x" * 1000), 1000) == b"x" * 1000
    for data, why in [
        (zlib.compress(b"x" * 1001), "it is more than 0.977 KiB when decompressed"),
        (zlib.compress(b"x" * 1000)[:-1], "its compressed data is incomplete, or more follows it"),
        (zlib.compress(b"x") + b"y", "its compressed data is incomplete, or more follows it"),
        (b"no zlib", "cannot decompress it: Error -3 while decompressing data: incorrect header check"),
        (b"", "its compressed data is incomplete, or more follows it"),
    ]:
        with pytest.raises(Refused) as refused:
            decompressed(data, 1000)
        assert str(refused.value) == why


def in_150_mib(code: str) -> str:
    """What a process prints that may have 150 MiB."""
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (150 * 2**20, 150 * 2**20)),
    )
    assert done.returncode == 0, done
    return done.stdout


@pytest.mark.parametrize("piece", [",", '\\",', "\\\\,", '\\\\\\",['])
def test_one_long_string_takes_little_memory(piece: str) -> None:
    """16 MiB in one string, each character a comma, a bracket or an escape."""
    shown = in_150_mib(
        "from rackwright.boundary import ANSWER_MAX_BYTES, read_json\n"
        f"piece = {piece!r}\n"
        "text = '\"' + piece * ((ANSWER_MAX_BYTES - 2) // len(piece)) + '\"'\n"
        "print(len(text) > 15 << 20, read_json(text)[:2])\n"
    )
    whole: str = json.loads(f'"{piece * 2}"')
    assert shown == f"True {whole[:2]}\n"


def test_a_bomb_takes_little_memory() -> None:
    """199 KiB that hold 200 MiB, in a process that may have 150 MiB."""
    code = (
        "import zlib; from rackwright.boundary import decompressed, Refused\n"
        "c = zlib.compressobj(9); data = b''.join(c.compress(bytes(2**20)) for _ in range(200)) + c.flush()\n"
        "try:\n    decompressed(data)\nexcept Refused as refused:\n    print(len(data) >> 10, refused)\n"
    )
    assert in_150_mib(code) == "199 it is more than 16 MiB when decompressed\n"


def test_a_type_is_validated_and_the_member_is_named() -> None:
    adapter = TypeAdapter(dict[str, list[int]])
    assert read_json_as(adapter, '{"a": [1]}') == {"a": [1]}
    with pytest.raises(Refused, match=r"^a\.0: Input should be a valid integer"):
        read_json_as(adapter, '{"a": ["x"]}')
    with pytest.raises(Refused, match=r"^the answer: Input should be a valid dictionary"):
        read_json_as(adapter, "[]")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain, zürich 日本 😀", "plain, zürich 日本 😀"),
        ("\x1b[2J\x1b]0;owned\x07", "\\x1b[2J\\x1b]0;owned\\x07"),
        ("a\nb\tc\rd", "a\\x0ab\\x09c\\x0dd"),
        ("\u202eevil\u2028\u200b\ud800\x9b1m", "\\u202eevil\\u2028\\u200b\\ud800\\x9b1m"),
        ("\U000e0001\ufdd0", "\\U000e0001\\ufdd0"),
    ],
)
def test_text_is_made_printable(text: str, shown: str) -> None:
    assert printable(text) == shown


def test_lines_keep_their_breaks_and_lose_the_rest() -> None:
    assert printable_lines("a\n\tb\r\x1b[1m") == "a\n\tb\\x0d\\x1b[1m"


def test_no_line_of_a_node_looks_like_one_of_ours() -> None:
    assert printable_block("`x` exited 1 saying:\n    out\n\ttab\nplan: nothing to change\x1b[8m", 1000) == (
        "`x` exited 1 saying:\n    out\n    \ttab\n    plan: nothing to change\\x1b[8m"
    )
    assert printable_block("one line", 8) == "one line"
    assert printable_block("one line more", 8) == "one l..."
    assert len(printable_block("\n" * 100, 40)) == 40


def test_long_text_is_cut() -> None:
    assert printable("abcdef", 6) == "abcdef"
    assert printable("abcdefg", 6) == "abc..."
    assert len(printable("\x1b" * 300, 200)) == 200


def test_a_value_that_was_read_already_is_validated() -> None:
    adapter = TypeAdapter(dict[str, list[int]])
    assert validated(adapter, {"a": [1]}) == {"a": [1]}
    with pytest.raises(Refused, match=r"a\.0: Input should be a valid integer"):
        validated(adapter, {"a": ["x"]})
    with pytest.raises(Refused, match="the answer: Input should be a valid dict"):
        validated(adapter, [])


def test_the_last_line_of_a_command() -> None:
    assert last_line("out\n", "first\nsudo: \x1b[31mno\n\n") == "sudo: \\x1b[31mno"
    assert last_line("one\ntwo\n") == "two"
    assert last_line("", " \n") == "nothing"


@settings(max_examples=500)
@given(
    st.one_of(
        st.text(), st.binary().map(lambda data: data.decode("latin-1")), st.text(alphabet='[]{}",:\\u01edD8 ')
    )
)
def test_any_text_is_read_or_refused(text: str) -> None:
    refused = None
    try:
        value = read_json(text)
    except Refused as error:
        refused, value = str(error), None
    json.dumps(value, allow_nan=False, ensure_ascii=False).encode()
    assert refused is None or (refused.isprintable() and len(refused) <= 300)


@settings(max_examples=500)
@given(st.text(st.characters()))
def test_any_text_becomes_printable(text: str) -> None:
    shown = printable(text)
    shown.encode()
    assert not any(one in shown for one in "\x1b\n\r\x07\x9b\u202e\u2028")


def test_data_is_made_printable_with_its_keys() -> None:
    value = {"a\x1b": ["b\u202e", 1, None, {"c": "d\r"}]}
    assert printable_data(value) == {"a\\x1b": ["b\\u202e", 1, None, {"c": "d\\x0d"}]}

"""The screen of a serial console."""

from __future__ import annotations

import pytest

from rackwright.bmc.screen import COLUMNS, ROWS, Screen


def labels(*data):
    screen = Screen()
    for part in data:
        screen.feed(part)
    return [(one.text, one.row, one.background) for one in screen.labels()]


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"one\r\ntwo", [("one", 0, 40), ("two", 1, 40)]),
        (b"\x1b[05;10Hhere", [("here", 4, 40)]),
        (b"\x1b[44mblue\x1b[40m\r\nblack", [("blue", 0, 44), ("black", 1, 40)]),
        (b"\x1b[44mx\x1b[0my", [("xy", 0, 44)]),
        (b"old\x1b[2J", []),
        (b"old text\x1b[4D\x1b[K", [("old", 0, 40)]),
        (b"a\x1b[1;1Hb", [("b", 0, 40)]),
        (b"ab\bc", [("ac", 0, 40)]),
        ("│ Yes │".encode(), [("Yes", 0, 40)]),
        (b"\xb3 Yes \xb3", [("Yes", 0, 40)]),  # a PC's code page
        (b"\xda\xc4\xc4\xbf\r\n\xb3 x \xb3", [("x", 1, 40)]),
        (b"| No |   | Yes |", [("No", 0, 40), ("Yes", 0, 40)]),
        (b"+-----+\r\n|  x  |\r\n+-----+", [("x", 1, 40)]),
        (b"\x1b(Bplain\x1b[?25l", [("plain", 0, 40)]),
    ],
)
def test_what_is_drawn(data, expected):
    assert labels(data) == expected


def test_sequences_and_characters_arrive_in_pieces():
    data = "\x1b[03;02H\x1b[44m│ Continue │".encode()
    assert labels(*(data[at : at + 1] for at in range(len(data)))) == [("Continue", 2, 44)]


def test_nothing_that_a_console_sends_ends_the_screen():
    screen = Screen()
    for data in (
        b"\x1b[9999;9999Hx",
        b"\x1b[999A\x1b[999D",
        b"\n" * (ROWS * 2),
        b"y" * (COLUMNS * 3),
        bytes(range(256)) * 20,
        b"\x1b" * 100,
        b"\x1b[" + b"1;" * 500,
        b"\x1b[99999999999999999999m\x1b[J",
    ):
        screen.feed(data)
        assert len(screen.lines()) <= ROWS
        assert all(line.isprintable() for line in screen.lines())

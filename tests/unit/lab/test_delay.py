"""The arguments of a slow cable."""

import pytest

from rackwright.lab.delay import parse


def test_units():
    assert parse("150", "2.5") == (0.15, 0.025)


@pytest.mark.parametrize(
    ("milliseconds", "loss", "message"),
    [
        ("x", "0", "could not convert string to float: 'x'"),
        ("-1", "0", "a delay of -1 ms is not between 0 and 60000"),
        ("1", "101", "a loss of 101 % is not between 0 and 100"),
        ("nan", "0", "a delay of nan ms is not between 0 and 60000"),
    ],
)
def test_bad_values(milliseconds: str, loss: str, message: str):
    with pytest.raises(ValueError, match=message):
        parse(milliseconds, loss)

"""Points in time as people write them."""

from __future__ import annotations

import pytest

from rackwright.errors import RackwrightError
from rackwright.logs.times import moment
from tests.unit.logs.journals import T0


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("90s", T0 - 90),
        ("30m", T0 - 1800),
        ("30min", T0 - 1800),
        ("2h", T0 - 7200),
        ("3d", T0 - 3 * 86400),
        ("1w", T0 - 7 * 86400),
        ("2026-11-27", T0 - 3600),
        ("2026-11-27 00:30", T0 - 1800),
        ("2026-11-27T00:30:05Z", T0 - 1795),
        ("00:30", T0 - 1800),
        ("23:30", T0 - 5400),
        ("9999w", 0),
        ("1960-01-01", 0),
    ],
)
def test_a_moment(text, at):
    assert moment(text, T0) == at


@pytest.mark.parametrize("text", ["", "yesterday", "2 hours", "-2h", "2026-13-01", "25:00", "\x1b[2J"])
def test_what_is_no_time(text):
    with pytest.raises(RackwrightError, match="is not a valid time") as refused:
        moment(text, T0)
    assert "\x1b" not in refused.value.message

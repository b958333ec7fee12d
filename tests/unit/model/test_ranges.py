"""NodeSet ranges."""

from __future__ import annotations

import time

import pytest

from rackwright.model.ranges import RangeMistake, expand


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("head1", ("head1",)),
        ("gpu[001-003]", ("gpu001", "gpu002", "gpu003")),
        ("gpu[8-10]", ("gpu8", "gpu9", "gpu10")),
        ("gpu[1-7/3]", ("gpu1", "gpu4", "gpu7")),
        ("a[1-2],b1", ("a1", "a2", "b1")),
        ("r[1-2]n[1-2]", ("r1n1", "r1n2", "r2n1", "r2n2")),
        ("gpu[1-4]!gpu2", ("gpu1", "gpu3", "gpu4")),
    ],
)
def test_names(text, names):
    assert expand(text) == names


@pytest.mark.parametrize(
    "text",
    ["gpu[1-99999999999]", "a[1-9999]b[1-9999]", "gpu[1-20001]", ",".join(f"a{n}[1-9000]" for n in range(9))],
)
def test_large_ranges_are_refused_before_they_are_expanded(text):
    started = time.process_time()
    with pytest.raises(RangeMistake, match="more than 20000 names"):
        expand(text)
    assert time.process_time() - started < 5


@pytest.mark.parametrize(
    "text", ["gpu[", "gpu]", "[", "gpu[1-", "a,,b", ",", "!", "a[1][", "gpu[1-2]x[", "a[-1]", "a[1-2/0]"]
)
def test_whatever_is_no_range_is_refused(text):
    with pytest.raises(RangeMistake):
        expand(text)

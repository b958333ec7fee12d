"""Nodes whose clock was wrong for a while: all lines of a time are found, in the order in which they were written or not."""

from __future__ import annotations

import os

import pytest

from rackwright.logs import boots
from rackwright.logs.boots import ALL, Boot
from rackwright.logs.journal_files import LINE_MAX, journal_files, overlapping
from tests.unit.logs.journals import T0, entry
from tests.unit.logs.test_read_journal import ask

A, B = "a" * 32, "b" * 32
DAY = 86400
YEARS = -7 * 365 * DAY


def stepped(wrong, seconds=50):
    """A node that boots with a wrong clock, 100 s after T0, which is set after 3 s."""
    before = [entry(at, f"a {at}", _BOOT_ID=A) for at in range(0, 90, 10)]
    early = [entry(at, f"wrong {at}", wrong=wrong, _BOOT_ID=B) for at in (100, 101, 102)]
    return [*before, *early, *(entry(at, f"b {at}", _BOOT_ID=B) for at in range(110, 110 + seconds, 10))]


def messages(found):
    assert found["problems"] == []
    return [one["message"] for one in found["lines"]]


@pytest.mark.parametrize("wrong", [YEARS, 8 * 3600, -3, 0])
@pytest.mark.parametrize(("since", "until"), [(0, 1000), (30, 85), (30, 125), (115, 145), (105, 1000)])
def test_lines_before_and_after_a_wrong_clock_are_found(folder, wrong, since, until):
    lines = stepped(wrong)
    folder.write(1, lines)
    wanted = [
        one["MESSAGE"] for one in lines if since <= int(one["__REALTIME_TIMESTAMP"]) / 1e6 - T0 <= until
    ]
    assert sorted(messages(ask(folder, since=T0 + since, until=T0 + until))) == sorted(wanted)


def test_boots_before_that_time_are_not_read(folder):
    folder.write(1, stepped(0))
    ask(folder, since=T0 + 105)
    reads = [call for call in folder.asked() if any(word.startswith("--since") for word in call)]
    assert [call[-1] for call in reads] == [f"_BOOT_ID={B}"]


def test_a_file_whose_last_line_has_a_wrong_time_is_read(folder):
    """It was closed before the clock was set."""
    lines = stepped(YEARS)
    folder.write(1, lines[:11], "@0-1-2")
    folder.write(1, lines[11:])
    assert {"a 0", "a 80", "b 110"} <= set(messages(ask(folder)))


def test_a_file_whose_first_line_has_a_wrong_time_is_read(folder):
    """With a clock eight hours ahead, until it was set back; it is open long enough for its last line to be later still."""
    lines = stepped(8 * 3600, seconds=12 * 3600)
    folder.write(1, lines[:9], "@0-1-2")
    folder.write(1, lines[9:])
    assert messages(ask(folder, since=T0 + 105, until=T0 + 125)) == ["b 110", "b 120"]


def test_a_node_that_boots_over_and_over_is_read_at_once(folder, monkeypatch):
    monkeypatch.setattr(boots, "BOOTS_MAX", 1)
    folder.write(1, stepped(YEARS))
    assert {"a 0", "a 80", "b 110"} <= set(messages(ask(folder)))
    assert len(folder.asked()) == 2


def test_entries_without_a_monotonic_time_are_read_at_once(folder):
    fields = entry(1, "x")
    del fields["__MONOTONIC_TIMESTAMP"]
    folder.write(1, [entry(2, "y")])
    folder.write(1, [fields, entry(2, "y")])
    assert messages(ask(folder)) == ["x", "y"]


def test_what_journalctl_is_asked_for():
    boot = Boot(A, T0, T0 + 100, 5.0)
    assert boot.options(T0 + 10.5, T0 + 20.5) == [
        "--reverse",
        f"--since=@{T0 + 5:.0f}",
        f"--until=@{T0 + 26:.0f}",
    ]
    assert (boot.options(T0 + 106, T0 + 200), boot.options(T0 - 50, T0 - 6)) == (None, None)
    assert boot.options(0, T0)[1] == "--since=@0"
    assert (ALL.options(T0, T0 + 1), ALL.matches(["x"])) == (["--reverse"], ["x"])


def test_files_that_may_have_lines_of_a_time(folder):
    """A backlog arrives after it was written; a file that came by copying has any time."""
    late = folder.write(1, [entry(-900, "x"), entry(-800, "x")], "@0-1-2")
    first = folder.write(1, [entry(0, "x"), entry(100, "x")], "@0-3-4")
    second = folder.write(1, [entry(101, "x"), entry(200, "x")])
    files = journal_files(str(folder.path), str(folder.sources))["w1"]

    def of(since, until):
        return {one.path for one in overlapping(files, T0 + since, T0 + until)}

    assert of(50, 60) == {str(first)}
    assert of(150, 160) == {str(second)}
    assert of(-850, -840) == {str(late)}
    os.utime(late, (T0 + 500, T0 + 500))
    assert str(late) in of(150, 160)


def test_an_entry_of_any_size_is_reported_and_takes_no_memory(folder):
    """A user may log 32 MiB at once."""
    folder.write(1, [entry(1, "a"), entry(2, "x" * LINE_MAX), entry(3, "b")])
    found = ask(folder)
    assert [one["message"] for one in found["lines"]] == ["a", "b"]
    assert found["problems"] == ["w1: 1 entries of more than 4 MiB were skipped"]


def test_which_file_has_nothing_after_an_entry(folder):
    """By its series: times may be wrong."""
    cursor = entry(10, "x")["__CURSOR"]
    folder.write(1, [entry(1, "x"), entry(10, "x", wrong=DAY)], "@0-1-2")
    folder.write(1, [entry(11, "x", wrong=-DAY)])
    open_, closed = sorted(
        journal_files(str(folder.path), str(folder.sources))["w1"], key=lambda one: one.archived
    )
    assert (closed.is_before(cursor), open_.is_before(cursor)) == (True, False)
    for other in (None, "soon", cursor.replace("5" * 32, "6" * 32)):
        assert not closed.is_before(other)
    folder.path.joinpath(os.path.basename(closed.path)).write_bytes(b"")
    assert not closed.is_before(cursor)

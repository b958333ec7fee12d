"""The progress file: summed over attempts, and readable whatever killed its writer."""

from __future__ import annotations

import pytest

from tests.proof.machine import Usage
from tests.proof.progress import Progress


@pytest.fixture
def progress(tmp_path):
    return Progress(tmp_path / "cache" / "engine.full.jsonl")


def _used(seconds: float) -> Usage:
    return Usage(seconds, 2 * seconds, 0.1 * seconds, 4 * seconds)


def test_nothing_yet(progress):
    assert progress.summary().attempts == 0
    assert progress.summary().passed == set()
    progress.forget()


def test_attempts_are_summed(progress):
    assert progress.begin() == 1
    progress.note(1, _used(10), test="a", outcome="passed")
    progress.note(1, _used(15), test="b", outcome="failed")
    assert progress.begin() == 2  # the first was killed: what it used after its last test is not known
    progress.note(2, _used(5), test="b", outcome="passed")
    progress.note(2, _used(7))
    summary = progress.summary()
    assert summary.passed == {"a", "b"}
    assert summary.failed_ever == {"b"}
    assert summary.attempts == 2
    assert summary.usage.seconds == 22
    assert summary.usage.cpu_seconds == 44
    assert summary.usage.stolen == pytest.approx(0.025)


def test_a_test_that_fails_again_later_has_not_passed(progress):
    progress.begin()
    progress.note(1, _used(1), test="a", outcome="passed")
    progress.note(1, _used(2), test="a", outcome="failed")
    assert progress.summary().passed == set()


@pytest.mark.parametrize("damage", ['{"attempt": 1, "test": "b", "outc', "\0\0\0", "[]", "7"])
def test_a_damaged_line_is_ignored(progress, damage):
    progress.begin()
    progress.note(1, _used(1), test="a", outcome="passed")
    with progress.path.open("a") as file:
        file.write(damage)
    assert progress.summary().passed == {"a"}
    assert progress.begin() == 2
    progress.note(2, _used(1), test="c", outcome="passed")
    assert progress.summary().passed == {"a", "c"}
    assert progress.summary().attempts == 2


def test_collection_errors_are_those_of_the_last_attempt(progress):
    progress.begin()
    progress.note(1, _used(1), not_collected="test_a.py")
    assert progress.summary().collection_errors == {"test_a.py"}
    progress.begin()
    assert progress.summary().collection_errors == set()

"""Several people apply one cluster: the asking side keeps the newest of what they found."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rackwright.drift.baseline import Baseline, keep, kept_of
from rackwright.drift.checker_files import expected
from tests.factories import make_cluster

CLUSTER = make_cluster()


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))


def test_the_newest_of_what_several_found_is_expected():
    keep(CLUSTER, "head1", Baseline("q", "mine", 5.0))
    keep(CLUSTER, "worker1", Baseline("q", "mine", 5.0))
    there = {
        "worker1": ["theirs", 9.0],
        "head1": ["theirs", 1.0],
        "worker2": ["theirs", 1.0],
        "gone": ["x", 9.0],
    }
    assert json.loads(expected(CLUSTER, json.dumps(there))) == {
        "head1": ["mine", 5.0],
        "worker1": ["theirs", 9.0],
        "worker2": ["theirs", 1.0],
    }


@pytest.mark.parametrize("there", [None, "", "{", "[]", '{"head1": 1}', '{"head1": ["d", "late"]}'])
def test_what_cannot_be_read_is_written_anew(there: str | None):
    keep(CLUSTER, "head1", Baseline("q", "mine", 5.0))
    assert json.loads(expected(CLUSTER, there)) == {"head1": ["mine", 5.0]}


def test_the_same_baseline_is_kept_with_its_time():
    keep(CLUSTER, "head1", Baseline("q", "d", 5.0))
    keep(CLUSTER, "head1", Baseline("q", "d", 9.0))
    assert kept_of(CLUSTER, "head1") == Baseline("q", "d", 5.0)
    keep(CLUSTER, "head1", Baseline("q", "e", 9.0))
    assert kept_of(CLUSTER, "head1") == Baseline("q", "e", 9.0)
    assert kept_of(CLUSTER, "worker1") is None

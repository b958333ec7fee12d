"""Silences are waited for before anything is broken."""

from __future__ import annotations

import json

import pytest

from rackwright.drill import silenced
from rackwright.drill.silenced import wait_for_silences
from rackwright.errors import RackwrightError

SILENCE = {"id": "1b3d", "comment": "rackwright apply", "endsAt": "2026-11-27T03:46:15.000Z"}


class Rack:
    """Answers with one list of silences after the other; the last one again and again."""

    def __init__(self, *answers):
        self.answers = list(answers)

    def run(self, node, argv, timeout=60):
        assert (node, argv[:2]) == ("head1", ["sh", "-c"])
        assert argv[2].endswith("amtool --no-version-check --timeout=10s --output=json silence query")
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


@pytest.fixture(autouse=True)
def at_once(monkeypatch):
    monkeypatch.setattr(silenced, "_POLL_SECONDS", 0.001)


@pytest.mark.parametrize("none", ["[]", "", "[]\n"])
def test_no_silence_is_no_wait(none):
    told = []
    wait_for_silences(Rack(none), "head1", 60, told.append)
    assert told == []


def test_a_silence_is_waited_for_and_said_once():
    told = []
    wait_for_silences(Rack(*[json.dumps([SILENCE])] * 3, "[]"), "head1", 60, told.append)
    assert told == ["waiting for silences to end: rackwright apply, until 2026-11-27T03:46:15.000Z"]


def test_a_silence_that_stays_is_refused():
    with pytest.raises(RackwrightError, match="head1 has silences: rackwright apply") as caught:
        wait_for_silences(Rack(json.dumps([SILENCE])), "head1", 0.01, lambda _: None)
    assert "amtool silence expire 1b3d" in (caught.value.hint or "")

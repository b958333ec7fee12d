"""What is kept of former runs, and what is said of it."""

from __future__ import annotations

import json

import pytest

from rackwright.durations import KEPT, Durations, duration, usual_words


@pytest.fixture(autouse=True)
def state(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    return tmp_path


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.4, "0 s"), (42, "42 s"), (59.6, "1 min"), (100, "1 min 40 s"), (7200, "2 h"), (7800, "2 h 10 min")],
)
def test_durations_as_people_read_them(seconds, text):
    assert duration(seconds) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [([], None), ([100], "last time 1 min 40 s"), ([100, 90, 5000], "usually 1 min 40 s")],
)
def test_the_median_is_usual(seconds, text):
    assert usual_words(seconds) == text


def test_the_newest_are_kept_by_step():
    for seconds in range(KEPT + 3):
        Durations("lab", "lab-up").record("3 nodes", seconds)
    Durations("lab", "lab-up").record("1 nodes", 5)
    assert Durations("lab", "lab-up").of("3 nodes") == list(range(3, KEPT + 3))
    assert Durations("lab", "lab-up").of("1 nodes") == [5]
    assert Durations("lab", "image-disk").of("3 nodes") == []
    assert Durations("other", "lab-up").of("3 nodes") == []


def test_steps_that_were_not_seen_for_long_are_forgotten():
    history = Durations("lab", "lab-up")
    for step in range(600):
        history.record(f"step {step}", 1)
    assert len(json.loads(history.path.read_text())) == 500
    assert Durations("lab", "lab-up").of("step 99") == []
    assert Durations("lab", "lab-up").of("step 100") == [1]


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{", '{"3 nodes": 1}', '{"3 nodes": [true]}', '{"3 nodes": [-1]}', '{"3 nodes": ["1"]}'],
)
def test_a_damaged_file_is_done_without(text):
    history = Durations("lab", "lab-up")
    history.record("3 nodes", 1)
    history.path.write_text(text)
    assert Durations("lab", "lab-up").of("3 nodes") == []
    Durations("lab", "lab-up").record("3 nodes", 2)
    assert Durations("lab", "lab-up").of("3 nodes") == [2]


def test_a_state_folder_that_cannot_be_made_ends_nothing(state):
    (state / "rackwright").write_text("")
    history = Durations("lab", "lab-up")
    history.record("3 nodes", 1)
    assert history.of("3 nodes") == [1]

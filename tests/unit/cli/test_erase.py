"""apply has the serial of each disk typed that its plan erases; --yes alone erases none."""

from __future__ import annotations

import sys

import pytest
import typer

from rackwright.cli.apply import Consent
from rackwright.errors import RackwrightError
from rackwright.plan.erasures import checked
from tests.unit.plan.test_erasures import OLD, plan

PLAN = plan(n1=("A", OLD), n2=("B", "gpt"))


@pytest.fixture
def typed(monkeypatch):
    """What is asked on a terminal, and the answers to it."""
    asked: list[str] = []
    answers: list[str] = []

    def prompt(text, **_):
        asked.append(text)
        return answers.pop(0)

    monkeypatch.setattr(sys.stdin, "isatty", lambda: True)
    monkeypatch.setattr(typer, "prompt", prompt)
    return asked, answers


def test_each_serial_is_asked_for(typed):
    asked, answers = typed
    answers += ["A", " B "]
    given = Consent(None, False, False).erasable(PLAN)
    assert given == {"n1": {"A": OLD}, "n2": {"B": "gpt"}}
    assert asked == [
        f"n1: type the serial of /dev/sda (serial A, 1.0 GB) to erase it: {OLD}",
        "n2: type the serial of /dev/sda (serial B, 1.0 GB) to erase it: gpt",
    ]
    assert checked(PLAN, given) == given


@pytest.mark.parametrize("answer", ["", "y", "a", "B"])
def test_another_answer_ends_the_run(typed, answer):
    asked, answers = typed
    answers += [answer, "B"]
    with pytest.raises(RackwrightError, match=r"is not the serial of /dev/sda .*; nothing was changed"):
        Consent(None, False, False).erasable(PLAN)
    assert len(asked) == 1


@pytest.mark.parametrize("erase", [None, ["A"]])
def test_yes_erases_only_what_a_flag_names(typed, erase):
    asked, _ = typed
    with pytest.raises(RackwrightError, match="serials were not typed"):
        checked(PLAN, Consent(None, True, False, erase=erase).erasable(PLAN))
    assert asked == []
    given = Consent(None, True, False, erase=["A", "B"]).erasable(PLAN)
    assert checked(PLAN, given) == given


def test_without_a_terminal_nothing_is_asked(monkeypatch):
    monkeypatch.setattr(sys.stdin, "isatty", lambda: False)
    assert Consent(None, False, False).erasable(PLAN) == {}


def test_a_plan_without_erasures_asks_nothing(typed):
    assert Consent(None, False, False).erasable(plan()) == {}
    assert typed[0] == []

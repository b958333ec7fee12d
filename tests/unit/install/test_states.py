"""Which state may follow which."""

from __future__ import annotations

from itertools import pairwise

import pytest

from rackwright.install.states import ON_THE_MACHINE, UNDER_WAY, State, may_follow

PATHS = {
    "an installation": "prechecked armed discovered inventoried approved installing installed first-boot ready",
    "one that is held": "prechecked armed discovered inventoried held inventoried approved installing",
    "an answer that was lost": "prechecked armed discovered inventoried approved inventoried approved installing "
    "inventoried approved",
    "by the distribution's installer": "prechecked armed discovered inventoried approved handed-over installer installing "
    "installed first-boot ready",
    "an erasure": "prechecked armed discovered inventoried held inventoried approved erasing erased",
    "an erasure whose order was lost": "prechecked armed discovered inventoried approved erasing inventoried approved "
    "erasing erased",
    "a discovery": "prechecked armed discovered inventoried surveyed",
}


@pytest.mark.parametrize("path", PATHS.values(), ids=PATHS)
def test_paths_that_are_taken(path):
    states = [State.DECLARED, *map(State, path.split())]
    assert all(may_follow(before, after) for before, after in pairwise(states))


def test_nothing_is_written_but_after_an_approval_and_nothing_approved_but_after_an_inventory():
    assert [one for one in State if may_follow(one, State.INSTALLING)] == [State.APPROVED, State.INSTALLER]
    assert [one for one in State if may_follow(one, State.INSTALLER)] == [State.HANDED_OVER]
    assert [one for one in State if may_follow(one, State.HANDED_OVER)] == [State.APPROVED]
    assert [one for one in State if may_follow(one, State.ERASING)] == [State.APPROVED]
    assert [one for one in State if may_follow(one, State.ERASED)] == [State.ERASING]
    assert [one for one in State if may_follow(one, State.APPROVED)] == [State.INVENTORIED]
    assert [one for one in State if may_follow(one, State.DISCOVERED)] == [State.ARMED]
    assert [one for one in State if may_follow(one, State.ARMED)] == [State.PRECHECKED]


def test_nothing_is_ready_but_after_its_first_boot():
    assert [one for one in State if may_follow(one, State.READY)] == [State.FIRST_BOOT]
    assert [one for one in State if may_follow(one, State.FIRST_BOOT)] == [State.INSTALLED]


@pytest.mark.parametrize("last", [State.READY, State.SURVEYED, State.ERASED, State.FAILED])
def test_what_has_ended_goes_on_with_a_new_run_only(last):
    assert [one for one in State if may_follow(last, one)] == [State.PRECHECKED]
    assert last not in UNDER_WAY


def test_a_new_run_may_begin_after_anything_and_what_is_under_way_may_fail():
    assert all(may_follow(one, State.PRECHECKED) for one in State)
    assert all(may_follow(one, State.FAILED) for one in UNDER_WAY)
    assert set(ON_THE_MACHINE) < set(UNDER_WAY)

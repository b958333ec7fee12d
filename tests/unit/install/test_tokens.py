"""Tokens, and the names of runs."""

from __future__ import annotations

from rackwright.install.agent.order import _RUN
from rackwright.install.tokens import digest, matches, new_run, new_token


def test_a_token_is_known_by_its_digest_alone():
    token = new_token()
    assert len(token) == 32
    assert matches(token, digest(token))
    assert not matches(digest(token), digest(token))
    assert not matches(new_token(), digest(token))


def test_an_empty_digest_matches_no_token():
    assert not matches("", "")
    assert not matches(new_token(), "")
    assert not matches("", digest(new_token()))


def test_a_run_has_a_name_that_people_can_type_and_agents_take():
    names = {new_run() for _ in range(200)}
    assert len(names) == 200
    assert all(_RUN.fullmatch(name) and not set(name) & set("01ilo") for name in names)

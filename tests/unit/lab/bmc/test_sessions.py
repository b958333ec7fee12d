"""Sessions end by themselves, are limited in number, and only their tokens open them."""

from __future__ import annotations

import pytest

from rackwright.lab.bmc.sessions import (
    IDLE_SECONDS,
    SESSIONS_MAX,
    Sessions,
    TooManySessionsError,
    basic,
    same,
)


def test_a_ninth_session_is_refused_until_one_ends():
    sessions = Sessions()
    opened = [sessions.open("admin") for _ in range(SESSIONS_MAX)]
    with pytest.raises(TooManySessionsError):
        sessions.open("admin")
    assert sessions.close(opened[0][0])
    assert not sessions.close(opened[0][0])
    number, token = sessions.open("admin")
    assert number not in {one for one, _ in opened}
    assert sessions.accepts(token)
    assert not sessions.accepts(opened[0][1])
    sessions.close_all()
    assert sessions.numbers() == []


def test_a_session_that_is_not_used_ends():
    now = 0.0
    sessions = Sessions(clock=lambda: now)
    number, token = sessions.open("admin")
    now = IDLE_SECONDS - 1
    assert sessions.accepts(token)  # used: its time begins anew
    now += IDLE_SECONDS
    assert sessions.get(number) is not None
    now += 1
    assert not sessions.accepts(token)


def test_the_token_is_not_kept():
    sessions = Sessions()
    _, token = sessions.open("admin")
    assert token not in repr(vars(sessions))


@pytest.mark.parametrize(
    ("header", "found"),
    [
        ("Basic YWRtaW46cmlnaHQ=", ("admin", "right")),
        ("basic YWRtaW46YTpi", ("admin", "a:b")),
        ("Basic YWRtaW4=", None),
        ("Basic !", None),
        ("Basic /w==", None),
        ("Bearer x", None),
        ("", None),
    ],
)
def test_the_authorization_header(header: str, found: tuple[str, str] | None):
    assert basic(header) == found


def test_user_and_password_have_to_be_right():
    assert same(("admin", "right"), ("admin", "right"))
    assert not same(("admin", "wrong"), ("admin", "right"))
    assert not same(("root", "right"), ("admin", "right"))
    assert not same(("admin", "ä"), ("admin", "right"))

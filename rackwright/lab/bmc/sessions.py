"""Who may use a BMC: its one user, by password or by the token of a session."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from threading import Lock

SESSIONS_MAX = 8
IDLE_SECONDS = 1800.0


class TooManySessionsError(Exception):
    """Every session is taken."""


@dataclass(slots=True)
class Session:
    """One session; the token itself is not kept."""

    token_sha256: bytes
    user: str
    created: str
    used: float


class Sessions:
    """The sessions of one BMC. They end with its process, as those of a BMC that restarts."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = Lock()
        self._open: dict[str, Session] = {}
        self._next = 1

    def open(self, user: str) -> tuple[str, str]:
        """A new session's number and token."""
        with self._lock:
            self._expire()
            if len(self._open) >= SESSIONS_MAX:
                raise TooManySessionsError
            token, number = secrets.token_urlsafe(32), str(self._next)
            self._next += 1
            created = datetime.now(UTC).isoformat(timespec="seconds")
            self._open[number] = Session(_digest(token), user, created, self._clock())
            return number, token

    def accepts(self, token: str) -> bool:
        """Whether a token is that of an open session, which is then used."""
        digest = _digest(token)
        with self._lock:
            self._expire()
            for session in self._open.values():
                if hmac.compare_digest(session.token_sha256, digest):
                    session.used = self._clock()
                    return True
        return False

    def close(self, number: str) -> bool:
        """End a session; False where there is none of that number."""
        with self._lock:
            self._expire()
            return self._open.pop(number, None) is not None

    def close_all(self) -> None:
        """End every session."""
        with self._lock:
            self._open.clear()

    def numbers(self) -> list[str]:
        """Those that are open."""
        with self._lock:
            self._expire()
            return list(self._open)

    def get(self, number: str) -> Session | None:
        """The open session of a number."""
        with self._lock:
            self._expire()
            return self._open.get(number)

    def _expire(self) -> None:
        oldest = self._clock() - IDLE_SECONDS
        self._open = {number: one for number, one in self._open.items() if one.used >= oldest}


def basic(header: str) -> tuple[str, str] | None:
    """User and password of an Authorization header; None where it holds none."""
    scheme, _, value = header.partition(" ")
    if scheme.lower() != "basic":
        return None
    try:
        user, colon, password = base64.b64decode(value.strip(), validate=True).decode().partition(":")
    except (binascii.Error, ValueError):
        return None
    return (user, password) if colon else None


def same(given: tuple[str, str], wanted: tuple[str, str]) -> bool:
    """Whether user and password are right, in a time that does not depend on where they differ."""
    user, password = (hmac.compare_digest(given[place].encode(), wanted[place].encode()) for place in (0, 1))
    return user and password


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode()).digest()

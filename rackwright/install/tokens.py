"""One-time tokens and sessions: random, and known to the head only by their SHA-256."""

from __future__ import annotations

import hashlib
import hmac
import secrets

_ALPHABET = "abcdefghjkmnpqrstuvwxyz23456789"


def new_token() -> str:
    """192 bits."""
    return secrets.token_urlsafe(24)


def new_run() -> str:
    """Run id that people read and type: 8 characters."""
    return "".join(secrets.choice(_ALPHABET) for _ in range(8))


def digest(token: str) -> str:
    """The stored digest of a token."""
    return hashlib.sha256(token.encode()).hexdigest()


def matches(token: str, kept: str) -> bool:
    """Whether a token matches a stored digest; an empty digest matches none."""
    return bool(kept) and hmac.compare_digest(digest(token), kept)

"""Passwords as services store them: bcrypt, with deterministic output."""

from __future__ import annotations

import hmac
import string
from base64 import b64encode
from functools import cache

import bcrypt

_BASE64 = string.ascii_uppercase + string.ascii_lowercase + string.digits
_TO_BCRYPT = str.maketrans(
    _BASE64 + "+/", "./" + string.ascii_uppercase + string.ascii_lowercase + string.digits
)
"""bcrypt has base64 with an alphabet in another order."""


@cache
def bcrypt_hash(password: str, *, salt_key: str, salt_of: str, cost: int) -> str:
    """The hash of a password, e.g. `$2b$08$...`; bcrypt takes no more than its first 72 bytes.

    The salt follows from a secret and from what the password is for, so that the file that holds it is the same each
    time. cost: binary logarithm of the rounds; 8 takes 15 ms of a core.
    """
    salt = hmac.digest(salt_key.encode(), salt_of.encode(), "sha256")[:16]
    setting = f"$2b${cost:02d}${b64encode(salt).decode().rstrip('=').translate(_TO_BCRYPT)}"
    return bcrypt.hashpw(password.encode()[:72], setting.encode()).decode()

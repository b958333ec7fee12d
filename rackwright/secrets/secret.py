"""A secret value that masks itself, and the kinds of secrets that are generated here."""

from __future__ import annotations

import hmac
import re
import secrets
from base64 import b64encode
from collections.abc import Callable
from datetime import UTC, datetime
from typing import NoReturn, Self

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.asymmetric.ec import SECP384R1, generate_private_key
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey


class Secret:
    """A secret value. Its str(), repr() and format() are a mask; `reveal()` returns the value."""

    __slots__ = ("_value", "name")

    def __init__(self, name: str, value: str) -> None:
        self.name = name
        self._value = value

    def reveal(self) -> str:
        """The value: only for a file's content or a process's stdin."""
        return self._value

    def __repr__(self) -> str:
        return f"(secret {self.name})"

    __str__ = __repr__

    def __format__(self, spec: str) -> str:
        return format(str(self), spec)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Secret):
            return NotImplemented
        return self.name == other.name and hmac.compare_digest(self._value.encode(), other._value.encode())

    def __hash__(self) -> int:
        return hash(self.name)

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: dict[int, object]) -> Self:
        return self

    def __reduce__(self) -> NoReturn:
        raise TypeError(f"{self!r} is not pickled; read it where it is needed.")


def generate(name: str) -> str:
    """A new value of the kind that the name asks for."""
    return next(make() for pattern, make in _KINDS if pattern.fullmatch(name))


def _url_safe(size: int) -> str:
    """Random text from `size` bytes that does not begin with `-`, so that no command takes it for a flag."""
    while True:
        text = secrets.token_urlsafe(size)
        if text[0].isalnum():
            return text


def _ssh_key() -> str:
    pem = (serialization.Encoding.PEM, serialization.PrivateFormat.OpenSSH, serialization.NoEncryption())
    return Ed25519PrivateKey.generate().private_bytes(*pem).decode()


def _ca_key() -> str:
    """Its certificate is derived from it and from the day it was made (rackwright.certificates.authority)."""
    pem = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    made = datetime.now(UTC).isoformat(timespec="seconds")
    return f"made {made}\n{generate_private_key(SECP384R1()).private_bytes(*pem).decode()}"


def _signing_key() -> str:
    """RSA: kubeadm 1.20 takes no other key of service accounts for a second control-plane node."""
    pem = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    return rsa.generate_private_key(65537, 3072).private_bytes(*pem).decode()


_KINDS: tuple[tuple[re.Pattern[str], Callable[[], str]], ...] = (
    (re.compile(r"munge_key"), lambda: b64encode(secrets.token_bytes(1024)).decode()),
    (re.compile(r"(.*_)?jwt_key"), lambda: b64encode(secrets.token_bytes(32)).decode()),
    (re.compile(r"(.*_)?ssh_key"), _ssh_key),
    (re.compile(r"(.*_)?ca_key"), _ca_key),
    (re.compile(r"(.*_)?encryption_key"), lambda: b64encode(secrets.token_bytes(32)).decode()),
    (re.compile(r"(.*_)?signing_key"), _signing_key),
    (re.compile(r"(.*_)?password"), lambda: _url_safe(24)),
    (re.compile(r".*"), lambda: _url_safe(32)),
)
"""By name: 1024 bytes and 32 bytes as base64, an OpenSSH private key, an ECDSA P-384 key with its date, 32 bytes as
base64, an RSA key of 3072 bits, 32 url-safe characters, and 43 for everything else."""

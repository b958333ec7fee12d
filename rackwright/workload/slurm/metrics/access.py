"""Who may read: the web configuration of Prometheus' exporter-toolkit, of which these keys are understood.

    tls_server_config: {cert_file: PATH, key_file: PATH}
    basic_auth_users: {NAME: BCRYPT HASH}

As the toolkit does (docs/web-configuration.md, read 2026-11-26), it is read again when it has changed, and so is the
certificate. Unlike there, a file without users refuses every request.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import os
import secrets
import ssl
import threading
from collections.abc import Mapping
from typing import NamedTuple

import bcrypt
import yaml

_BCRYPT_BYTES = 72
"""bcrypt looks at no more."""
_UNKNOWN = b"$2b$08$" + b"." * 53
"""A hash that no password has: an unknown user takes as long as a known one."""


class Refused(Exception):  # noqa: N818 - reads as the sentence it is
    """The configuration cannot be used."""


class Web(NamedTuple):
    """The configuration."""

    users: Mapping[str, bytes]
    certificate: str | None
    key: str | None


def parse_web(text: str) -> Web:
    """Read the file's text; Refused where it names no user, or a certificate without key."""
    try:
        found = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise Refused(f"not YAML: {type(error).__name__}") from None
    found = found if isinstance(found, dict) else {}
    users, tls = found.get("basic_auth_users"), found.get("tls_server_config")
    if not isinstance(users, dict) or not users:
        raise Refused("it has no basic_auth_users, so every request is refused")
    tls = {} if tls is None else tls
    if not isinstance(tls, dict) or ("cert_file" in tls) != ("key_file" in tls):
        raise Refused("tls_server_config needs cert_file and key_file")
    return Web(
        {str(name): str(one).encode() for name, one in users.items()},
        tls.get("cert_file"),
        tls.get("key_file"),
    )


class Access:
    """The file as it is now: who may read, and the TLS context for the next connection."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._hashing = threading.Lock()
        self._signature: object = None
        self._web = Web({}, None, None)
        self._context: ssl.SSLContext | None = None
        self._salt = secrets.token_bytes(32)
        self._let_in: tuple[str, bytes, bytes] | None = None
        self.refresh()

    def refresh(self) -> None:
        """Reads what has changed; Refused or OSError leave what was read last."""
        with self._lock:
            signature = self._stat(self._web)
            if signature == self._signature:
                return
            with open(self._path, encoding="utf-8") as file:
                web = parse_web(file.read())
            context = None
            if web.certificate is not None and web.key is not None:
                context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
                context.load_cert_chain(web.certificate, web.key)
            self._web, self._context, self._signature = web, context, self._stat(web)

    def _stat(self, web: Web) -> object:
        paths = (self._path, *filter(None, (web.certificate, web.key)))
        found = [os.stat(path) for path in paths]
        return [(path, one.st_ino, one.st_mtime_ns, one.st_size) for path, one in zip(paths, found)]  # noqa: B905 - Python 3.9

    @property
    def context(self) -> ssl.SSLContext | None:
        """None: plain HTTP."""
        return self._context

    def admits(self, header: str | None) -> bool:
        """Whether an Authorization header names a user and its password.

        One hash at a time, so that guessing takes one core at most; the last accepted login is accepted again without one.
        """
        user, password = _credentials(header)
        wanted = self._web.users.get(user, _UNKNOWN)
        digest = hashlib.blake2b(password, key=self._salt).digest()
        last = self._let_in
        if last is not None and last[:2] == (user, wanted) and hmac.compare_digest(last[2], digest):
            return True
        with self._hashing:
            try:
                good = bcrypt.checkpw(password[:_BCRYPT_BYTES], wanted)
            except ValueError:  # not a hash, or a NUL in the password
                return False
        if not good or user not in self._web.users:
            return False
        self._let_in = (user, wanted, digest)
        return True


def _credentials(header: str | None) -> tuple[str, bytes]:
    kind, _, value = (header or "").partition(" ")
    if kind.lower() != "basic":
        return "", b""
    try:
        user, _, password = base64.b64decode(value.strip(), validate=True).partition(b":")
    except (binascii.Error, ValueError):
        return "", b""
    return user.decode("utf-8", "replace"), password

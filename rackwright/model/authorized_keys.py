"""Lines of authorized_keys files, parsed as sshd parses them."""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass

_BLANKS = " \t"
"""Separators that sshd accepts between the parts of a line; other white space belongs to them."""


@dataclass(frozen=True)
class AuthorizedKey:
    """One key: its options, type, fingerprint as `ssh-keygen -l` prints it, and comment."""

    options: str
    kind: str
    fingerprint: str
    comment: str

    def __str__(self) -> str:
        return f"{self.kind} {self.fingerprint} ({self.comment or 'no comment'})"

    def is_among(self, allowed: Collection[str]) -> bool:
        """Whether it matches one of these fingerprints or lines. A line with options matches only with those options."""
        if self.fingerprint in allowed:
            return True
        lines = (parse_key(line) for line in allowed if not line.startswith("SHA256:"))
        return any(
            line is not None and line.fingerprint == self.fingerprint and line.options in ("", self.options)
            for line in lines
        )


def refuse_private_key(text: str) -> None:
    """ValueError for a private key; the error omits its text so that the key does not leak into messages."""
    if "PRIVATE KEY" in text:
        raise ValueError("This is a private key; only public keys belong here. Treat it as leaked.")


def parse_key(line: str) -> AuthorizedKey | None:
    """The key of a line; None if sshd finds none in it: a comment, an empty or a damaged line.

    Options may contain quoted spaces and text that looks like a key (sshd(8), AUTHORIZED_KEYS FILE FORMAT, read
    2026-11-23): only what follows the options counts.
    """
    line = line.strip(_BLANKS)
    if not line or line.startswith("#"):
        return None
    end = _end_of_options(line)
    for options, text in (("", line), (line[:end], line[end:])):
        with suppress(ValueError):
            return public_key(text, options)
    return None


def _end_of_options(line: str) -> int:
    quoted = False
    for place, char in enumerate(line):
        if char == '"' and line[place - 1 : place] != "\\":
            quoted = not quoted
        elif char in " \t" and not quoted:
            return place
    return len(line)


def public_key(text: str, options: str = "") -> AuthorizedKey:
    """The key of `type base64 [comment]`, with the type repeated in the base64 part; ValueError if it is damaged."""
    kind, *rest = re.split(f"[{_BLANKS}]+", text.strip(_BLANKS), maxsplit=2)
    try:
        # sshd's decoder skips white space (OpenSSH, openbsd-compat/base64.c, read 2026-11-23)
        blob = base64.b64decode(re.sub(r"[\r\v\f]", "", rest[0] if rest else ""), validate=True)
    except (binascii.Error, ValueError) as error:
        raise ValueError(f"The {kind} key is not valid base64; was it truncated when copied?") from error
    if _wire_fields(blob)[:1] != [kind.encode(errors="surrogateescape")]:
        raise ValueError(f"The {kind} key data does not match its type; was it truncated when copied?")
    digest = base64.b64encode(hashlib.sha256(blob).digest()).decode().rstrip("=")
    comment = rest[1].strip() if rest[1:] else ""
    return AuthorizedKey(options, kind, f"SHA256:{digest}", comment)


def _wire_fields(blob: bytes) -> list[bytes]:
    """The length-prefixed fields of a key (RFC 4253, 6.6); empty unless they fill it exactly."""
    fields: list[bytes] = []
    rest = blob
    while rest:
        size = int.from_bytes(rest[:4], "big")
        if len(rest) < 4 + size:
            return []
        fields.append(rest[4 : 4 + size])
        rest = rest[4 + size :]
    return fields if len(fields) > 1 else []

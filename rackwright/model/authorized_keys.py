"""Lines of authorized_keys files, read as sshd reads them."""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Collection
from dataclasses import dataclass


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
        """Whether it is one of these: fingerprints, or lines. A line with options allows the key with just these."""
        if self.fingerprint in allowed:
            return True
        lines = (parse_key(line) for line in allowed if not line.startswith("SHA256:"))
        return any(
            line is not None and line.fingerprint == self.fingerprint and line.options in ("", self.options)
            for line in lines
        )


def parse_key(line: str) -> AuthorizedKey | None:
    """The key of a line, None where sshd finds none in it: a comment, an empty or a damaged line.

    Options may hold quoted spaces, and text that looks like a key (sshd(8), AUTHORIZED_KEYS FILE FORMAT, read
    2026-11-23): only what follows them counts.
    """
    line = line.strip()
    if not line or line.startswith("#"):
        return None
    plain = _key("", line)
    if plain is not None:
        return plain
    end = _end_of_options(line)
    return _key(line[:end], line[end:].strip())


def _end_of_options(line: str) -> int:
    quoted = False
    for place, char in enumerate(line):
        if char == '"' and line[place - 1 : place] != "\\":
            quoted = not quoted
        elif char in " \t" and not quoted:
            return place
    return len(line)


def _key(options: str, text: str) -> AuthorizedKey | None:
    kind, _, rest = text.replace("\t", " ").partition(" ")
    encoded, _, comment = rest.strip().partition(" ")
    try:
        blob = base64.b64decode(encoded, validate=True)
    except (binascii.Error, ValueError):
        return None
    size = int.from_bytes(blob[:4], "big")
    if not kind or blob[4 : 4 + size] != kind.encode():  # each key repeats its type (RFC 4253, 6.6)
        return None
    digest = base64.b64encode(hashlib.sha256(blob).digest()).decode().rstrip("=")
    return AuthorizedKey(options, kind, f"SHA256:{digest}", comment.strip())

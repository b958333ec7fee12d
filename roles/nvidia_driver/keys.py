"""Fingerprint of an OpenPGP public key, without gpg (RFC 4880, sections 4.2, 6.2 and 12.2)."""

from __future__ import annotations

import base64
import hashlib
import re

_ARMOUR = re.compile(
    r"-----BEGIN PGP PUBLIC KEY BLOCK-----\n(?:[^\n]+\n)*?\n(.*?)\n(?:=[A-Za-z0-9+/]{4}\n)?-----END",
    re.DOTALL,
)
_PUBLIC_KEY = 6


def fingerprint_of(key: str) -> str:
    """Fingerprint of the first key of an armoured file, 40 capital hex digits. Raises ValueError."""
    found = _ARMOUR.search(key.replace("\r\n", "\n"))
    if found is None:
        raise ValueError("it is not an armoured OpenPGP public key")
    raw = base64.b64decode("".join(found[1].split()))
    if len(raw) < 6 or not raw[0] & 0x80:
        raise ValueError("it is not an OpenPGP key")
    tag, start, length = _header(raw)
    body = raw[start : start + length]
    if tag != _PUBLIC_KEY or len(body) != length or body[:1] != b"\x04":
        raise ValueError("its first packet is not a version 4 public key")
    prefix = b"\x99" + length.to_bytes(2, "big")
    return hashlib.sha1(prefix + body, usedforsecurity=False).hexdigest().upper()


def _header(raw: bytes) -> tuple[int, int, int]:
    """Tag of the first packet, where its body begins, and the body's length."""
    if raw[0] & 0x40:  # new format
        tag, first = raw[0] & 0x3F, raw[1]
        if first < 192:
            return tag, 2, first
        if first < 224:
            return tag, 3, ((first - 192) << 8) + raw[2] + 192
        return tag, 6, int.from_bytes(raw[2:6], "big")
    size = 1 << (raw[0] & 0x03)
    return (raw[0] >> 2) & 0x0F, 1 + size, int.from_bytes(raw[1 : 1 + size], "big")

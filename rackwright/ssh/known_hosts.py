"""Reads known_hosts files."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path


@dataclass(frozen=True)
class HostKey:
    """One public host key, as in known_hosts: type and base64."""

    kind: str
    key: str


class KnownHosts:
    """The host keys of a known_hosts file, looked up by name.

    Reads plain and hashed names. Wildcard patterns and @cert-authority lines are ignored.
    """

    def __init__(self, text: str) -> None:
        self.revoked: set[HostKey] = set()
        """Keys of @revoked lines, not trusted under any name."""
        self._plain: dict[str, list[tuple[int, HostKey]]] = {}
        self._hashed: list[tuple[bytes, bytes, int, HostKey]] = []
        for number, line in enumerate(text.splitlines(), 1):
            self._read(number, line.split())

    def _read(self, number: int, fields: list[str]) -> None:
        marker = fields.pop(0) if fields and fields[0].startswith("@") else None
        if len(fields) < 3 or fields[0].startswith("#"):
            return
        key = HostKey(fields[1], fields[2])
        if marker == "@revoked":
            self.revoked.add(key)
        if marker is not None:
            return
        for name in fields[0].split(","):
            if name.startswith("|1|"):
                self._read_hashed(number, name, key)
            else:
                self._plain.setdefault(name, []).append((number, key))

    def _read_hashed(self, number: int, name: str, key: HostKey) -> None:
        _, _, salt, digest = (*name.split("|", 3), "", "")[:4]
        try:
            self._hashed.append((base64.b64decode(salt), base64.b64decode(digest), number, key))
        except (binascii.Error, ValueError):
            return  # damaged: no host name

    def named(self, name: str) -> tuple[HostKey, ...]:
        """All keys of a host, including revoked ones, in file order; `name` as ssh looks it up (host_name)."""
        lines = list(self._plain.get(name, ()))
        lines += [
            (number, key)
            for salt, digest, number, key in self._hashed
            if hmac.compare_digest(hmac.new(salt, name.encode(), hashlib.sha1).digest(), digest)
        ]
        return tuple(dict.fromkeys(key for _, key in sorted(lines, key=lambda line: line[0])))

    def keys(self, name: str) -> tuple[HostKey, ...]:
        """The trusted keys of a host, in file order."""
        return tuple(key for key in self.named(name) if key not in self.revoked)


def host_name(host: str, port: int) -> str:
    """A host's name in known_hosts: `n1`, or `[n1]:2222` for ports other than 22."""
    return host if port == 22 else f"[{host}]:{port}"


def read_known_hosts(path: Path) -> KnownHosts:
    """A known_hosts file, re-read only when it changes; raises OSError."""
    status = path.stat()
    return _read_once(path, status.st_mtime_ns, status.st_size)


@lru_cache(maxsize=4)
def _read_once(path: Path, changed_ns: int, size: int) -> KnownHosts:
    return KnownHosts(path.read_text(encoding="utf-8", errors="replace"))

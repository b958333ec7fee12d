"""Compares version texts: upstream versions by their numbers, Debian's by Debian's rules."""

from __future__ import annotations

import re
from itertools import zip_longest

_PART = re.compile(r"([^0-9]*)([0-9]*)")


def numbers(version: str) -> tuple[int, ...]:
    """`580.173.02` as numbers, to compare; without trailing zeros, so that 580 is 580.0."""
    parts = [int(part) for part in version.split(".") if part.isdigit()]
    while parts and parts[-1] == 0:
        parts.pop()
    return tuple(parts)


def at_least(version: str, minimum: str) -> bool:
    """Whether an upstream version is not older than another."""
    return numbers(version) >= numbers(minimum)


def newest(versions: list[str]) -> str:
    """The newest of upstream versions."""
    return max(versions, key=numbers)


def upstream(revision: str) -> str:
    """The upstream version in a package version: no epoch, no revision, no `+` or `~` suffix."""
    text = revision.rpartition(":")[2].split("-")[0]
    return re.split(r"[+~]", text)[0]


def debian_key(version: str) -> DebianVersion:
    """A package version that sorts as dpkg sorts it."""
    return DebianVersion(version)


class DebianVersion:
    """A Debian package version; only `<` and `==` are asked of it (Debian Policy 5.6.12)."""

    def __init__(self, text: str) -> None:
        epoch, colon, rest = text.partition(":")
        self.text = text
        self._epoch = int(epoch) if colon and epoch.isdigit() else 0
        body = rest if colon else text
        self._upstream, _, self._revision = body.rpartition("-") if "-" in body else (body, "", "0")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DebianVersion) and self._compare(other) == 0

    def __hash__(self) -> int:
        return hash(self.text)

    def __lt__(self, other: DebianVersion) -> bool:
        return self._compare(other) < 0

    def _compare(self, other: DebianVersion) -> int:
        if self._epoch != other._epoch:
            return -1 if self._epoch < other._epoch else 1
        return _compare(self._upstream, other._upstream) or _compare(self._revision, other._revision)


def _compare(left: str, right: str) -> int:
    pairs = zip_longest(_PART.findall(left), _PART.findall(right), fillvalue=("", ""))
    for (text, number), (other_text, other_number) in pairs:
        weights, other_weights = _weights(text), _weights(other_text)
        if weights != other_weights:
            return -1 if weights < other_weights else 1
        difference = int(number or 0) - int(other_number or 0)
        if difference:
            return difference
    return 0


def _weights(text: str) -> list[int]:
    """`~` sorts before the end, the end before letters, letters before everything else."""
    order = [-1 if char == "~" else ord(char) if char.isalpha() else ord(char) + 256 for char in text]
    return [*order, 0]

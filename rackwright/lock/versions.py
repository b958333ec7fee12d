"""Compares versions: upstream ones by their numbers, packages' by Debian's rules."""

from __future__ import annotations

import re

from debian.debian_support import Version

from rackwright.errors import RackwrightError

_NOT_DEBIAN = re.compile(r"[^A-Za-z0-9.+:~-]")


def numbers(version: str) -> tuple[int, ...]:
    """`580.173.02` as numbers, to compare; without trailing zeros, so that 580 is 580.0."""
    parts = [int(part) for part in version.split(".") if part.isdigit()]
    while parts and parts[-1] == 0:
        parts.pop()
    return tuple(parts)


def at_least(version: str, minimum: str) -> bool:
    """Whether an upstream version is at least another."""
    return numbers(version) >= numbers(minimum)


def newest(versions: list[str]) -> str:
    """The newest of upstream versions."""
    return max(versions, key=numbers)


def upstream(revision: str) -> str:
    """The upstream version in a package version: no epoch, no revision, no `+` or `~` suffix."""
    text = revision.rpartition(":")[2].split("-")[0]
    return re.split(r"[+~]", text)[0]


def debian_key(version: str) -> Version:
    """A package version that sorts as dpkg sorts it; RackwrightError if it is not a valid one.

    What only rpm allows in a version (`_`, `^`) sorts after letters, as `+` does.
    """
    try:
        return Version(_NOT_DEBIAN.sub("+", version))
    except ValueError as error:
        raise RackwrightError(f"{version!r} is not a valid package version.") from error

"""Backups in a place: their names, their manifests, and which of them are kept. Standard library only.

A backup is a folder `<node>-20261126T023000Z` with one encrypted file per part and a manifest. It gets its name
once everything is on disk: a folder with another name is not a backup, and a backup with this name is complete.
"""

from __future__ import annotations

import calendar
import hashlib
import json
import os
import re
import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

MANIFEST = "manifest.json"
SUFFIX = ".gz.age"
PART_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,39}")
_STAMP = "%Y%m%dT%H%M%SZ"
_NAME = re.compile(r"([A-Za-z0-9][A-Za-z0-9.-]{0,62})-(\d{8}T\d{6}Z)")
_MANIFEST_MAX = 1 << 20
_CHUNK = 1 << 20


class Unreadable(Exception):  # noqa: N818 - a state, not an error class
    """A backup cannot be used; the text is the reason."""


@dataclass(frozen=True)
class Backup:
    """One backup in a place."""

    name: str
    manifest: dict[str, Any]

    @property
    def made(self) -> float:
        """Start time, in seconds since 1970."""
        return made(self.name)

    @property
    def installation(self) -> str:
        """Id of the installation that made it."""
        return str(self.manifest["installation"])


def name_of(node: str, now: float) -> str:
    """The name of a node's backup that starts now."""
    return f"{node}-{time.strftime(_STAMP, time.gmtime(now))}"


def made(name: str) -> float:
    """Start time of a backup; ValueError if this is not a backup name."""
    match = _NAME.fullmatch(name)
    if match is None:
        raise ValueError(f"{name} is not a valid backup name")
    return float(calendar.timegm(time.strptime(match[2], _STAMP)))


def is_of(name: str, node: str) -> bool:
    """Whether this is the name of a backup of the node."""
    match = _NAME.fullmatch(name)
    return match is not None and match[1] == node


def read(place: str, name: str) -> Backup:
    """A backup in a place; Unreadable if its manifest is invalid."""
    path = os.path.join(place, name, MANIFEST)
    try:
        with open(path, "rb") as file:
            data = file.read(_MANIFEST_MAX + 1)
        manifest = json.loads(data) if len(data) <= _MANIFEST_MAX else None
    except (OSError, ValueError) as error:
        raise Unreadable(f"cannot read {path}: {error}") from None
    why = mistake(manifest)
    if why is not None or manifest is None:
        raise Unreadable(f"{path} {why}")
    return Backup(name, manifest)


def mistake(manifest: Any) -> str | None:  # noqa: ANN401 - JSON data
    """Why this is not a valid manifest; None if it is."""
    if not isinstance(manifest, dict) or manifest.get("version") != 1:
        return "is not a manifest of version 1"
    if not all(isinstance(manifest.get(key), str) for key in ("cluster", "node", "installation")):
        return "does not name its cluster, node and installation"
    parts = manifest.get("parts")
    if not isinstance(parts, list) or not all(map(_is_part, parts)):
        return "does not list its parts"
    if len({part["name"] for part in parts}) < len(parts):
        return "lists a part twice"
    return None


def _is_part(part: Any) -> bool:  # noqa: ANN401 - JSON data
    return (
        isinstance(part, dict)
        and isinstance(part.get("name"), str)
        and PART_NAME.fullmatch(part["name"]) is not None
        and isinstance(part.get("about"), str)
        and type(part.get("size")) is int
        and isinstance(part.get("sha256"), str)
        and re.fullmatch(r"[0-9a-f]{64}", part["sha256"]) is not None
    )


def backups(place: str, node: str) -> tuple[list[Backup], list[str]]:
    """Backups of a node, newest first, and why others cannot be used. OSError if the place cannot be read."""
    found, broken = [], []
    for name in sorted(os.listdir(place), reverse=True):
        if is_of(name, node):
            try:
                found.append(read(place, name))
            except Unreadable as error:
                broken.append(str(error))
    return found, broken


def damage(place: str, backup: Backup) -> list[str]:
    """What is wrong with the files of a backup, compared with its manifest."""
    wrong = []
    for part in backup.manifest["parts"]:
        path = os.path.join(place, backup.name, part["name"] + SUFFIX)
        try:
            size, digest = digest_of(path)
        except OSError as error:
            wrong.append(f"cannot read {path}: {error.strerror}")
            continue
        if (size, digest) != (part["size"], part["sha256"]):
            wrong.append(f"{path} does not match the manifest: {size} bytes, sha256 {digest[:12]}")
    return wrong


def digest_of(path: str) -> tuple[int, str]:
    """Size and SHA-256 of a file."""
    size, digest = 0, hashlib.sha256()
    with open(path, "rb") as file:
        while chunk := file.read(_CHUNK):
            size += len(chunk)
            digest.update(chunk)
    return size, digest.hexdigest()


def kept(names: Iterable[str], newest: int, weekly: int) -> set[str]:
    """The newest of these backups, and the newest of each of the last weeks that have one."""
    ordered = sorted(names, key=made, reverse=True)
    found = set(ordered[: max(newest, 1)])
    weeks: dict[str, str] = {}
    for name in ordered:
        weeks.setdefault(time.strftime("%G-%V", time.gmtime(made(name))), name)
    return found | set(list(weeks.values())[:weekly])

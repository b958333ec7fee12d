"""Reads package indexes (apt's `Packages`, rpm's `primary.xml`) for exact revisions and hashes."""

from __future__ import annotations

import gzip
import hashlib
import lzma
import urllib.error
import urllib.request
from collections.abc import Iterable
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from urllib.parse import urlsplit
from xml.etree import ElementTree

from rackwright.errors import RackwrightError
from rackwright.lock.versions import debian_key

_TIMEOUT_SECONDS = 20
_MOST_BYTES = 512 * 1024 * 1024
_BEGINNING = 4096
_REPO = "http://linux.duke.edu/metadata/repo"
_COMMON = "{http://linux.duke.edu/metadata/common}"


@dataclass(frozen=True, slots=True)
class Entry:
    """One package of an index."""

    name: str
    version: str
    sha256: str | None


@dataclass(frozen=True)
class Index:
    """Entries of the indexes by package; `places` are where they were read, `sha256` what was read there."""

    places: tuple[str, ...] = ()
    packages: dict[str, tuple[Entry, ...]] = field(default_factory=dict)
    sha256: tuple[str, ...] = ()

    def best(self, name: str, pattern: str) -> Entry | None:
        """The newest version of a package that fits a pattern; None where there is none."""
        found = [
            entry
            for entry in self.packages.get(name, ())
            if fnmatchcase(entry.version, pattern) or fnmatchcase(entry.version.partition(":")[2], pattern)
        ]
        return max(found, key=lambda entry: debian_key(entry.version), default=None)


def parse_primary(text: str, place: str) -> Iterable[Entry]:
    """The packages of one primary.xml of an rpm repository; epoch 0 is left out."""
    try:
        packages = ElementTree.fromstring(text).iterfind(f"{_COMMON}package")
        for package in packages:
            name, version = package.findtext(f"{_COMMON}name"), package.find(f"{_COMMON}version")
            checksum = package.find(f"{_COMMON}checksum")
            if name is None or version is None or package.findtext(f"{_COMMON}arch") == "src":
                continue
            epoch = "" if version.get("epoch", "0") == "0" else f"{version.get('epoch')}:"
            sha256 = checksum.text if checksum is not None and checksum.get("type") == "sha256" else None
            yield Entry(name, f"{epoch}{version.get('ver')}-{version.get('rel')}", sha256)
    except ElementTree.ParseError:
        raise RackwrightError(
            f"The package index {place} is not a primary.xml of an rpm repository."
        ) from None


def _parse(text: str, place: str) -> Iterable[Entry]:
    return parse_primary(text, place) if text.lstrip().startswith("<") else parse_packages(text)


def parse_packages(text: str) -> Iterable[Entry]:
    """The packages of one index file (RFC 822 paragraphs)."""
    for paragraph in text.split("\n\n"):
        fields = {}
        for line in paragraph.splitlines():
            key, colon, value = line.partition(": ")
            if colon and not line.startswith(" "):
                fields[key] = value.strip()
        if "Package" in fields and "Version" in fields:
            yield Entry(fields["Package"], fields["Version"], fields.get("SHA256"))


def read_index(places: Iterable[str]) -> Index:
    """All indexes together. Raises RackwrightError where one cannot be read."""
    packages: dict[str, list[Entry]] = {}
    listed, hashes = tuple(places), []
    for place in listed:
        raw = _fetch(place)
        hashes.append(hashlib.sha256(raw).hexdigest())
        for entry in _entries(_unpack(raw, place), place):
            packages.setdefault(entry.name, []).append(entry)
    return Index(listed, {name: tuple(entries) for name, entries in packages.items()}, tuple(hashes))


def _entries(text: str, place: str) -> Iterable[Entry]:
    if not (text.lstrip().startswith("<") and _REPO in text[:_BEGINNING]):
        return _parse(text, place)
    primary = _primary_of(text, place)
    return _parse(_unpack(_fetch(primary), primary), primary)


def _primary_of(text: str, place: str) -> str:
    """Where the primary.xml is that a repomd.xml names, two folders above it."""
    try:
        found = ElementTree.fromstring(text).find(f"{{{_REPO}}}data[@type='primary']/{{{_REPO}}}location")
    except ElementTree.ParseError:
        found = None
    if found is None or not found.get("href"):
        raise RackwrightError(f"The package index {place} is a repomd.xml without a primary.xml.")
    root, _, folder = place.rpartition("/")[0].rpartition("/")
    if folder != "repodata":
        raise RackwrightError(f"{place} is not in a folder `repodata`, so its repository cannot be found.")
    return f"{root}/{found.get('href')}"


def _fetch(place: str) -> bytes:
    try:
        if urlsplit(place).scheme:
            with urllib.request.urlopen(place, timeout=_TIMEOUT_SECONDS) as answer:
                content: bytes = answer.read(_MOST_BYTES)
                return content
        return Path(place).read_bytes()
    except (OSError, urllib.error.URLError, ValueError) as error:
        raise RackwrightError(
            f"Cannot read the package index {place}: {_reason(error)}.",
            hint="remove `gpu_stack.package_index` to use the shipped tables",
        ) from None


def _reason(error: Exception) -> str:
    reason = getattr(error, "strerror", None) or getattr(error, "reason", None) or type(error).__name__
    return str(reason).lower()


def _unpack(raw: bytes, place: str) -> str:
    try:
        if raw.startswith(b"\x1f\x8b"):
            raw = gzip.decompress(raw)
        elif raw.startswith(b"\xfd7zXZ"):
            raw = lzma.decompress(raw)
        return raw.decode("utf-8")
    except (OSError, EOFError, lzma.LZMAError, UnicodeDecodeError):
        raise RackwrightError(
            f"The package index {place} is not a `Packages` or `primary.xml` file (plain, .gz or .xz)."
        ) from None

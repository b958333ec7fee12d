"""The audit trail on the central journal's server: a file per day of arrival, one JSON object per line.

Plain text that only root can read, for `grep` and every backup. Past days are compressed. Standard
library, Python 3.9.
"""

from __future__ import annotations

import contextlib
import gzip
import json
import os
import re
import shutil
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from typing import IO, Any

from rackwright.logs.entries import KEYS, Entry, is_trusted, name_of

_NAME = re.compile(r"([0-9]{4}-[0-9]{2}-[0-9]{2})\.jsonl(\.gz)?")
DAY = 86400


def day_of(at: float) -> str:
    """`2026-11-27`, UTC."""
    return time.strftime("%Y-%m-%d", time.gmtime(at))


def days(folder: str) -> list[tuple[str, str]]:
    """(day, path), oldest first; OSError if the folder is unreadable."""
    matches = [(match.group(1), name) for name in os.listdir(folder) if (match := _NAME.fullmatch(name))]
    return [(day, os.path.join(folder, name)) for day, name in sorted(matches)]


def audit_entries(folder: str, since: float, problem: Callable[[str], None]) -> Iterator[Entry]:
    """Entries that arrived on the day of `since` or later, newest day first; unreadable files become problems."""
    try:
        found = days(folder)
    except OSError as error:
        problem(f"cannot read {folder}: {error.strerror}")
        return
    for day, path in reversed(found):
        if day >= day_of(since):
            yield from _entries(path, problem)


def _entries(path: str, problem: Callable[[str], None]) -> Iterator[Entry]:
    opened: Any = gzip.open if path.endswith(".gz") else open
    try:
        with opened(path, "rb") as file:
            for line in file:
                entry = _entry(line)
                if entry is not None:
                    yield entry
    except (OSError, EOFError, zlib.error) as error:
        problem(f"cannot read all of {path}: {error}")


def _entry(line: bytes) -> Entry | None:
    """Parses a line; None if a crash cut it off: its content was written again after it.

    Earlier releases wrote names of any length, and used another rule for `trusted`.
    """
    try:
        found = json.loads(line)
        if not isinstance(found["node"], str) or not isinstance(found["message"], str):
            return None
        found.update({key: name_of(found.get(key)) for key in ("name", "unit", "cgroup")})
        found["trusted"] = is_trusted(found.get("kernel") is True, found.get("uid"))
        return found if isinstance(found["at"], (int, float)) else None
    except (ValueError, KeyError, TypeError):
        return None


def line_of(entry: Entry) -> bytes:
    """An entry as it is in a file."""
    known = {key: entry[key] for key in KEYS if entry.get(key) is not None}
    return json.dumps(known).encode() + b"\n"


def append(folder: str, now: float, lines: Sequence[bytes]) -> None:
    """Append lines to today's file, on disk when this returns."""
    path = os.path.join(folder, day_of(now) + ".jsonl")
    flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
    with os.fdopen(os.open(path, flags, 0o600), "ab", buffering=0) as file:
        size = file.seek(0, os.SEEK_END)
        torn = size and os.pread(file.fileno(), 1, size - 1) != b"\n"
        whole = b"".join([b"\n", *lines] if torn else lines)
        if file.write(whole) != len(whole):
            raise OSError(28, "No space left on device")
        os.fsync(file.fileno())


def compress_closed(folder: str, now: float) -> None:
    """Compress files of earlier days; the plain one is removed once the other is complete on disk.

    A day may already be compressed: the server's clock was wrong, or it crashed in between. Readers ignore
    duplicates.
    """
    for day, path in days(folder):
        if path.endswith(".gz") or day >= day_of(now):
            continue
        new = path + ".new"
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
        with os.fdopen(os.open(new, flags, 0o600), "wb") as packed, open(path, "rb") as file:
            _copy_if_there(path + ".gz", packed)
            with gzip.GzipFile(fileobj=packed, mode="wb", filename="", mtime=0) as writer:
                shutil.copyfileobj(file, writer)
            packed.flush()
            os.fsync(packed.fileno())
        os.rename(new, path + ".gz")
        os.unlink(path)


def _copy_if_there(path: str, to: IO[bytes]) -> None:
    """Compressed data may be concatenated (RFC 1952, 2.2)."""
    with contextlib.suppress(FileNotFoundError), open(path, "rb") as file:
        shutil.copyfileobj(file, to)


def drop_old(folder: str, now: float, kept_days: int) -> list[str]:
    """Remove files of days before that; returns their names."""
    gone = [path for day, path in days(folder) if day < day_of(now - kept_days * DAY)]
    for path in gone:
        os.unlink(path)
    return gone

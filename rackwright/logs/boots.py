"""Boots in a node's files of the central journal: which have entries of a given time. Standard library, Python 3.9.

journalctl finds --until by bisection, and with --reverse it stops at the first entry before --since. Both are right only if
time never goes backwards. If a node's clock was wrong until it was set, it does, so each boot is read separately:
within one, the clock and the monotonic clock together show how far it was set back.
"""

from __future__ import annotations

import math
import re
from contextlib import closing
from typing import Any, NamedTuple

from rackwright.logs.entries import whole
from rackwright.logs.journal_files import JournalFile, Run

BOOTS_MAX = 50
"""A node with more boots: reading its files whole is faster than each boot separately."""
_ID = re.compile(rb"[0-9a-f]{32}")


class Boot(NamedTuple):
    """Entries between two times, by the node's clock."""

    id: str
    first: float
    last: float
    set_back: float
    """Seconds by which the clock was set back between them: entries may be out of order by that much."""

    def options(self, since: float, until: float) -> list[str] | None:
        """journalctl arguments to read it backwards; None if it has nothing of that time."""
        since, until = since - self.set_back, until + self.set_back
        if self.first > until or self.last < since:
            return None
        if math.isinf(self.set_back):
            return ["--reverse"]
        return ["--reverse", f"--since=@{max(0, math.floor(since))}", f"--until=@{math.ceil(until)}"]

    def matches(self, matches: list[str]) -> list[str]:
        """As above, for this boot only."""
        if not self.id:
            return matches
        mine = f"_BOOT_ID={self.id}"
        return [mine, *(two for one in matches for two in ((one, mine) if one == "+" else (one,)))]


ALL = Boot("", -math.inf, math.inf, math.inf)
"""All entries, in any order."""


def boots(files: list[JournalFile]) -> list[Boot]:
    """The boots in some files, newest first; ALL if they cannot be read separately."""
    paths = [one.path for one in files]
    listing = Run(paths, ["--field=_BOOT_ID"])
    ids = [line.strip() for line in listing.lines()]
    if listing.complaint or len(ids) > BOOTS_MAX or not all(map(_ID.fullmatch, ids)):
        return [ALL]
    found = [_boot(paths, one.decode()) for one in ids]
    return sorted(found, key=lambda one: one.last, reverse=True) if ALL not in found else [ALL]


def _boot(paths: list[str], boot: str) -> Boot:
    """The bounds of a boot; ALL if its first or last entry lacks a time."""
    first, last = (_times(paths, [*options, f"_BOOT_ID={boot}"]) for options in ([], ["--reverse"]))
    if first is None or last is None:
        return ALL
    return Boot(boot, first[0], last[0], max(0.0, (first[0] - first[1]) - (last[0] - last[1])))


def _times(paths: list[str], arguments: list[str]) -> tuple[float, float] | None:
    """Times of the entry that journalctl prints first, by the clock and by the monotonic clock."""
    with closing(iter(Run(paths, arguments))) as entries:
        fields: dict[str, Any] = next(entries, {})
    at, up = (whole(fields.get(name)) for name in ("__REALTIME_TIMESTAMP", "__MONOTONIC_TIMESTAMP"))
    return None if at is None or up is None else (at / 1e6, up / 1e6)

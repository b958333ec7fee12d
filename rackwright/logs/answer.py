"""What a reader answers: lines, how new those of each node are, and what could not be read. Standard library, Python 3.9."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from typing import Any

from rackwright.logs.entries import Newest, Wanted

PROBLEMS_MAX = 20
PROBLEM_CHARACTERS = 300


class Unreadable(Exception):  # noqa: N818 - as it is said
    """The store cannot be read; the text says why."""


class Reading:
    """One question to a store, which adds what it finds."""

    def __init__(self, wanted: Wanted, deadline: float) -> None:
        self.wanted = wanted
        self.newest_lines = Newest(wanted)
        self.deadline = deadline
        self.problems: dict[str, None] = {}

    @property
    def late(self) -> bool:
        """Whether its time is over."""
        return time.monotonic() > self.deadline

    def problem(self, text: str) -> None:
        """Something could not be read: what is missing is then unknown."""
        if len(self.problems) < PROBLEMS_MAX:
            self.problems[text.strip()[:PROBLEM_CHARACTERS]] = None


Read = Callable[["dict[str, Any]", Reading], None]
"""(settings of the store, reading): adds the lines, newest first as far as that is possible."""
Last = Callable[["dict[str, Any]", "list[str]"], "dict[str, float | None]"]
"""(settings, nodes) -> when the newest line of each was written; None: it has none."""


def answer(request: dict[str, Any], read: Read, last: Last) -> dict[str, Any]:
    """The answer to a request; Unreadable where the store says nothing at all."""
    reading = Reading(Wanted(request), time.monotonic() + float(request["seconds"]))
    settings = request["store"]
    read(settings, reading)
    if reading.late:
        reading.problem(f"not all was read within {request['seconds']} s: ask for fewer nodes or hours")
    return {
        "version": 1,
        "now": time.time(),
        "lines": reading.newest_lines.lines(),
        "more": reading.newest_lines.more,
        "newest": last(settings, reading.wanted.nodes),
        "problems": list(reading.problems),
    }


def main(read: Read, last: Last) -> None:
    """Answer the request on standard input, on standard output."""
    os.umask(0o077)
    try:
        found = answer(json.load(sys.stdin), read, last)
    except Unreadable as error:
        found = {"version": 1, "unreadable": str(error)[:PROBLEM_CHARACTERS]}
    json.dump(found, sys.stdout)

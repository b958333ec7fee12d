"""A reader's answer: lines, the age of each node's newest line, and what could not be read. Standard library, Python 3.9."""

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


class Unreadable(Exception):  # noqa: N818 - a state, not an error class
    """The store cannot be read; the text is the reason."""


class Reading:
    """One query of a store, which adds what it finds."""

    def __init__(self, wanted: Wanted, deadline: float) -> None:
        self.wanted = wanted
        self.newest_lines = Newest(wanted)
        self.deadline = deadline
        self.problems: dict[str, None] = {}

    @property
    def late(self) -> bool:
        """Whether its time is used up."""
        return time.monotonic() > self.deadline

    def problem(self, text: str) -> None:
        """Record that something could not be read, so missing lines are unknown."""
        if len(self.problems) < PROBLEMS_MAX:
            self.problems[text.strip()[:PROBLEM_CHARACTERS]] = None


Read = Callable[["dict[str, Any]", Reading], None]
"""(settings of the store, reading): adds lines, newest first if possible."""
Last = Callable[["dict[str, Any]", "list[str]"], "dict[str, float | None]"]
"""(settings, nodes) -> time of each node's newest line; None: no line."""


def answer(request: dict[str, Any], read: Read, last: Last) -> dict[str, Any]:
    """The answer to a request; Unreadable if the store does not answer at all."""
    reading = Reading(Wanted(request), time.monotonic() + float(request["seconds"]))
    settings = request["store"]
    read(settings, reading)
    if reading.late:
        reading.problem(f"not everything was read within {request['seconds']} s: query fewer nodes or hours")
    return {
        "version": 1,
        "now": time.time(),
        "lines": reading.newest_lines.lines(),
        "more": reading.newest_lines.more,
        "newest": last(settings, reading.wanted.nodes),
        "problems": list(reading.problems),
    }


def main(read: Read, last: Last) -> None:
    """Answer the request from stdin on stdout."""
    os.umask(0o077)
    try:
        found = answer(json.load(sys.stdin), read, last)
    except Unreadable as error:
        found = {"version": 1, "unreadable": str(error)[:PROBLEM_CHARACTERS]}
    json.dump(found, sys.stdout)

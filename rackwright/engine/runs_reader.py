"""Prints a head's journals of a cluster's runs, and who has its lock. Runs on the head as root, Python 3.9 or newer.

Arguments: the folder of the locks, that of the journals, the cluster, and a run or an empty text for all of them.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

from rackwright.engine.lock_holder import boot, read_record, uptime

LIMIT = 8 << 20
"""Size limit of all lines: of many runs the latest are printed; of one, only its first operations are omitted."""
OPERATIONS = ('"event": "start"', '"event": "finish"')


def holder(path: str) -> dict[str, Any] | None:
    """The run that holds or held the lock, and how many seconds ago it was last active."""
    record = read_record(path)
    seen = record.get("seen") if record else None
    if record is None or not isinstance(seen, (int, float)) or record.get("boot") != boot():
        return None
    return dict(record, idle_seconds=max(uptime() - seen, 0))


def is_operation(line: str) -> bool:
    """Whether the line is about a single operation: their number is unlimited, and only `runs RUN` shows them."""
    return any(kind in line for kind in OPERATIONS)


def lines_of(path: str, *, whole: bool) -> list[str]:
    """The lines of a journal; those of single operations only if `whole`, the latest as far as LIMIT goes."""
    excess = float("inf")
    if whole:
        with open(path, encoding="utf-8", errors="replace", newline="\n") as file:
            excess = sum(map(len, file)) - LIMIT
    kept: list[str] = []
    with open(path, encoding="utf-8", errors="replace", newline="\n") as file:
        for line in file:
            if excess > 0 and is_operation(line):
                excess -= len(line)
            else:
                kept.append(line.rstrip("\n"))
    return kept


def main() -> None:
    """Print one JSON document."""
    locks, journals, cluster, only = sys.argv[1:5]
    place = os.path.join(journals, cluster)
    names = sorted(os.listdir(place), reverse=True) if os.path.isdir(place) else []
    found: dict[str, list[str]] = {}
    room = LIMIT
    for name in names:
        run, end = os.path.splitext(name)
        if end == ".jsonl" and only in ("", run):
            lines = lines_of(os.path.join(place, name), whole=bool(only))
            room -= sum(map(len, lines))
            if room < 0 and found:
                break  # a run without its end would be listed as interrupted
            found[run] = lines
    print(json.dumps({"holder": holder(os.path.join(locks, cluster + ".run")), "journals": found}))


if __name__ == "__main__":
    main()

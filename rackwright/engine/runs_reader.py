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
"""Bytes of all lines; of many runs the latest are printed, of one its first lines and its end."""
OPERATIONS = ('"event": "start"', '"event": "finish"')


def holder(path: str) -> dict[str, Any] | None:
    """The run that has or had the lock, and how many seconds ago it was last heard of."""
    record = read_record(path)
    seen = record.get("seen") if record else None
    if record is None or not isinstance(seen, (int, float)) or record.get("boot") != boot():
        return None
    return dict(record, idle_seconds=max(uptime() - seen, 0))


def lines_of(path: str, *, whole: bool, room: int) -> list[str]:
    """The lines of a journal, without those of single operations unless `whole`."""
    kept: list[str] = []
    with open(path, encoding="utf-8", errors="replace") as file:
        for line in file:
            if whole or not any(kind in line for kind in OPERATIONS):
                room -= len(line)
                if room < 0:
                    return kept
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
            found[run] = lines_of(os.path.join(place, name), whole=bool(only), room=room)
            room -= sum(map(len, found[run]))
    print(json.dumps({"holder": holder(os.path.join(locks, cluster + ".run")), "journals": found}))


if __name__ == "__main__":
    main()

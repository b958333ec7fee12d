"""Watches process lists: every command line and environment of a rack's nodes and of the program.

    python sampler.py RACK FOLDER OUT

Runs until its standard input is closed. The processes of the nodes are processes of this machine,
seen from outside; those of the program have FOLDER in their environment. Each line of OUT is
a JSON list: where ("node" or "here"), command line, environment.
"""

from __future__ import annotations

import json
import os
import select
import sys
from collections import Counter
from pathlib import Path

PAUSE_SECONDS = 0.06
_FORGET_AFTER = 100  # rounds, for process ids that are used again, and for daemons that change their title
_SETTLED_AFTER = 10  # rounds: by then a shell has become the program it was to run


def _read(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return b""  # it has exited meanwhile


def main(rack: str, folder: str, out: Path) -> None:
    """Sample until no program is left to sample for."""
    seen: set[tuple[str, bytes, bytes]] = set()
    skipped: set[str] = set()
    unchanged: Counter[str] = Counter()
    rounds = 0
    with out.open("w") as sink:
        while not select.select([sys.stdin], [], [], PAUSE_SECONDS)[0]:
            rounds += 1
            if rounds % _FORGET_AFTER == 0:
                skipped.clear()
                unchanged.clear()
            for pid in os.listdir("/proc"):
                if not pid.isdigit() or pid in skipped:
                    continue
                command = _read(f"/proc/{pid}/cmdline")
                environment = _read(f"/proc/{pid}/environ")
                if rack.encode() in _read(f"/proc/{pid}/cgroup"):
                    where = "node"
                elif folder.encode() in environment:
                    where = "here"
                else:
                    skipped.add(pid)
                    continue
                found = (where, command, environment)
                if found in seen:
                    unchanged[pid] += 1
                    if unchanged[pid] == _SETTLED_AFTER:
                        skipped.add(pid)
                else:
                    unchanged[pid] = 0
                    seen.add(found)
                    sink.write(json.dumps([where, command.decode("latin-1"), environment.decode("latin-1")]))
                    sink.write("\n")
        sink.write(json.dumps(["rounds", str(rounds), ""]) + "\n")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]))
